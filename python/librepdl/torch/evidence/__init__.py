"""Evidence about a training: how large the noise is without librepdl, what reproducibility costs, what computes each operation.

    from librepdl.torch.evidence import catalogue, cost, noise_floor

Every tool takes a function of the user's and leaves what it can reach as it was.
"""

from librepdl.torch.evidence._catalogue import Catalogue, Operation, catalogue
from librepdl.torch.evidence._cost import Cost, cost
from librepdl.torch.evidence._noise import SETTINGS, Difference, NoiseFloor, noise_floor

__all__ = ["SETTINGS", "Catalogue", "Cost", "Difference", "NoiseFloor", "Operation", "catalogue", "cost", "noise_floor"]

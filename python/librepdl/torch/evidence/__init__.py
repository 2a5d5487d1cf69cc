"""Evidence about trainings: what one can show to others."""

from librepdl.torch.evidence._difference import first_difference
from librepdl.torch.evidence._fingerprints import DifferentBits, Fingerprints, compare

__all__ = ["DifferentBits", "Fingerprints", "compare", "first_difference"]

"""Evidence about trainings: what one can show to others."""

from librepdl.torch.evidence._difference import first_difference
from librepdl.torch.evidence._fingerprints import DifferentBits, Fingerprints, compare_fingerprints

__all__ = ["DifferentBits", "Fingerprints", "compare_fingerprints", "first_difference"]

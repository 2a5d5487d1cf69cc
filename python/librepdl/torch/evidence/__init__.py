"""From "the same bits" to something that can be shown: how large the noise is without librepdl, what reproducibility costs, what computes each
operation, what a run was, and that it is the same again."""

from librepdl.torch.evidence._catalogue import Catalogue, Operation, catalogue
from librepdl.torch.evidence._cost import Cost, cost
from librepdl.torch.evidence._difference import first_difference
from librepdl.torch.evidence._fingerprints import DifferentBits, Fingerprints, compare_fingerprints
from librepdl.torch.evidence._manifest import BadManifest, Comparison, Manifest, checklist, compare, load
from librepdl.torch.evidence._manifest import Manifest as manifest
from librepdl.torch.evidence._noise import SETTINGS, Difference, NoiseFloor, noise_floor
from librepdl.torch.evidence._replay import NoReplay, replay, verify

__all__ = ["SETTINGS", "BadManifest", "Catalogue", "Comparison", "Cost", "Difference", "DifferentBits", "Fingerprints", "Manifest", "NoReplay",
           "NoiseFloor", "Operation", "catalogue", "checklist", "compare", "compare_fingerprints", "cost", "first_difference", "load", "manifest",
           "noise_floor", "replay", "verify"]

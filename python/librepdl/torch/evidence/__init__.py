"""From "the same bits" to something that can be shown: how large the noise is without librepdl, what reproducibility costs, what computes each
operation, what a run was, and that it is the same again."""

from librepdl.torch.evidence._difference import first_difference
from librepdl.torch.evidence._fingerprints import DifferentBits, Fingerprints, compare_fingerprints
from librepdl.torch.evidence._manifest import BadManifest, Comparison, Manifest, checklist, compare, load
from librepdl.torch.evidence._manifest import Manifest as manifest
from librepdl.torch.evidence._replay import NoReplay, replay, verify

__all__ = ["BadManifest", "Comparison", "DifferentBits", "Fingerprints", "Manifest", "NoReplay", "checklist", "compare", "compare_fingerprints",
           "first_difference", "load", "manifest", "replay", "verify"]

"""A callback for Lightning (the packages lightning and pytorch_lightning): fingerprints of every epoch.

    import librepdl.torch
    librepdl.torch.enable()
    from librepdl.torch.evidence.lightning import FingerprintCallback

    trainer = Trainer(callbacks=[FingerprintCallback("fingerprints.json", monitor="val_loss")], ...)
"""

import importlib.util
import os
import random
import sys
from typing import Any

import numpy as np
import torch

from librepdl.torch.evidence._fingerprints import Fingerprints
from librepdl.torch.evidence._optional import optional

_NAMES = ("lightning.pytorch", "pytorch_lightning")
#: The package that is imported already, or else one that is installed. Either's Trainer takes the callback.
_package = optional(next((name for name in _NAMES if name in sys.modules),
                         next((name for name in _NAMES if importlib.util.find_spec(name.partition(".")[0])), _NAMES[0])),
                    "lightning", "librepdl.torch.evidence.lightning")


class FingerprintCallback(_package.Callback):  # type: ignore[misc, name-defined]
    """Writes a file of fingerprints (librepdl.torch.evidence.Fingerprints): at the end of every epoch the model's, the optimisers' state's and
    the random numbers', and the Trainer's callback metrics; in the end the model's.

    Checkpoints get the state of random numbers, which Lightning leaves out: a training that goes on from one of an epoch's end (fit's ckpt_path)
    computes the bits of one that was never interrupted. Epochs that a run which was killed had done already are compared.

    path: the file; monitor, mode: the metric that `best` in it is chosen by, and "min" or "max"
    against: another run's file: the training stops with DifferentBits at the first epoch that differs
    tensors: a hash for each tensor, too
    """

    def __init__(self, path: str | os.PathLike[str] = "fingerprints.json", *, monitor: str | None = None, mode: str = "min",
                 against: str | os.PathLike[str] | None = None, tensors: bool = True) -> None:
        self.fingerprints = Fingerprints(path, monitor=monitor, mode=mode, against=against, tensors=tensors)
        self._random: dict[str, Any] | None = None  # of the checkpoint that the training goes on from

    def _restore_random(self) -> None:
        if self._random is not None:
            torch.set_rng_state(self._random["torch"])
            random.setstate(self._random["python"])
            np.random.set_state(self._random["numpy"])

    def on_fit_start(self, trainer: Any, pl_module: Any) -> None:
        self._restore_random()  # not later: before on_train_start Lightning has the first batch already

    def on_train_epoch_start(self, trainer: Any, pl_module: Any) -> None:
        self._random = None

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        if trainer.is_global_zero:
            self.fingerprints.resume(trainer.global_step)

    def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        self._restore_random()  # where the checkpoint is of an epoch that had only to end: drawn for a batch that is not used
        if trainer.is_global_zero:
            self.fingerprints.add(trainer.global_step, {"model": pl_module, "optimizer": [o.state_dict()["state"] for o in trainer.optimizers]},
                                  trainer.callback_metrics, epoch=trainer.current_epoch)

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        if trainer.is_global_zero:
            self.fingerprints.finish({"model": pl_module})

    def state_dict(self) -> dict[str, Any]:
        numpy: Any = np.random.get_state()
        name, keys, *rest = numpy  # an array's keys as a list, since checkpoints are read without code of other packages
        return {"random": {"torch": torch.get_rng_state(), "python": random.getstate(), "numpy": (name, keys.tolist(), *rest)}}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self._random = state_dict["random"]

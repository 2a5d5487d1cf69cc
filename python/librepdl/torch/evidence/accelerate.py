"""For loops with Hugging Face's Accelerate: fingerprints of every step, or of those that one chooses.

    import librepdl.torch
    librepdl.torch.enable()
    from librepdl.torch.evidence.accelerate import Fingerprints

    accelerator = Accelerator()
    model, optimizer, data = accelerator.prepare(model, optimizer, data)
    fingerprints = Fingerprints(accelerator, "fingerprints.json", model=model, optimizer=optimizer)
    for step, batch in enumerate(data, 1):
        ...
        fingerprints.step(step, loss=loss)
"""

import os
from typing import Any

from librepdl.torch.evidence import _fingerprints
from librepdl.torch.evidence._optional import optional

optional("accelerate", "accelerate", "librepdl.torch.evidence.accelerate")


class Fingerprints(_fingerprints.Fingerprints):
    """librepdl.torch.evidence.Fingerprints of a model and its optimiser that an Accelerator trains; the main process writes the file.

    It is registered for the accelerator's checkpoints: after load_state() the training goes on with the file, and steps that a run which was
    killed had done already are compared.
    """

    def __init__(self, accelerator: Any, path: str | os.PathLike[str] = "fingerprints.json", *, model: Any, optimizer: Any, **options: Any) -> None:
        super().__init__(path, **options)
        self._accelerator, self._model, self._optimizer = accelerator, model, optimizer
        accelerator.register_for_checkpointing(self)

    def step(self, step: int, *, epoch: int | None = None, **metrics: Any) -> None:
        """An entry, after so many steps, with metrics: numbers by their names."""
        if self._accelerator.is_main_process:
            self.add(step, {"model": self._accelerator.unwrap_model(self._model), "optimizer": self._optimizer.state_dict()["state"]}, metrics, epoch)

    def state_dict(self) -> dict[str, Any]:
        return {"step": self.entries[-1]["step"] if self.entries else 0}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        if self._accelerator.is_main_process:
            self.resume(state["step"])

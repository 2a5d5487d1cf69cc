"""A callback for the Trainer of Hugging Face's transformers: fingerprints of every epoch.

    import librepdl.torch
    librepdl.torch.enable()
    from librepdl.torch.evidence.transformers import FingerprintCallback

    trainer = Trainer(..., callbacks=[FingerprintCallback("fingerprints.json")])
"""

import os
from collections.abc import Mapping
from typing import Any

from librepdl.torch.evidence._fingerprints import Fingerprints
from librepdl.torch.evidence._optional import optional

_transformers = optional("transformers", "transformers", "librepdl.torch.evidence.transformers")


def _of_the_bits(logs: Mapping[str, Any]) -> dict[str, Any]:
    """Numbers without those of the clock, the epoch, which an entry has, and the mean loss since the last time that something was logged:
    after an interruption the Trainer takes it over fewer steps."""
    return {name: value for name, value in logs.items() if isinstance(value, (int, float))
            and name not in ("epoch", "loss") and not name.endswith(("_runtime", "_time", "_per_second"))}


class FingerprintCallback(_transformers.TrainerCallback):  # type: ignore[misc, name-defined]
    """Writes a file of fingerprints (librepdl.torch.evidence.Fingerprints): at the end of every epoch the model's, the optimiser's state's and the
    random numbers', the metrics of evaluations and what the Trainer logs beside its mean loss; in the end the model's, which may be the best one,
    loaded again.

    A training that goes on (train(resume_from_checkpoint=...)) goes on with the file; epochs that a run which was killed had done already are
    compared.

    path: the file; against: another run's: the training stops with DifferentBits at the first epoch that differs
    monitor, mode: the metric that `best` in the file is chosen by, and "min" or "max"; None: the Trainer's metric_for_best_model
    tensors: a hash for each tensor, too
    """

    def __init__(self, path: str | os.PathLike[str] = "fingerprints.json", *, monitor: str | None = None, mode: str = "min",
                 against: str | os.PathLike[str] | None = None, tensors: bool = True) -> None:
        self.fingerprints = Fingerprints(path, monitor=monitor, mode=mode, against=against, tensors=tensors)
        self._logged: dict[str, Any] = {}

    def on_train_begin(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        if self.fingerprints.monitor is None and args.metric_for_best_model is not None:
            name = args.metric_for_best_model
            self.fingerprints.monitor = name if name.startswith("eval_") else f"eval_{name}"
            self.fingerprints.mode = "max" if args.greater_is_better else "min"
        self._logged = {}
        if state.is_world_process_zero:
            self.fingerprints.resume(state.global_step)

    def on_log(self, args: Any, state: Any, control: Any, logs: Mapping[str, Any] | None = None, **others: Any) -> None:
        if not state.is_world_process_zero or logs is None or "train_runtime" in logs:  # the last ones are of what ran since an interruption
            return
        if self.fingerprints.entries and self.fingerprints.entries[-1]["step"] == state.global_step:
            self.fingerprints.amend(_of_the_bits(logs))
        else:
            self._logged.update(_of_the_bits(logs))

    def on_epoch_end(self, args: Any, state: Any, control: Any, model: Any = None, optimizer: Any = None, **others: Any) -> None:
        if state.is_world_process_zero:
            self.fingerprints.add(state.global_step, {"model": model, "optimizer": optimizer.state_dict()["state"]}, self._logged,
                                  epoch=round(state.epoch))
        self._logged = {}

    def on_train_end(self, args: Any, state: Any, control: Any, model: Any = None, **others: Any) -> None:
        if state.is_world_process_zero:
            self.fingerprints.finish({"model": model})

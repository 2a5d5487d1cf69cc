"""Imported before a trainer, which imports torchvision where that is installed."""

import contextlib

from newcomer import import_torchvision

with contextlib.suppress(ModuleNotFoundError):
    import_torchvision()

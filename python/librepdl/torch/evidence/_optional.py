"""Packages that librepdl does without until they are asked for."""

import importlib
from types import ModuleType


def optional(module: str, package: str, what: str) -> ModuleType:
    """A module; raises ModuleNotFoundError with the name of the package that has it."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as e:
        if e.name is None or module.split(".")[0] != e.name.split(".")[0]:
            raise
        raise ModuleNotFoundError(f"{what}: expected the package {package}, found none; pip install {package}", name=e.name) from e

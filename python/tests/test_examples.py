"""The notebook runs from start to end; its assertions say that librepdl's bits stay the same."""

import pathlib

import pytest

examples = pathlib.Path(__file__).resolve().parent.parent.parent / "examples/python"


def test_notebook():
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    for module in ("matplotlib", "ipykernel", "torch"):
        pytest.importorskip(module)
    notebook = nbformat.read(examples / "same_bits.ipynb", as_version=4)
    nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
    printed = "".join(o.get("text", "") for cell in notebook.cells for o in cell.get("outputs", []))
    assert "librepdl 0\n" in printed and "baseline " in printed

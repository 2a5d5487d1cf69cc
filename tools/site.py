"""What is in the web page (mkdocs.yml): README.md, the pages of docs/, what they link to, a page for each family of operations, a reference of the
Python package. mkdocs calls the functions whose names begin with on_; `mkdocs build --strict`, which ./run site does, fails for a link that leads
nowhere."""

import json
import pathlib
import re

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

root = pathlib.Path(__file__).resolve().parent.parent
link = re.compile(r"\]\(([^)#:\s]+)(?:#[^)\s]*)?\)")

# Of Python's modules, what is documented beside docs/python-api.md, which has the functions that are operations: for each page names, and options of
# mkdocstrings.
reference: dict[str, dict[str, dict[str, object]]] = {
    "librepdl": {"librepdl": {"members": ["context", "current_context", "prepare", "fingerprint", "compare", "Comparison", "info"]},
                 "librepdl.Context": {"show_if_no_docstring": True}, "librepdl.Prepared": {"show_if_no_docstring": True}},
    "librepdl.random": {"librepdl.random": {}},
    "librepdl.torch": {"librepdl.torch": {}},
    "librepdl.torch.evidence": {"librepdl.torch.evidence": {}, "librepdl.torch.evidence.lightning": {}, "librepdl.torch.evidence.transformers": {},
                                "librepdl.torch.evidence.accelerate": {}, "pytest_librepdl": {"members": ["reproducible"]}},
}


def linked_files() -> set[pathlib.Path]:
    """README.md, docs/ and, from there on, every file of the repository that a page links to. What is absent mkdocs reports."""
    found: set[pathlib.Path] = set()
    waiting = [root / "README.md", *sorted((root / "docs").glob("*.md"))]
    while waiting:
        path = waiting.pop()
        if path in found or not path.is_file() or not path.is_relative_to(root):
            continue
        found.add(path)
        if path.suffix == ".md":
            waiting += [(path.parent / target).resolve() for target in link.findall(path.read_text())]
    return found


def families() -> dict[str, list[str]]:
    """The operations of each family: the table that `repdl docs` writes into README.md from the operations' records."""
    _, table, _ = re.split(r"<!-- operations:(?:begin|end) -->", (root / "README.md").read_text())
    rows = re.findall(r"^\| (\w+) \| (`.*`) \|$", table, re.M)
    return {family: re.findall(r"`(\w+)`", names) for family, names in rows}


def operations() -> dict[str, str]:
    """Each operation's section, from the page that `repdl docs` writes from their records."""
    text = (root / "docs/operations.md").read_text()
    attributes = dict(re.findall(r"^## (\w+)\n\n((?:- .*\n)+)", text, re.M))
    found = {}
    for row in re.findall(r"^\| `.*\|$", text, re.M):
        name, formula, inputs, outputs, _, proof = (cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", row)[1:-1])
        name = name.strip("`")
        found[name] = (f"## {name}\n\n{formula}\n\n- in: {inputs}\n- out: {outputs}\n{attributes.get(name, '')}"
                       f"- why the bits are right: {proof}\n")
    return found


def pages() -> dict[str, str]:
    """The pages that are made here, by their places."""
    sections, made = operations(), {}
    listed = "# Operations\n\n" + (root / "docs/operations.md").read_text().split("\n\n")[2] + "\n\n| Family | Operations |\n|---|---|\n"
    for family, names in families().items():
        listed += f"| [{family}](operations/{family}.md) | {', '.join(f'[{n}](operations/{family}.md#{n})' for n in names)} |\n"
        intro = f"# Operations: {family}\n\nThe formula is the exact result, which is rounded once.\n\n"
        made[f"docs/operations/{family}.md"] = intro + "\n".join(sections.pop(n) for n in names)
    if sections:
        raise ValueError(f"docs/operations.md: expected the operations of README.md's table, got {', '.join(sections)}, too: run repdl docs --write")
    made["docs/operations.md"] = listed
    for page, names_of in reference.items():
        made[f"docs/reference/{page}.md"] = f"# {page}\n\n" + "\n".join(
            f"::: {name}\n    options: {json.dumps(options)}\n" for name, options in names_of.items())
    return made


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """The navigation, with the families."""
    for entry in config.nav or []:
        if "Operations" in entry:
            entry["Operations"] = ["docs/operations.md", *({family: f"docs/operations/{family}.md"} for family in families())]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    made = pages()
    of_theme = [file for file in files if file.src_dir != config.docs_dir]
    linked = {str(path.relative_to(root)): path for path in linked_files()}
    return Files([*of_theme, *(File.generated(config, name, abs_src_path=str(path)) for name, path in sorted(linked.items()) if name not in made),
                  *(File.generated(config, name, content=text) for name, text in made.items())])

"""The rows of src/policy.def, for Python."""

import re
from dataclasses import dataclass
from pathlib import Path

_NARROW = frozenset({"F32", "F16", "BF16"})
_SETS = {"NARROW": _NARROW, "FLOATS": _NARROW | {"F64"}}


@dataclass(frozen=True)
class Row:
    """What is done with a schema and its variants; policy.def says how."""

    action: str  #: MAP, FORMULA, PIN, DERIVATIVE, PASS or REFUSE
    types: frozenset[str]  #: F32, F16, BF16, F64, ANY, INTEGERS, NUMBERS
    schema: str  #: "add.Tensor(self, other, alpha)"; PASS: names with blanks between them
    how: str  #: MAP: "add(self, other; alpha)"; FORMULA, PIN and DERIVATIVE: the function's name; REFUSE: why

    @property
    def name(self) -> str:
        return self.schema.partition("(")[0]

    @property
    def arguments(self) -> list[str]:
        return self.schema.partition("(")[2].rstrip(")").split(", ")

    def call(self) -> tuple[str, list[str], dict[str, str]]:
        """Of MAP: librepdl's operation, its operands, and its attributes with the arguments that they are."""
        operation, _, rest = self.how.rstrip(")").partition("(")
        operands, _, options = rest.partition(";")
        pairs = [part.strip().rpartition("=") for part in options.split(",") if part.strip()]
        return operation, operands.split(", "), {name or argument: argument for name, _, argument in pairs}


def rows() -> list[Row]:
    text = (Path(__file__).parent / "src" / "policy.def").read_text()
    found = []
    for action, body in re.findall(r'^REPDL_(\w+)\(((?:[^"()]|"[^"]*")*)\)', text, re.M):
        texts = re.findall(r'"([^"]*)"', body)
        words = re.sub(r'"[^"]*"|,', " ", body).replace("|", " ").split()
        if action == "PASS":
            found.append(Row(action, frozenset(), "".join(texts), ""))
            continue
        function = words.pop() if action in ("FORMULA", "PIN", "DERIVATIVE") else ""
        types = frozenset[str]().union(*(_SETS.get(word, {word}) for word in words)) if words else _SETS["FLOATS"]
        found.append(Row(action, types, texts[0], function or texts[1]))
    return found

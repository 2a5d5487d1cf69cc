"""Where a PTX function reads its parameters: what tools/check_ptx.py knows of the flow of values.

Each register is given what is known of it on all paths together:
  number     a constant, if it has one value only;
  address    (root, offset): a place in a parameter, or behind a pointer to a parameter that a function was called with
             (root "*" and the pointer's name). The offset is `varying` if it is not one constant;
  origins    the places of parameters that the value was loaded from and has not been computed with since.
Joined over assignments until nothing changes. What an instruction does that is not known here makes an address varying,
never constant. Copies of parameters in other memory are not followed.
"""
import collections
import re

varying = "varying"
unknown = (None, None, frozenset())  # nothing assigned yet
any_number = (varying, None, frozenset())

start = re.compile(r"(?:\.(?:visible|weak|extern)\s+)*\.(entry|func)\b")
instruction = re.compile(r"(?:@!?%\w+\s+)?([a-z][\w.:]*)\s+(.*)$", re.S)
memory = re.compile(r"\[\s*([%\w$]+)\s*(?:\+\s*(-?\d+))?\s*\]$")
register = re.compile(r"%\w+")
braces = re.compile(r"^(?:\s*[{}])+\s*(?=[.@a-z]|$)")

float_arithmetic = {"add", "sub", "mul", "mad", "fma", "div", "sqrt", "rcp", "neg", "abs", "min", "max", "selp", "ex2", "rsqrt"}
floats = {"f16", "bf16", "f16x2", "bf16x2", "f32", "f64"}

function = collections.namedtuple("function", "name params code")
# effect: what flow does with it; targets: the registers of the first operand.
statement = collections.namedtuple("statement", "effect opcode operands targets text")
# index: loads at a varying place, escape: uses of an address that are not followed; (root, text of the statement) each.
# divisors: (root, offset) of what is divided by. walks: (root, offset of the rank, sizes, operands) of every walk along
# strided_axes (backends/cuda/core/axes.hpp). passed: (function, index) of parameters that get an address.
findings = collections.namedtuple("findings", "index escape divisors walks passed")


def split(operands):
    """Splits at the commas outside of brackets."""
    if not any(bracket in operands for bracket in "[{("):
        return [part.strip() for part in operands.split(",")] if operands.strip() else []
    parts, depth, part = [], 0, ""
    for c in operands:
        depth += (c in "[{(") - (c in "]})")
        if c == "," and depth == 0:
            parts.append(part.strip())
            part = ""
        else:
            part += c
    return parts + [part.strip()] if part.strip() else parts


def decoded(op, args, text):
    effect, targets = None, register.findall(args[0]) if args else []
    if op[0] in ("ld", "ldu"):
        effect = flow.load
    elif op[0] == "call":
        effect = flow.call
    elif op[0] == "st" and "param" in op:
        effect = flow.argument
    elif any(a[:1] == "[" for a in args):  # st, atom, red, prefetch, cp.async, ...
        effect = flow.touch
    elif targets and args[0][:1] in ("%", "{"):
        effect = flow.compute
    elif op[0] == "mov" and args and args[0].startswith("strided_axes_"):
        effect = flow.walk
    return statement(effect, op, args, targets, text)


def functions(ptx):
    """Every function that has a body."""
    text = re.sub(r"//[^\n]*", "", ptx)
    at = 0
    while match := start.search(text, at):
        opening, end = text.find("{", match.end()), text.find(";", match.end())
        if opening < 0 or 0 <= end < opening:  # a declaration
            at = match.end()
            continue
        head, depth, at = text[match.end():opening], 1, opening + 1
        while depth:
            brace = re.compile("[{}]").search(text, at)
            depth += 1 if brace[0] == "{" else -1
            at = brace.end()
        body = text[opening + 1:at - 1]
        # [(result)] name (parameters) directives
        name, params = re.match(r"\s*(?:\([^)]*\)\s*)?([\w$]+)\s*(?:\(([^)]*)\))?", head).groups()
        params = [re.search(r"([\w$]+)(?:\[\d*\])?\s*$", p)[1] for p in (params or "").split(",") if p.strip()]
        code = []
        # Scopes and labels are no statements. The braces of vectors and of call targets stay.
        for piece in re.sub(r"(?m)^\s*[$\w]+:|^\s*[{}]\s*$", "", body).split(";"):
            piece = piece.strip()
            if piece[:1] in ("{", "}"):
                piece = braces.sub("", piece).strip()
            found = instruction.match(piece)
            if found and piece[0] != ".":
                opcode = found[1].split(".")
                # Predicates and results of floating-point arithmetic are no addresses.
                if opcode[0] not in ("setp", "bra", "ret") and not (opcode[0] in float_arithmetic and opcode[-1] in floats):
                    code.append(decoded(opcode, split(found[2]), piece))
        yield function(name, params, code)


class flow:
    def __init__(self, f, pointers):
        """pointers: the parameters of functions that hold the address of a kernel's parameter."""
        self.f = f
        self.pointers = pointers
        # What is assigned nowhere is a special register, a predicate or a result of floating-point arithmetic.
        self.values = dict.fromkeys({r for s in f.code for r in s.targets}, unknown)
        code = [s for s in f.code if s.effect]
        self.changed = True
        while self.changed:
            self.changed = False
            self.found = findings(set(), set(), set(), set(), set())
            self.arguments = {}
            for s in code:
                s.effect(self, s)

    def value(self, operand):
        if operand[:1] == "%":
            return self.values.get(operand, any_number)
        if operand in self.f.params:
            return (None, (operand, 0), frozenset())
        if operand.startswith("{"):
            address = next((a for _, a, _ in map(self.value, register.findall(operand)) if a), None)
            return (None, (address[0], varying), frozenset()) if address else any_number
        try:
            return (int(operand.rstrip("U"), 0), None, frozenset())
        except ValueError:
            return any_number

    def join(self, register_name, new):
        old = self.values.get(register_name, unknown)
        number = new[0] if old[0] is None else old[0] if new[0] in (None, old[0]) else varying
        address = new[1] if old[1] is None else old[1] if new[1] in (None, old[1]) else (old[1][0], varying)
        joined = (number, address, old[2] | new[2])
        if joined != old:
            self.values[register_name] = joined
            self.changed = True

    def argument(self, s):
        place, offset = memory.match(s.operands[0]).groups()
        value = self.value(s.operands[1])
        self.arguments[place] = value
        if value[1] and (place.endswith("_retval0") or int(offset or 0) != 0):
            self.found.escape.add((value[1][0], s.text))

    def walk(self, s):
        sizes, operands = map(int, s.operands[0].split("_")[2:])
        for root, offset in self.value(s.operands[1])[2] or {(None, varying)}:
            self.found.walks.add((root, offset, sizes, operands))

    def load(self, s):
        base, offset = memory.match(s.operands[1]).groups()
        value, targets = self.value(base), s.targets
        if value[1] is None:
            new = [any_number] * len(targets)
        elif value[1][1] is varying:
            self.found.index.add((value[1][0], s.text))
            new = [any_number] * len(targets)
        else:
            root, first = value[1][0], value[1][1] + int(offset or 0)
            bytes_each = int(re.sub(r"\D", "", s.opcode[-1])) // 8
            if root in self.pointers and first == 0:
                new = [(None, ("*" + root, 0), frozenset())]
            else:
                new = [(varying, None, frozenset({(root, first + i * bytes_each)})) for i in range(len(targets))]
        for t, n in zip(targets, new):
            self.join(t, n)

    def call(self, s):
        """call (results), name, (arguments)"""
        parts = [p for p in s.operands if p]
        name = next((p for p in parts if re.match(r"[A-Za-z_$]", p)), None)
        names = re.findall(r"\w+", parts[-1]) if parts[-1].startswith("(") and parts[-1] is not parts[0] else []
        for i, argument in enumerate(names):
            address = self.arguments.get(argument, unknown)[1]
            if address is not None and (name is None or address[1] is varying):
                self.found.escape.add((address[0], s.text))
            elif address is not None:
                self.found.passed.add((name, i))

    def touch(self, s):
        """An instruction with another memory operand: neither reading nor storing an address is followed."""
        for a in s.operands:
            place = memory.match(a)
            for r in [place[1]] if place else register.findall(a):
                if address := self.value(r)[1]:
                    self.found.escape.add((address[0], s.text))
        if not s.operands[0].startswith("["):
            for r in s.targets:
                self.join(r, any_number)

    def compute(self, s):
        op, args = s.opcode, s.operands
        sources, targets = [self.value(a) for a in args[1:]], s.targets
        if op[0] in ("div", "rem") and op[-1][0] in "us":
            self.found.divisors.update(sources[1][2])
        if op[0] in ("mov", "cvt", "cvta") and len(sources) == 1:
            new = sources[0]
            if new[1] and len(targets) > 1:
                new = (None, (new[1][0], varying), frozenset())
        elif op[0] in ("add", "sub") and len(sources) == 2:
            new = self.sum(op[0], *sources)
        else:
            # A choice among values keeps their origins.
            origins = frozenset().union(*(v[2] for v in sources)) if op[0] in ("selp", "and") else frozenset()
            address = next((v[1] for v in sources if v[1]), None)
            new = (None if address else varying, (address[0], varying) if address else None, origins)
        for t in targets:
            self.join(t, new)

    @staticmethod
    def sum(op, x, y):
        if x[1] is None and y[1] is not None and op == "add":
            x, y = y, x
        if unknown in (x, y):
            return unknown
        if x[1] is not None:
            constant = isinstance(y[0], int) and x[1][1] is not varying
            return (None, (x[1][0], x[1][1] + (y[0] if op == "add" else -y[0]) if constant else varying), frozenset())
        if y[1] is not None:
            return (None, (y[1][0], varying), frozenset())
        if isinstance(x[0], int) and isinstance(y[0], int):
            return (x[0] + (y[0] if op == "add" else -y[0]), None, frozenset())
        return any_number


def analyse(ptx):
    """(function, findings) of every function of a PTX file; functions that get the address of a parameter are followed."""
    all_functions = list(functions(ptx))
    by_name = {f.name: f for f in all_functions}
    results, pointers = {}, {f.name: set() for f in all_functions}
    waiting = list(by_name)
    while waiting:
        name = waiting.pop()
        f = by_name[name]
        results[name] = flow(f, pointers[name]).found
        for callee, index in results[name].passed:
            if callee not in by_name:
                results[name].escape.add((callee, f"call of {callee}"))
                continue
            param = by_name[callee].params[index]
            if param not in pointers[callee]:
                pointers[callee].add(param)
                waiting.append(callee)
    return [(f, results[f.name]) for f in all_functions]

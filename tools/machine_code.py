"""What a build computes: the machine code of the loops of an elementwise operation, as text without addresses, and its hash.

CPU: the loop of an operation and format is a function of the kernels' objects. Its text has the function and all that it
reaches in the object: instructions as bytes with relocated fields zero; for a branch or call the mnemonic and its target as
function:instruction, both counted in the text; for a reference to read-only data the bytes that are read, as many as the memory
operand has; where an address is taken (lea), the whole symbol, or what follows in the section where it lies in none. Padding
(nop) is left out. So neither the place of the object, nor its other functions, nor the numbers of labels matter.
Refused, with an error: a call of a function that another object may define differently, a jump table, a read of what can be
written, and whatever is not understood. Functions of the C library stay names (tools/check_symbols.py knows which are allowed).

CUDA: the text of the kernels of an operation and format in the PTX of the newest architecture of the build, as
tools/compare_ptx.py compares it. What ptxas or the driver makes of it is not in the hash.

Instructions with what they read are all that is executed: equal text, equal results. The name and version of the compiler and
its options -O -m -f -std -D are hashed too; they can change the results only through the text, but they say what a certificate
is about, and a change of them asks for a new proof. Not hashed: where files lie, warnings, a launcher (ccache), limits of the
optimiser (--param), and options about paths and messages (-fmacro-prefix-map, -ffile-prefix-map, -fdebug-prefix-map, -fdiagnostics-*).
"""
import functools
import hashlib
import itertools
import json
import pathlib
import re
import shlex
import subprocess

import compare_ptx
import elf
import fatbin

x86_sets = ("baseline", "avx2", "avx512")
sizes = {"BYTE": 1, "WORD": 2, "DWORD": 4, "QWORD": 8, "XMMWORD": 16, "YMMWORD": 32, "ZMMWORD": 64}
relative = {2, 4}  # R_X86_64_PC32, R_X86_64_PLT32
to_linker_table = {9, 41, 42}  # R_X86_64_GOTPCREL, ..._GOTPCRELX, ..._REX_GOTPCRELX
padding = re.compile(rb"[\x66\x2e]*(?:\x90|\x0f\x1f.*)", re.S)
branch = re.compile(r"(?:bnd |notrack )?(j\w+|call|loop\w*|xbegin)\s+(.*)")


class Object:
    """An object file of x86-64, disassembled."""

    def __init__(self, path):
        self.file = elf.File(path)
        if self.file.machine != elf.x86_64:
            raise ValueError(f"{path}: expected an object of x86-64")
        self.symbols = self.file.symbols()
        self.relocations = functools.cache(self.file.relocations)
        self.code = {}  # section: [(address, end, text of the instruction)]
        out = subprocess.run(["objdump", "-d", "-z", "-w", "-M", "intel", "--no-show-raw-insn", str(path)], check=True,
                             capture_output=True, text=True).stdout
        # objdump takes the sections in the order of the file, and only those with contents.
        sections = [s for s in self.file.sections if s.kind == elf.progbits and s.flags & elf.executable and s.size > 0]
        parts = re.split(r"^Disassembly of section (.*):$", out, flags=re.M)[1:]
        if parts[::2] != [s.name for s in sections]:
            raise ValueError(f"{path}: objdump shows other sections than the file has")
        for section, part in zip(sections, parts[1::2]):
            found = [(int(at, 16), text.strip()) for at, text in re.findall(r"^ +([0-9a-f]+):\t(.*)$", part, re.M)]
            ends = [at for at, _ in found[1:]] + [section.size]
            self.code[section.index] = [(at, end, text) for (at, text), end in zip(found, ends)]

    @property
    def compiler(self):
        comment = (self.file.contents(".comment") or b"").decode("utf-8", "replace").strip("\0")
        if gcc := re.match(r"GCC: \(.*\) (\d+\.\d+\.\d+)", comment):
            return f"g++ {gcc.group(1)}"
        if clang := re.search(r"clang version (\d+\.\d+\.\d+)", comment):
            return f"clang {clang.group(1)}"
        raise ValueError(f"{self.file.path}: which compiler? its .comment is {comment!r}")

    def functions(self, prefix):
        return [s for s in self.symbols if s.kind == elf.function and s.section and s.name.startswith(prefix)
                and "." not in s.name]

    def text_of(self, function):
        """The lines of a function and of all that it reaches in this object."""
        return _Walk(self, function).lines


class _Walk:
    def __init__(self, obj, function):
        self.obj = obj
        self.found = [function]
        self.indices = {}  # by function: {address: number of the instruction}
        self.lines = []
        for f in self.found:  # grows meanwhile
            self.lines.append(f"function {self.found.index(f)}")
            self.lines += [self.line(f, *instruction) for instruction in self.instructions(f)]

    def bytes_of(self, section, at, end):
        start = self.obj.file.sections[section].offset
        return self.obj.file.data[start + at:start + end]

    def is_padding(self, section, at, end):
        return padding.fullmatch(self.bytes_of(section, at, end)) is not None

    def inside(self, f):
        return [i for i in self.obj.code[f.section] if f.value <= i[0] < f.value + f.size]

    def instructions(self, f):
        return [i for i in self.inside(f) if not self.is_padding(f.section, i[0], i[1])]

    def error(self, f, text, what):
        return ValueError(f"{self.obj.file.path}: {f.name}: {text}: {what}")

    def place(self, f, text, section, address):
        """function:instruction"""
        to = [s for s in self.obj.symbols
              if s.kind == elf.function and s.section == section and s.value <= address < s.value + s.size]
        if len(to) != 1:
            raise self.error(f, text, f"expected one function at {address:#x}, found {len(to)}")
        to = to[0]
        if to.binding != elf.local and to is not self.found[0]:
            raise self.error(f, text, f"another object may define {to.name}")
        if to not in self.found:
            self.found.append(to)
        if to not in self.indices:
            counted, number = {}, 0
            for at, end, _ in self.inside(to):  # padding counts as what follows
                counted[at] = number
                number += not self.is_padding(section, at, end)
            self.indices[to] = counted
        if address not in self.indices[to]:
            raise self.error(f, text, f"{address:#x} is within an instruction of {to.name}")
        return f"{self.found.index(to)}:{self.indices[to][address]}"

    def data(self, f, text, section, at):
        """The bytes that an instruction reads at an offset of a section, or whose address it takes."""
        s = self.obj.file.sections[section]
        if s.kind != elf.progbits or s.flags & elf.writable:
            raise self.error(f, text, f"refers to {s.name}, which may change")
        before = 0
        if text.startswith("lea "):
            whole = [y for y in self.obj.symbols if y.section == section and y.value <= at < y.value + y.size]
            end = whole[0].value + whole[0].size if whole else s.size
            before = at - whole[0].value if whole else 0
        else:
            operand = re.search(r"\b([A-Z]+) (?:PTR|BCST) (?:ds:)?\[rip", text)
            if operand is None or operand.group(1) not in sizes:
                raise self.error(f, text, "how many bytes does it read?")
            end = at + sizes[operand.group(1)]
        if at < 0 or end > s.size:
            raise self.error(f, text, f"reads beyond {s.name}")
        if any(at - before <= r.offset < end for r in self.obj.relocations(section)):
            raise self.error(f, text, "reads addresses: a jump table?")
        return f"{before}+{self.bytes_of(section, at - before, end).hex()}"

    def line(self, f, at, end, text):
        text = re.sub(r"\s+", " ", text)
        code = bytearray(self.bytes_of(f.section, at, end))
        relocations = [r for r in self.obj.relocations(f.section) if at <= r.offset < end]
        jump = branch.fullmatch(text.split(" #")[0].strip())
        if len(relocations) > 1:
            raise self.error(f, text, "several relocations")
        if not relocations:
            if "[rip" in text:
                raise self.error(f, text, "refers to its own section")
            if not jump:
                return code.hex()
            target = re.match(r"([0-9a-f]+) <", jump.group(2))
            if target is None:
                raise self.error(f, text, "an indirect jump")
            return f"{jump.group(1)} {self.place(f, text, f.section, int(target.group(1), 16))}"
        r = relocations[0]
        symbol = self.obj.symbols[r.symbol]
        if symbol.section == 0:
            if r.kind not in relative | to_linker_table or symbol.name.startswith("_ZN5repdl"):
                raise self.error(f, text, f"another object defines {symbol.name}")
            referred = f"{symbol.name}{r.addend + end - r.offset:+d}"
        elif r.kind not in relative or symbol.section >= len(self.obj.file.sections):
            raise self.error(f, text, f"a relocation of kind {r.kind}")
        else:
            place = symbol.value + r.addend + end - r.offset
            if symbol.section in self.obj.code:
                referred = self.place(f, text, symbol.section, place)
            else:
                referred = self.data(f, text, symbol.section, place)
        if jump:
            return f"{jump.group(1)} {referred}"
        code[r.offset - at:r.offset - at + 4] = bytes(4)
        return f"{code.hex()} {referred}"


def options_that_count(words):
    counted = ("-O", "-m", "-f", "-std", "-D")
    about_messages = ("-fmacro-prefix-map", "-ffile-prefix-map", "-fdebug-prefix-map", "-fdiagnostics")
    return [w for w in words if w.startswith(counted) and not w.startswith(about_messages)]


def cuda_options_that_count(words):
    """nvcc's -O is of the host's code alone: it counts as the -O3 that certificates were recorded with."""
    counted = ["-O3" if w.startswith("-O") else w for w in words if w.startswith(("-O", "-std", "-D", "-fmad", "-ftz", "-prec-", "-use_fast_math"))]
    return [w for w, _ in itertools.groupby(counted)]  # some versions of CMake say -std=c++20 a second time


def _mangled(t):
    return {"f32": "f", "f64": "d"}.get(t) or f"NS_{len(t)}{t}E"


def _cxx(t):
    return {"f32": "float", "f64": "double"}.get(t) or f"repdl::{t}"


class Build:
    """A directory that CMake built in."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        try:
            commands = json.loads((self.folder / "compile_commands.json").read_text())
        except FileNotFoundError as error:
            raise ValueError(f"{folder}: expected a directory that CMake built in, with compile_commands.json") from error
        self.objects = {}  # engine: {path of an object: its command}
        for command in commands:
            words = shlex.split(command["command"])
            path = pathlib.Path(command["directory"], words[words.index("-o") + 1])
            if found := re.search(r"/repdl_kernels_(\w+)\.dir/(?:.*/)?map/map_\w+\.cpp\.o$|"
                                  r"/repdl_(cuda)\.dir/(?:.*/)?map/map(?:_\w+)?\.cu\.o$", str(path)):
                engine = next(g for g in found.groups() if g)
                if engine in (*x86_sets, "cuda"):
                    self.objects.setdefault(engine, {})[path] = words
        self.object = functools.cache(Object)
        self.ptx = functools.cache(self._ptx)

    @property
    def engines(self):
        return [e for e in (*x86_sets, "cuda") if e in self.objects]

    def compiler(self, engine):
        if engine == "cuda":
            files = sorted((self.folder / "CMakeFiles").glob("*/CMakeCUDACompiler.cmake"))
            text = "".join(f.read_text() for f in files)
            version = re.search(r'set\(CMAKE_CUDA_COMPILER_VERSION "([\d.]+)"', text)
            if len(files) != 1 or version is None:
                raise ValueError(f"{self.folder}: which version of nvcc?")
            architectures = {self.ptx(path)[0] for path in self.objects["cuda"]}
            if len(architectures) != 1:
                raise ValueError(f"{self.folder}: objects for several architectures; build again")
            return f"nvcc {version.group(1)} for compute_{architectures.pop()}"
        names = {self.object(path).compiler for path in self.objects[engine]}
        if len(names) != 1:
            raise ValueError(f"{self.folder}: objects of several compilers: {', '.join(sorted(names))}; build again")
        return names.pop()

    def text(self, engine, op, formats):
        """formats: of the operands, or (from, to) of a conversion."""
        if engine == "cuda":
            return self._ptx_text(op, formats)
        loop = (f"_ZN5repdl3cpu{len(engine)}{engine}12_GLOBAL__N_1" +
                (f"12convert_loopI{_mangled(formats[0])}{_mangled(formats[1])}E" if op == "convert" else
                 f"4loopINS_3ops{len(op)}{op}E{_mangled(formats[0])}JEE"))
        found = [(self.object(path), f, words) for path, words in self.objects[engine].items()
                 for f in self.object(path).functions(loop)]
        if len(found) != 1:
            raise ValueError(f"{self.folder}: {engine}: expected one loop of {op} {' '.join(formats)}, found {len(found)}")
        obj, f, words = found[0]
        return "\n".join([f"compiler {self.compiler(engine)}", f"options {' '.join(options_that_count(words[1:]))}",
                          *obj.text_of(f)]) + "\n"

    def _ptx(self, path):
        """(architecture, header, kernels) of the newest PTX of an object"""
        texts = fatbin.ptx_of(path)
        newest = max(texts)
        header = re.findall(r"^\.(?:version|target|address_size).*$", texts[newest], re.M)
        return newest, header, compare_ptx.kernels_of(texts[newest])

    def _ptx_text(self, op, formats):
        of = (f"conversion<{_cxx(formats[1])}, {_cxx(formats[0])}>" if op == "convert" else
              f"elementwise<ops::{op}, {_cxx(formats[0])}>").replace("repdl::", "")
        found = [(name, body, path) for path in self.objects["cuda"] for name, body in self.ptx(path)[2].items()
                 if any(f"<{of}{after}" in name.replace(" >", ">") for after in ">,")]
        paths = {path for _, _, path in found}
        if len(found) != 3 or len(paths) != 1:
            raise ValueError(f"{self.folder}: expected three kernels of {op} {' '.join(formats)} in one object, found "
                             f"{len(found)}")
        path = paths.pop()
        lines = [f"compiler {self.compiler('cuda')}",
                 f"options {' '.join(cuda_options_that_count(self.objects['cuda'][path][1:]))}",
                 *self.ptx(path)[1]]
        for name, body, _ in sorted(found):
            # SYMBOL: functions, whose text is there, too.
            own = "PARAMETER_|CONSTANT_|SYMBOL|__local_depot|param|retval|func_retval"
            if outside := re.search(rf"(?:\[|,\s*)(?!{own})[A-Za-z_][\w$]*\s*[];+].*", body):
                raise ValueError(f"{path}: {name}: refers to what is outside of the kernel: {outside.group()}")
            lines += [name, body]
        return "\n".join(lines) + "\n"

    def hash(self, engine, op, all_formats):
        """Of the loops of an operation in each of several formats."""
        h = hashlib.sha256()
        for formats in all_formats:
            h.update(" ".join((op, *formats)).encode() + b"\n" + self.text(engine, op, formats).encode())
        return h.hexdigest()

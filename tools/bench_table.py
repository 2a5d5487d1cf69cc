#!/usr/bin/env python3
"""Runs the benchmarks, prints a table per family and draws the ratios.

    tools/bench_table.py [--out DIR] PROGRAM [ARG...]         ARG: a family, or of Google Benchmark: --benchmark_filter=REGEX
    tools/bench_table.py [--out DIR] --from FILE              the same of a file in Google Benchmark's JSON format
    tools/bench_table.py --raw PROGRAM [ARG...]               Google Benchmark's own output
    tools/bench_table.py --against OLD PROGRAM [ARG...]       row by row against an older build of the benchmarks
    tools/bench_table.py --pairs FILE...                      the same of JSON files: old, new, old, new, ...

Writes DIR/bench.json and DIR/bench.svg (DIR: build/bench). A ratio is our speed over the peer's, the median of 15 rounds in
which both take turns (bench/by_turns.hpp): 1 is as fast, more is faster. The interval contains the median of all rounds that
there could be with 95 % confidence or a little more, whatever their distribution.

--against: each row is run 15 times by both programs, in turns. Its ratio is the new time over the old one, and it fails when
the whole interval lies above 1.03. Exit status 1 when a row failed. Build both with the same bench/, so that only the library
differs.
"""
import argparse
import json
import math
import os
import pathlib
import re
import signal
import statistics
import subprocess
import sys
from xml.sax.saxutils import escape

ROUNDS = 15
SLOWER = 1.03  # above it, a row of --against fails
# Set by this script: what belongs to --raw.
OWN = ("--benchmark_format", "--benchmark_out", "--benchmark_out_format", "--benchmark_list_tests")


def fail(message):
    sys.exit(f"bench_table.py: {message}")


# ------------------------------------------------------------------------------------------------ what a program prints

def read(pieces):
    """Of a text in Google Benchmark's JSON format, which may end early: the context, then each row as soon as it is complete."""
    decoder, text, inside = json.JSONDecoder(), "", False
    for piece in pieces:
        text += piece
        if not inside:
            begin = re.search(r'"benchmarks"\s*:\s*\[', text)
            if begin is None:
                continue
            yield json.loads(text[: begin.start()].rstrip().rstrip(",") + "}").get("context", {})
            text, inside = text[begin.end():], True
        while True:
            text = text.lstrip(", \r\n")
            try:
                row, end = decoder.raw_decode(text)
            except ValueError:
                break
            yield row
            text = text[end:]


def plain_name(name):
    """Without what Google Benchmark appends: exp/cache/avx2/iterations:1/manual_time is exp/cache/avx2."""
    return re.sub(r"(/(iterations|repeats|threads|min_time|min_warmup_time):[^/]*|/(manual|real|process)_time)+$", "", name)


def seconds(raw):
    """Of one call, on the clock that the benchmark chose."""
    clock = "real_time" if re.search(r"/(manual|real)_time\b", raw["run_name"]) else "cpu_time"
    return raw[clock] * {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}[raw["time_unit"]]


class Row:
    """A benchmark; of several repetitions the medians."""

    def __init__(self, raws):
        first = raws[0]
        self.name = plain_name(first["run_name"])
        self.error = next((raw.get("error_message", "failed") for raw in raws if raw.get("error_occurred")), None)
        # bench::add_row's label is FAMILY, ENGINE; the name OPERATION/PARAMETER... with the engine among them.
        self.operation, *parameters = self.name.split("/")
        self.family, _, self.engine = first.get("label", "").partition(", ")
        self.family = self.family or self.operation
        if self.engine in parameters:
            parameters.remove(self.engine)
        self.parameters = " ".join(parameters)
        self.seconds = self.rate = self.ratio = self.interval = None
        self.peer = ""
        if self.error is not None:
            return

        def median(key):
            return statistics.median(raw[key] for raw in raws)

        self.seconds = statistics.median(map(seconds, raws))
        self.rate = next(((median(unit), unit) for unit in ("flop/s", "ns/element", "B/s") if unit in first), None)
        counter = next((key for key in first if key.startswith("of_")), None)
        if counter is not None:
            self.peer, self.ratio = counter[len("of_"):], median(counter)
            if "low" in first and "high" in first:
                self.interval = median("low"), median("high")


def rows_of(raws):
    """Repetitions of one benchmark are one row. Where only aggregates were reported, their median."""
    by_name = {}
    for raw in raws:
        if raw.get("run_type") != "aggregate":
            by_name.setdefault(raw["run_name"], []).append(raw)
    for raw in raws:
        if raw.get("aggregate_name") == "median":
            by_name.setdefault(raw["run_name"], [raw])
    return [Row(group) for group in by_name.values()]


# ---------------------------------------------------------------------------------------------------------- the table

def three_digits(x):
    return f"{x:.{max(0, 2 - math.floor(math.log10(x)))}f}" if 0 < x < math.inf else str(x)


def time_text(s):
    unit, scale = next(((u, c) for u, c in (("s", 1), ("ms", 1e-3), ("us", 1e-6)) if s >= c), ("ns", 1e-9))
    return f"{three_digits(s / scale)} {unit}"


def rate_text(rate):
    if rate is None:
        return ""
    value, unit = rate
    if unit == "ns/element":
        return f"{three_digits(value)} {unit}"
    prefix, scale = next(((p, c) for p, c in (("T", 1e12), ("G", 1e9), ("M", 1e6)) if value >= c), ("", 1))
    return f"{three_digits(value / scale)} {prefix}{unit}"


def interval_text(interval):
    return "" if interval is None else f"[{three_digits(interval[0])}, {three_digits(interval[1])}]"


def aligned(header, lines, right):
    """Columns as wide as their longest entry; those in `right` end at the right."""
    widths = [max(map(len, column)) for column in zip(header, *lines)]
    for line in [header, *lines]:
        cells = (cell.rjust(w) if i in right else cell.ljust(w) for i, (cell, w) in enumerate(zip(line, widths)))
        yield "  " + "  ".join(cells).rstrip()


def grouped(rows, key):
    """Lists of rows with the same key, in the order of their first rows."""
    groups = {}
    for row in rows:
        groups.setdefault(key(row), []).append(row)
    return groups


def families(rows):
    """Of each family its lines: the rows of one operation and parameters on all engines."""
    return {family: grouped(members, lambda row: (row.operation, row.parameters, row.peer))
            for family, members in grouped(rows, lambda row: row.family).items()}


def print_table(rows):
    header = ["operation", "parameters", "engine", "time", "rate", "peer", "ratio", "95 % interval"]
    for family, groups in families(rows).items():
        members = sum(groups.values(), [])
        compared = sum(row.ratio is not None for row in members)
        print(f"\n{family}: {compared} of {len(members)} rows with a peer; ratio: our speed over the peer's")
        lines = [[row.operation, row.parameters, row.engine,
                  "failed" if row.error is not None else time_text(row.seconds), rate_text(row.rate), row.peer,
                  "" if row.ratio is None else three_digits(row.ratio), interval_text(row.interval)] for row in members]
        print("\n".join(aligned(header, lines, {3, 4, 6})))
        for row in members:
            if row.error is not None:
                print(f"  {row.name}: {row.error}")
        print_summary(members)


# -------------------------------------------------------------------------------------------------------- the drawing

COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#7a5c00", "#444444"]


def marker(kind, x, y, colour, title=""):
    """A circle, square, diamond or triangle: not told apart by colour alone."""
    shape = [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4.2"', f'<rect x="{x - 3.8:.1f}" y="{y - 3.8:.1f}" width="7.6" height="7.6"',
             f'<path d="M{x:.1f} {y - 5.4:.1f}l5.4 5.4l-5.4 5.4l-5.4 -5.4z"',
             f'<path d="M{x:.1f} {y - 5:.1f}l5 9h-10z"'][kind % 4]
    return f'{shape} fill="{colour}"><title>{escape(title)}</title></{shape[1:].split()[0]}>'


def ticks(low, high):
    """1, 2 and 5 times powers of ten, from at or below `low` to at or above `high`."""
    all_ticks = [m * 10.0**e for e in range(-6, 7) for m in (1, 2, 5)]
    begin = max([t for t in all_ticks if t <= low], default=all_ticks[0])
    end = min([t for t in all_ticks if t >= high], default=all_ticks[-1])
    return [t for t in all_ticks if begin <= t <= end]


def drawing(rows, title):
    """SVG: a line per operation and parameters, a mark per engine at its ratio, its interval as a bar."""
    rows = [row for row in rows if row.ratio is not None and 0 < row.ratio < math.inf]
    engines = list(dict.fromkeys(row.engine for row in rows))
    ends = [x for row in rows for x in (row.interval or ()) + (row.ratio,) if 0 < x < math.inf]
    scale = ticks(min([0.5, *ends]), max([2.0, *ends]))
    # Letters of these sizes are at most 8 wide on average.
    left = 40 + 8 * max([30, *(len(row.operation + row.parameters) + 1 for row in rows)])
    right = left + 500
    width, step = right + 40 + 8 * max([8, *(len(row.peer) for row in rows)]), 22
    first, span = math.log(scale[0]), math.log(scale[-1] / scale[0])

    def at(ratio):
        return left + (right - left) * (min(max(math.log(ratio), first), first + span) - first) / span

    out, y = [], 128

    def text(x, y, words, size=13, anchor="start", colour="#222", extra=""):
        out.append(f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" fill="{colour}"{extra}>'
                   f'{escape(words)}</text>')

    text(20, 36, "Our speed over the peer's", 22, extra=' font-weight="bold"')
    text(20, 60, title)
    x = 20
    for i, engine in enumerate(engines):
        colour = COLOURS[i % len(COLOURS)]
        out.append(marker(i, x + 5, 82, colour, engine))
        text(x + 16, 86.5, engine)
        x += 40 + 8 * len(engine)
    text(x, 86.5, "bar: 95 % interval of the median of 15 rounds by turns", colour="#555")
    for family, lines in families(rows).items():
        text(20, y + 5, family, 16, extra=' font-weight="bold"')
        text(at(1), y - 13, "slower  \u2190  our speed / the peer's (logarithmic)  \u2192  faster", 12, "middle", "#555")
        for tick in scale:
            text(at(tick), y + 5, f"{tick:g}", 12, "middle", "#555")
        y += 14
        bottom = y + step * len(lines)
        for tick in scale:
            strong = tick == 1
            out.append(f'<line x1="{at(tick):.1f}" y1="{y}" x2="{at(tick):.1f}" y2="{bottom}" '
                       f'stroke="{"#222" if strong else "#ddd"}" stroke-width="{1.6 if strong else 1}"/>')
        for number, ((operation, parameters, peer), marks) in enumerate(lines.items()):
            if number % 2 == 0:
                out.append(f'<rect x="20" y="{y}" width="{width - 40}" height="{step}" fill="#000" fill-opacity="0.035"/>')
            middle = y + step / 2
            text(left - 12, middle + 4.5, f"{operation} {parameters}".strip(), anchor="end")
            text(right + 14, middle + 4.5, peer, colour="#555")
            for row in marks:
                i = engines.index(row.engine)
                colour, spot = COLOURS[i % len(COLOURS)], middle + 4.5 * (i - (len(engines) - 1) / 2)
                if row.interval is not None:
                    low, high = map(at, row.interval)
                    out.append(f'<line x1="{low:.1f}" y1="{spot:.1f}" x2="{high:.1f}" y2="{spot:.1f}" stroke="{colour}" '
                               f'stroke-width="2.5" stroke-opacity="0.55"/>')
                out.append(marker(i, at(row.ratio), spot, colour,
                                  f"{row.name}: {three_digits(row.ratio)} of {peer} {interval_text(row.interval)}".strip()))
            y += step
        y += 52
    head = (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {y - 20}" width="{width}" height="{y - 20}" '
            f'font-family="DejaVu Sans, Verdana, sans-serif" role="img">\n<title>librepdl: our speed over the peer\'s</title>\n'
            f'<rect width="100%" height="100%" fill="#fff"/>')
    return "\n".join([head, *out, "</svg>\n"])


# ------------------------------------------------------------------------------------------------------- the summary

# The operations whose mean stands for a peer; the others that are compared with it have a mean of their own.
MEAN_OF = {"sleef": ("exp", "exp2", "log", "log2", "sin", "cos", "tanh", "erf", "pow")}


def summary(members):
    """Of rows of one family, for each peer, parameters and engine: how many operations, the geometric mean of their ratios, the
    lowest one. Peers of one operation only need none."""
    for (peer, parameters, engine), rows in grouped([row for row in members if row.ratio],
                                                    lambda row: (row.peer, row.parameters, row.engine)).items():
        named = [row for row in rows if row.operation in MEAN_OF.get(peer, ())]
        others = [row for row in rows if row not in named]
        for meant, of in ((named, ", ".join(row.operation for row in named)),
                          (others, f"{len(others)} others" if named else str(len(others)))):
            if len({row.operation for row in meant}) < 2:
                continue
            mean = math.exp(statistics.fmean(math.log(row.ratio) for row in meant))
            lowest = min(meant, key=lambda row: row.ratio)
            yield [peer, parameters, engine, three_digits(mean), of, three_digits(lowest.ratio), lowest.operation]


def print_summary(members):
    lines = list(summary(members))
    if lines:
        header = ["peer", "parameters", "engine", "geometric mean", "of", "lowest ratio", "of"]
        print()
        print("\n".join(aligned(header, lines, {3, 5})))


# ------------------------------------------------------------------------------------------------------------ running

def list_rows(command):
    """The names that Google Benchmark knows the chosen rows by."""
    try:
        done = subprocess.run([*command, "--benchmark_list_tests=true"], stdout=subprocess.PIPE, text=True)
    except OSError as error:
        fail(f"{command[0]}: {error.strerror}")
    if done.returncode != 0:
        fail(f"{' '.join(command)}: exit status {done.returncode}")
    names = done.stdout.split("\n")[:-1]
    if not names:
        fail(f"{' '.join(command)}: no row of the benchmarks matches")
    return names


def progress(number, count, words):
    print(f"[{number:{len(str(count))}}/{count}] {words}", file=sys.stderr, flush=True)


def make(directory):
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        fail(f"--out: {directory}: {error.strerror}")


def run(command, out):
    """The program's context and rows, and what was wrong with it. Says each row as it comes."""
    count = len(list_rows(command))
    make(out)  # now, not when all is measured
    print(f"{count} rows, each of {ROUNDS} rounds", file=sys.stderr, flush=True)
    context, raws, seen = {}, [], {}
    wrong = None
    with subprocess.Popen([*command, "--benchmark_format=json"], stdout=subprocess.PIPE, text=True) as program:
        try:
            answers = read(program.stdout)
            context = next(answers, {})
            for raw in answers:
                raws.append(raw)
                row = Row([raw])
                if raw["run_name"] not in seen:
                    seen[raw["run_name"]] = None
                    words = "failed: " + row.error if row.error else time_text(row.seconds)
                    if row.ratio is not None:
                        words += f", {three_digits(row.ratio)} of {row.peer} {interval_text(row.interval)}"
                    progress(len(seen), count, f"{row.name}  {words}")
        except KeyboardInterrupt:
            program.terminate()
            wrong = "interrupted"
    if wrong is None and program.returncode != 0:
        wrong = f"{command[0]}: exit status {program.returncode}"
    cpu = re.search(r"model name\s*:\s*(.*)", pathlib.Path("/proc/cpuinfo").read_text())
    context["cpu"] = cpu.group(1) if cpu else "unknown CPU"
    return context, raws, wrong


def write(path, words):
    """Completely or not at all."""
    part = path.with_name(path.name + ".part")
    part.write_text(words)
    os.replace(part, path)


def show(out, context, raws, wrong):
    rows = rows_of(raws)
    make(out)
    write(out / "bench.json", json.dumps({"context": context, "benchmarks": raws}, indent=1) + "\n")
    title = ", ".join(filter(None, [context.get("cpu"), context.get("date", "")[:10]]))
    write(out / "bench.svg", drawing(rows, title))
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # as every filter: `| head` ends it quietly
    print_table(rows)
    print(f"\n{len(rows)} rows; drawing: {out}/bench.svg; figures: {out}/bench.json")
    failed = sum(row.error is not None for row in rows)
    if wrong is None and failed > 0:
        wrong = f"{failed} rows failed"
    if wrong is None and not rows:
        wrong = "no rows"
    if wrong is not None:
        fail(f"{wrong}; the table has what was measured")


# -------------------------------------------------------------------------------------------------- against an old build

def interval_of_median(values):
    """The k-th smallest and the k-th largest, of the largest k for which the median of the distribution lies outside of them in
    at most 5 % of all cases, that is, k - 1 or fewer of n fair coins show heads, twice; None for fewer than 6 values."""
    n, outside, k = len(values), 0, 0
    while 2 * (outside + math.comb(n, k)) <= 0.05 * 2**n:
        outside += math.comb(n, k)
        k += 1
    ordered = sorted(values)
    return (ordered[k - 1], ordered[n - k]) if k > 0 else None


def run_row(command, name):
    # Google Benchmark's regular expressions: only what stands in names, and means something, is escaped.
    pattern = re.sub(r"([.+*?()\[\]{}|^$\\])", r"\\\1", name)
    done = subprocess.run([*command, f"--benchmark_filter=^{pattern}$", "--benchmark_format=json"], stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, text=True)
    _, *raws = read([done.stdout]) if done.stdout else [{}]
    rows = rows_of(raws)
    if done.returncode != 0 or len(rows) != 1 or rows[0].error is not None:
        fail(f"{command[0]}: {name}: expected one row, got {len(rows)}, exit status {done.returncode}")
    return rows[0].seconds


def compared(name, times):
    """A row of the comparison, and whether it is slower. times: of the old program, of the new one, round by round."""
    ratios = [new / old for old, new in zip(*times)]
    low, high = interval_of_median(ratios)
    return [name, *(time_text(statistics.median(t)) for t in times), f"{statistics.median(ratios):.3f}",
            f"[{low:.3f}, {high:.3f}]", "slower" if low > SLOWER else ""]


def in_both(old, new):
    """The new program's names that the old one has too; says the others."""
    for mine, other, which in ((old, new, "old"), (new, old, "new")):
        alone = [name for name in mine if name not in other]
        if alone:
            print(f"only in the {which} program, not compared: {', '.join(alone)}")
    common = [name for name in new if name in old]
    if not common:
        fail("the programs have no row in common")
    return common


def verdict(lines, rounds):
    print("\n".join(aligned(["row", "old", "new", "new / old", "95 % interval", ""], lines, {1, 2, 3})))
    slower = ", ".join(line[0] for line in lines if line[-1])
    print(f"{len(lines)} rows compared in {rounds} rounds; slower by more than {SLOWER}: {slower or 'none'}")
    sys.exit(bool(slower))


def compare(old, new):
    # Rows whose time Google Benchmark chooses: the default is long for 15 rounds.
    commands = [[command[0], "--benchmark_min_time=0.05", *command[1:]] for command in (old, new)]
    names = [{plain_name(name): name for name in list_rows(command)} for command in commands]
    common, lines = in_both(*names), []
    for number, name in enumerate(common, 1):
        times = [[], []]
        for turn in range(ROUNDS):
            for which in ((0, 1), (1, 0))[turn % 2]:
                times[which].append(run_row(commands[which], names[which][name]))
        lines.append(compared(name, times))
        progress(number, len(common), "  ".join([name, *lines[-1][3:]]).rstrip())
    verdict(lines, ROUNDS)


def read_file(path):
    try:
        context, *raws = read([path.read_text()])
    except (OSError, ValueError) as error:
        fail(f"{path}: expected Google Benchmark's JSON: {error}")
    return context, raws


def compare_files(files):
    rounds = len(files) // 2
    if len(files) % 2 == 1 or interval_of_median(list(range(rounds))) is None:
        fail(f"--pairs: expected an old and a new file of each of at least 6 rounds, got {len(files)} files")
    runs = [{row.name: row.seconds for row in rows_of(read_file(path)[1]) if row.error is None} for path in files]
    common = in_both(*({name: None for name in runs[which] if all(name in run for run in runs[which::2])} for which in (0, 1)))
    verdict([compared(name, [[run[name] for run in runs[which::2]] for which in (0, 1)]) for name in common], rounds)


def main():
    parser = argparse.ArgumentParser(description=__doc__, usage=argparse.SUPPRESS, allow_abbrev=False,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("build/bench"), metavar="DIR")
    way = parser.add_mutually_exclusive_group()
    way.add_argument("--from", dest="file", type=pathlib.Path, metavar="FILE")
    way.add_argument("--raw", action="store_true")
    way.add_argument("--against", metavar="OLD")
    way.add_argument("--pairs", type=pathlib.Path, nargs="+", metavar="FILE")
    parser.add_argument("program", nargs="?")
    args, rest = parser.parse_known_args()
    if (args.file or args.pairs) and (args.program or rest) or not (args.file or args.pairs or args.program):
        parser.error("expected a program, or --from or --pairs and files")
    if args.raw:
        os.execv(args.program, [args.program, *rest])
    for word in rest:
        if word.split("=")[0] in OWN:
            parser.error(f"{word}: expected with --raw")
    if args.pairs is not None:
        compare_files(args.pairs)
    elif args.file is not None:
        show(args.out, *read_file(args.file), None)
    elif args.against is not None:
        compare([args.against, *rest], [args.program, *rest])
    else:
        show(args.out, *run([args.program, *rest], args.out))


if __name__ == "__main__":
    main()

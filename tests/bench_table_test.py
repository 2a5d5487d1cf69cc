#!/usr/bin/env python3
"""Tests of tools/bench_table.py on what the benchmarks printed once (bench_table_sample.json), and on programs that behave
like them."""
import contextlib
import io
import itertools
import json
import math
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import unittest.mock as mock
import xml.etree.ElementTree

HERE = pathlib.Path(__file__).resolve().parent
SCRIPT, SAMPLE = HERE.parent / "tools/bench_table.py", HERE / "bench_table_sample.json"
sys.path.insert(0, str(SCRIPT.parent))
import bench_table  # noqa: E402

# Google Benchmark as far as the script knows it. What follows runs before the rows are printed.
PROGRAM = """#!{python} -SE
import json, os, re, sys, time
options = dict(a.partition("=")[::2] for a in sys.argv[1:])
document = json.load(open("{sample}"))
rows = [r for r in document["benchmarks"] if re.search(options.get("--benchmark_filter", ""), r["run_name"])]
if "--benchmark_list_tests" in options:
    print("".join(r["run_name"] + "\\n" for r in rows), end="")
    sys.exit()
if "--benchmark_format" not in options:
    print("raw", *sys.argv[1:])
    sys.exit(7)
def begin():
    print('{{"context": ' + json.dumps(document["context"]) + ', "benchmarks": [', flush=True)
def end():
    print("]}}")
{behaviour}
begin()
print(",\\n".join(json.dumps(r, indent=2) for r in rows), flush=True)
end()
"""


class BenchTable(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = pathlib.Path(directory.name)
        self.out = self.directory / "out"
        self.rows = json.loads(SAMPLE.read_text())["benchmarks"]

    def program(self, behaviour="", name="program", rows=None):
        path, sample = self.directory / name, self.directory / f"{name}.json"
        sample.write_text(json.dumps({"context": {}, "benchmarks": self.rows if rows is None else rows}))
        path.write_text(PROGRAM.format(python=sys.executable, sample=sample, behaviour=behaviour))
        path.chmod(0o755)
        return str(path)

    def script(self, *arguments, status=0):
        done = subprocess.run([sys.executable, SCRIPT, "--out", self.out, *arguments], capture_output=True, text=True)
        self.assertEqual(done.returncode, status, done.stderr)
        return done

    def from_rows(self, rows, status=0):
        file = self.directory / "rows.json"
        file.write_text(json.dumps({"context": {}, "benchmarks": rows}))
        return self.script("--from", file, status=status).stdout

    def cells(self, table):
        """The lines of a table by their first three columns."""
        lines = (re.split(r" {2,}", line.strip()) for line in table.splitlines())
        return {tuple(line[:3]): line[3:] for line in lines if len(line) > 3}

    def test_the_table(self):
        table = self.script("--from", SAMPLE).stdout
        self.assertEqual(re.findall(r"^(\w.*): (\d+) of (\d+) rows with a peer", table, re.M),
                         [("convolutions", "1", "1"), ("elementwise", "2", "4"), ("matrix products", "2", "2"),
                          ("random numbers", "1", "1"), ("sums", "1", "2")])
        cells = self.cells(table)
        self.assertEqual(cells["conv2d", "exact forward 512x7x7,k3,s1,o512", "avx512"],
                         ["47.6 ms", "38.9 Gflop/s", "onednn", "0.311", "[0.305, 0.316]"])
        self.assertEqual(cells["exp", "cache", "avx2"], ["30.4 us", "1.86 ns/element", "libmvec", "0.387", "[0.365, 0.400]"])
        self.assertEqual(cells["add", "cache", "avx512"], ["3.53 us", "0.215 ns/element"])
        self.assertEqual(cells["matmul", "exact 64x64x64", "avx2"], ["36.8 us", "14.3 Gflop/s", "sgemm", "0.123", "[0.120, 0.125]"])
        self.assertEqual(cells["sum-axis", "0", "avx512"], ["4.97 ms", "1.19 ns/element"])
        self.assertIn("10 rows; drawing:", table)
        # Once in the table for each row of the file.
        self.assertEqual(len(re.findall(r"\d (?:ns|us|ms|s)  ", table)), len(self.rows))

    def test_the_rows_of_one_line_stand_together(self):
        by_engine = sorted(self.rows, key=lambda row: row["label"].split(", ")[1])
        table = self.from_rows(by_engine)
        self.assertRegex(table, r"exp +cache +avx2 .*\n *exp +cache +avx512 ")
        self.assertEqual(table.count("elementwise:"), 1)

    def test_the_summary(self):
        def row(operation, what, peer, ratio):
            name = f"{operation}/{what}/avx512"
            return {"name": name, "run_name": name, "run_type": "iteration", "real_time": 1.0, "cpu_time": 1.0, "time_unit": "us",
                    f"of_{peer}": ratio, "low": ratio, "high": ratio, "label": "elementwise, avx512"}
        table = self.from_rows([row("exp", "cache", "sleef", 0.5), row("log", "cache", "sleef", 2.0),
                                row("expm1", "cache", "sleef", 0.25), row("tan", "cache", "sleef", 1.0),
                                row("exp", "f16", "f32", 1.0), row("add", "f16", "f32", 4.0), row("exp", "memory", "bound", 0.9)])
        self.assertRegex(table, r"sleef +cache +avx512 +1\.00  exp, log +0\.500  exp\n")  # the mean is of named operations
        self.assertRegex(table, r"sleef +cache +avx512 +0\.500  2 others +0\.250  expm1\n")
        self.assertRegex(table, r"f32 +f16 +avx512 +2\.00  2 +1\.00  exp\n")
        self.assertNotRegex(table, r"bound +memory +avx512 +0\.9")  # of one operation

    def test_the_drawing(self):
        self.script("--from", SAMPLE)
        text = (self.out / "bench.svg").read_text()
        self.assertNotIn("%g", text)
        svg = xml.etree.ElementTree.fromstring(text)
        tag = "{http://www.w3.org/2000/svg}"
        words = [t.text for t in svg.iter(tag + "text")]
        for expected in ("Our speed over the peer's", "elementwise", "exp cache", "libmvec", "avx512", "0.5", "1", "2"):
            self.assertIn(expected, words)
        self.assertTrue(all(float(t.get("font-size")) >= 12 for t in svg.iter(tag + "text")))
        width, height = map(float, svg.get("viewBox").split()[2:])
        self.assertEqual((float(svg.get("width")), float(svg.get("height"))), (width, height))
        for t in svg.iter(tag + "text"):
            x, y = float(t.get("x")), float(t.get("y"))
            left = x - {"start": 0, "middle": 0.5, "end": 1}[t.get("text-anchor")] * 0.57 * float(t.get("font-size")) * len(t.text)
            self.assertTrue(0 < left < x + 1 < width and 0 < y < height, t.text)
        one = {float(line.get("x1")) for line in svg.iter(tag + "line") if line.get("stroke") == "#222"}
        self.assertEqual(len(one), 1)
        # Marks with the row's name: left of the line at 1 the slower rows, right of it the faster ones.
        marks = [(m, m.find(tag + "title").text) for m in svg.iter() if m.tag != tag + "svg" and m.find(tag + "title") is not None]
        marks = [(m, title) for m, title in marks if "/" in title]
        self.assertEqual(len(marks), sum(any(key.startswith("of_") for key in row) for row in self.rows))
        for m, title in marks:
            x = float(m.get("cx") or m.get("x") or re.match(r"M([0-9.]+)", m.get("d")).group(1))
            ratio = float(re.search(r": ([0-9.]+) of", title).group(1))
            self.assertEqual(x < one.copy().pop(), ratio < 1, title)

    def test_text_in_the_drawing_is_escaped(self):
        self.rows[0]["label"] = "a < b & c, <engine>"
        self.from_rows(self.rows)
        svg = xml.etree.ElementTree.fromstring((self.out / "bench.svg").read_text())
        self.assertIn("a < b & c", [t.text for t in svg.iter("{http://www.w3.org/2000/svg}text")])

    def test_running(self):
        done = self.script(self.program(), "--benchmark_filter=cache")
        self.assertEqual(re.findall(r"^\[(\d)/4\] (\S+)", done.stderr, re.M),
                         [("1", "add/cache/avx2"), ("2", "add/cache/avx512"), ("3", "exp/cache/avx2"), ("4", "exp/cache/avx512")])
        self.assertIn("[4/4] exp/cache/avx512  21.3 us, 0.592 of libmvec [0.585, 0.597]\n", done.stderr)
        self.assertEqual(len(self.cells(done.stdout)), 4 + 1)  # and the header
        # What was written gives the same table again.
        again = self.script("--from", self.out / "bench.json").stdout
        self.assertEqual(again, done.stdout)

    def test_each_row_is_told_as_it_comes(self):
        behaviour = "begin(); print(json.dumps(rows[0], indent=2) + ',', flush=True); time.sleep(60)"
        # Background jobs of a shell ignore SIGINT, and so would the script.
        program = subprocess.Popen([sys.executable, SCRIPT, "--out", self.out, self.program(behaviour)], stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True,
                                   preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
        self.assertEqual(program.stderr.readline(), "10 rows, each of 15 rounds\n")
        self.assertRegex(program.stderr.readline(), r"^\[ 1/10\] conv2d")
        program.send_signal(signal.SIGINT)
        start = time.monotonic()
        table, errors = program.communicate(timeout=30)
        self.assertLess(time.monotonic() - start, 20)
        self.assertEqual(program.returncode, 1)
        self.assertIn("conv2d", table)
        self.assertIn("interrupted; the table has what was measured", errors)

    def test_a_program_that_dies_leaves_its_rows(self):
        text = "print(',\\n'.join(json.dumps(r, indent=2) for r in rows[:3])[:-20], flush=True)"
        done = self.script(self.program(f"begin(); {text}; os._exit(3)"), status=1)
        self.assertIn("exit status 3; the table has what was measured", done.stderr)
        self.assertEqual(len(re.findall(r"^ +(conv2d|add) ", done.stdout, re.M)), 2)
        self.assertEqual(len(json.loads((self.out / "bench.json").read_text())["benchmarks"]), 2)

    def test_rows_that_fail(self):
        self.rows[3].update(error_occurred=True, error_message="no memory")
        table = self.from_rows(self.rows, status=1)
        self.assertRegex(table, r"exp +cache +avx2 +failed\n")
        self.assertIn("  exp/cache/avx2: no memory\n", table)

    def test_repetitions_give_the_median(self):
        row = self.rows[3]
        rows = [{**row, "repetitions": 3, "repetition_index": i, "real_time": row["real_time"] * factor, "of_libmvec": 0.2 * factor}
                for i, factor in enumerate((9, 1, 2))]
        aggregates = [{**row, "run_type": "aggregate", "aggregate_name": name, "real_time": 77.0} for name in ("mean", "median", "cv")]
        self.assertEqual(self.cells(self.from_rows(rows + aggregates))["exp", "cache", "avx2"][::3], ["60.8 us", "0.400"])
        self.assertEqual(self.cells(self.from_rows(aggregates))["exp", "cache", "avx2"][0], "77.0 us")

    def test_rows_of_a_gpu(self):
        # As repdl_cuda_bench writes them.
        rows = [{"name": "sum/of rows 131072x4096", "run_name": "sum/of rows 131072x4096", "run_type": "iteration",
                 "real_time": 0.524, "cpu_time": 0.524, "time_unit": "ms", "B/s": 4.098e12, "of_cub": 0.98, "low": 0.97,
                 "high": 0.991, "label": "reductions, NVIDIA H200"},
                {"name": "permutation/2^24", "run_name": "permutation/2^24", "run_type": "iteration", "real_time": 2.5,
                 "cpu_time": 2.5, "time_unit": "ms", "B/s": 5.4e10, "label": "elementwise and random, NVIDIA H200"}]
        cells = self.cells(self.from_rows(rows))
        self.assertEqual(cells["sum", "of rows 131072x4096", "NVIDIA H200"],
                         ["524 us", "4.10 TB/s", "cub", "0.980", "[0.970, 0.991]"])
        self.assertEqual(cells["permutation", "2^24", "NVIDIA H200"], ["2.50 ms", "54.0 GB/s"])

    def test_a_benchmark_without_label(self):
        row = {"name": "copy/64/real_time", "run_name": "copy/64/real_time", "run_type": "iteration", "real_time": 2.0,
               "cpu_time": 1.0, "time_unit": "ns"}
        self.assertRegex(self.from_rows([row]), r"copy +64 +2.00 ns")
        row["name"] = row["run_name"] = "copy/64"
        self.assertRegex(self.from_rows([row]), r"copy +64 +1.00 ns")

    def test_usage(self):
        for option in ("--benchmark_format=json", "--benchmark_out=x", "--benchmark_list_tests"):
            done = self.script(self.program(), option, status=2)
            self.assertIn(f"{option}: expected with --raw", done.stderr)
        self.assertIn("expected a program, or --from or --pairs and files", self.script(status=2).stderr)
        self.assertIn("/no/program: No such file", self.script("/no/program", status=1).stderr)
        nothing = self.script(self.program(), "--benchmark_filter=nothing", status=1)
        self.assertIn("no row of the benchmarks matches", nothing.stderr)
        (self.directory / "other.txt").write_text("no JSON")
        self.assertIn("expected Google Benchmark's JSON", self.script("--from", self.directory / "other.txt", status=1).stderr)
        self.assertFalse(self.out.exists())
        self.out.write_text("a file")
        self.assertIn("--out: ", self.script(self.program("os._exit(3)"), status=1).stderr)
        self.assertIn("--out: ", self.script("--from", SAMPLE, status=1).stderr)

    def test_a_reader_that_leaves(self):
        command = f"'{sys.executable}' '{SCRIPT}' --out '{self.out}' --from '{SAMPLE}' | true"
        for _ in range(5):
            self.assertEqual(subprocess.run(["bash", "-c", command], capture_output=True, text=True).stderr, "")
        self.assertTrue((self.out / "bench.svg").exists())

    def test_raw(self):
        done = self.script("--raw", self.program(), "--benchmark_min_time=1", status=7)
        self.assertEqual(done.stdout, "raw --benchmark_min_time=1\n")

    def test_against_itself(self):
        log = self.directory / "log"
        behaviour = f"open('{log}', 'a').write(os.path.basename(sys.argv[0]))"
        old, new = self.program(behaviour, "o"), self.program(behaviour, "n")
        done = self.script("--against", old, new, "--benchmark_filter=^sum/")
        self.assertEqual(log.read_text(), ("onno" * 8)[:30])
        self.assertIn("1 rows compared in 15 rounds; slower by more than 1.03: none", done.stdout)
        self.assertRegex(done.stdout, r"sum/avx512/16384 .* 1\.000  \[1\.000, 1\.000\]\n")
        self.assertIn("[1/1] sum/avx512/16384  1.000", done.stderr)
        broken = self.program("os._exit(4)", "broken")
        done = self.script("--against", old, broken, "--benchmark_filter=^sum/", status=1)
        self.assertIn(f"{broken}: sum/avx512/16384", done.stderr)
        self.assertIn("expected one row, got 0, exit status 4", done.stderr)

    def against(self, old, new):
        """What --against prints of two dictionaries: a row's times, in seconds, round by round."""
        rounds = {"old": {name: iter(times) for name, times in old.items()},
                  "new": {name: iter(times) for name, times in new.items()}}
        with (mock.patch.object(bench_table, "list_rows", lambda command: list(rounds[command[0]])),
              mock.patch.object(bench_table, "run_row", lambda command, name: next(rounds[command[0]][name])),
              contextlib.redirect_stdout(io.StringIO()) as table, contextlib.redirect_stderr(io.StringIO()),
              self.assertRaises(SystemExit) as left):
            bench_table.compare(["old"], ["new"])
        return table.getvalue(), left.exception.code

    def test_against_a_slower_one(self):
        table, status = self.against({"exp": [1e-3] * 15, "log": [1e-3] * 15}, {"exp": [1.04e-3] * 15, "log": [5e-4] * 15})
        self.assertRegex(table, r"exp  1\.00 ms  1\.04 ms +1\.040  \[1\.040, 1\.040\]  slower\n")
        self.assertRegex(table, r"log  1\.00 ms   500 us +0\.500  \[0\.500, 0\.500\]\n")
        self.assertIn("2 rows compared in 15 rounds; slower by more than 1.03: exp\n", table)
        self.assertTrue(status)

    def test_the_interval_decides_and_is_of_pairs(self):
        # The median is 1.10 in both. In 4 of 15 rounds, and then in 3, the new one is not slower.
        for few, slower in ((4, False), (3, True)):
            table, status = self.against({"exp": [1.0] * 15}, {"exp": [1.0] * few + [1.1] * (15 - few)})
            self.assertIn("1.100  [1.000, 1.100]" if not slower else "1.100  [1.100, 1.100]", table)
            self.assertEqual(bool(status), slower)
        # A machine that slows down slows both.
        drift = [1.0 + i for i in range(15)]
        table, status = self.against({"exp": drift}, {"exp": [1.02 * t for t in drift]})
        self.assertIn("1.020  [1.020, 1.020]\n", table)
        self.assertFalse(status)

    def test_rows_of_one_program_only(self):
        times = [1.0] * 15
        table, status = self.against({"exp/manual_time": times, "log/peer": times}, {"exp/iterations:1/manual_time": times, "log": times})
        self.assertIn("only in the old program, not compared: log/peer\n", table)
        self.assertIn("only in the new program, not compared: log\n", table)
        self.assertIn("1 rows compared", table)
        self.assertFalse(status)
        self.assertIn("no row in common", self.against({"exp": times}, {"log": times})[1])

    def test_pairs_of_files(self):
        files = []
        for turn in range(6):
            for which, factor in (("old", 1.0), ("new", 1.05)):
                rows = [{**row, "real_time": row["real_time"] * (1 + turn) * (factor if "exp" in row["name"] else 1)} for row in self.rows]
                files.append(self.directory / f"{which}{turn}.json")
                files[-1].write_text(json.dumps({"context": {}, "benchmarks": rows}))
        done = self.script("--pairs", *files, status=1)
        self.assertIn("10 rows compared in 6 rounds; slower by more than 1.03: exp/cache/avx2, exp/cache/avx512\n", done.stdout)
        self.assertRegex(done.stdout, r"sum/avx512/16384 .* 1\.000  \[1\.000, 1\.000\]\n")
        # A row that one file lacks is not compared.
        files[3].write_text(json.dumps({"context": {}, "benchmarks": self.rows[:2]}))
        self.assertIn("only in the old program, not compared: add/cache/avx512, exp/", self.script("--pairs", *files).stdout)
        for few in (files[:11], files[:10], files[:1]):
            self.assertIn(f"of each of at least 6 rounds, got {len(few)} files", self.script("--pairs", *few, status=1).stderr)

    def test_the_interval_of_a_median(self):
        for n in range(1, 17):
            interval = bench_table.interval_of_median(list(range(n)))
            # The chance that k of n values lie below the median of their distribution.
            chance = [math.comb(n, k) / 2**n for k in range(n + 1)]

            def outside(low, high):
                return sum(c for k, c in enumerate(chance) if k <= low or k > high)
            if interval is None:
                self.assertGreater(outside(0, n - 1), 0.05)
            else:
                low, high = interval
                self.assertEqual(low + high, n - 1)
                self.assertLessEqual(outside(low, high), 0.05)
                self.assertTrue(low + 1 >= high or outside(low + 1, high - 1) > 0.05)
        self.assertEqual(bench_table.interval_of_median(list(itertools.chain([5] * 3, [1] * 12))), (1, 1))

    def test_the_benchmarks_take_the_same_interval(self):
        text = (HERE.parent / "bench/rounds.hpp").read_text()
        self.assertEqual(re.search(r"rounds = (\d+);", text).group(1), str(bench_table.ROUNDS))
        low, middle, high = map(int, re.search(r"low_round = (\d+), middle_round = (\d+), high_round = (\d+);", text).groups())
        self.assertEqual(bench_table.interval_of_median(list(range(bench_table.ROUNDS))), (low, high))
        self.assertEqual(middle, bench_table.ROUNDS // 2)


if __name__ == "__main__":
    unittest.main()

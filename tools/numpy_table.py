#!/usr/bin/env python3
"""Writes the tables of NumPy's and SciPy's functions beside those of the installed package into docs/python.md.

    tools/numpy_table.py --write    reads NumPy's ufuncs from NumPy
    tools/numpy_table.py --check    exits with 1 and a message when docs/python.md is another; with another NumPy than the one that
                                    was read, its ufuncs are those that stand there
"""
import argparse
import json
import operator
import pathlib
import re
import subprocess
import sys
import textwrap

import numpy

import librepdl

page = pathlib.Path(__file__).resolve().parent.parent / "docs/python.md"
begin, end = "<!-- numpy:begin, written by tools/numpy_table.py -->\n", "<!-- numpy:end -->\n"

others = "clip fix i0 isneginf isposinf nan_to_num round sinc where"
reductions = """all any argmax argmin average convolve corrcoef correlate count_nonzero cov cumprod cumsum cumulative_prod cumulative_sum dot
    einsum inner linalg.matrix_norm linalg.norm linalg.vector_norm max mean median min nanargmax nanargmin nancumprod nancumsum nanmax
    nanmean nanmedian nanmin nanpercentile nanprod nanquantile nanstd nansum nanvar percentile prod ptp quantile std sum tensordot trace
    trapezoid var vdot"""
# Chosen: of real numbers, without what the page says is left out.
special = """agm airy bei ber beta betainc betaincinv betaln binom boxcox boxcox1p cosdg cosm1 cotdg dawsn digamma ellipe ellipeinc ellipj
    ellipk ellipkinc ellipkm1 elliprc elliprd elliprf elliprg elliprj entr erf erfc erfcinv erfcx erfi erfinv exp1 exp10 expi expit expn
    exprel fresnel gamma gammainc gammaincc gammaincinv gammaln gammasgn huber hyp0f1 hyp1f1 hyp2f1 hyperu i0e i1 i1e inv_boxcox
    inv_boxcox1p iv ive j0 j1 jv jve k0 k0e k1 k1e kei ker kl_div kn kv kve log_expit log_ndtr log_softmax logit logsumexp modstruve ndtr
    ndtri ndtri_exp owens_t poch polygamma powm1 pseudo_huber radian rel_entr rgamma shichi sici sindg softmax spence struve tandg
    wrightomega xlog1py xlogy y0 y1 yn yv yve zeta zetac"""

# Where the name is another, or more is to be said. None: what has that name in librepdl is another function.
vectors = "of two vectors"
one_vector = "with one vector"
last_axis = "along the last axis unless `axis` says otherwise"
ours = {"float_power": ("pow", ""), "vecdot": ("dot", vectors), "matvec": ("matmul", one_vector), "vecmat": ("matmul", one_vector),
        "dot": ("dot", f"{vectors}; else `matmul`"), "inner": ("dot", vectors), "vdot": ("dot", vectors),
        "linalg.norm": ("vector_norm", "`ord` 1, 2 and infinities of vectors; Frobenius's of matrices"),
        "linalg.vector_norm": ("vector_norm", "`ord` 1, 2 and infinities"), "round": ("round", "to integers"), "where": ("where", "with three operands"),
        "var": ("var", "divides by n - 1 unless `ddof` says otherwise"), "arcsin": ("asin", ""), "arccos": ("acos", ""),
        "arctan": ("atan", ""), "sinc": ("sinc", ""), "gamma": ("tgamma", ""), "gammaln": ("lgamma", ""), "arcsinh": ("asinh", ""), "arccosh": ("acosh", ""), "arctanh": ("atanh", ""),
        "huber": ("huber_loss", 'of x - t, with `reduction="none"`'), "kl_div": None,
        "softmax": ("softmax", last_axis), "log_softmax": ("log_softmax", last_axis),
        "cumsum": ("cumsum", last_axis), "cumprod": ("cumprod", last_axis)}
# Functions of the package that call another.
calls = {"std": "stddev"}


def float_ufuncs():
    """Those with a loop of float64, by the names that they have themselves; conjugate is for complex numbers."""
    found = [u for u in vars(numpy).values() if isinstance(u, numpy.ufunc)]
    return sorted({u.__name__ for u in found if any("d" in types.split("->")[0] for types in u.types)} - {"conjugate"})


def formats(name, registry):
    """Of the first operand that is a number."""
    function = getattr(librepdl, name).__name__
    types = [i["types"] for i in registry[calls.get(function, function)]["inputs"]]
    return " ".join(next(t for t in types if "f32" in t))


def table(title, names, registry):
    """The lines of a table, and how many of the names are there: those of the same name by formats, then the others, then what is missing."""
    same, rows, missing = {}, [], []
    for name in names:
        found = ours.get(name, (name, ""))
        if found is None or found[0] not in librepdl.__all__:
            missing.append(name)
        elif found == (name, ""):
            same.setdefault(formats(name, registry), []).append(name)
        else:
            rows.append(([name], f"`{found[0]}`" + (f", {found[1]}" if found[1] else ""), formats(found[0], registry)))
    rows = [(n, "the same name" + ("s" if len(n) > 1 else ""), f) for f, n in same.items()] + rows + [(missing, "missing", "")]
    cells = [(", ".join(f"`{n}`" for n in of), here, types) for of, here, types in rows if of]
    lines = [f"| {title} | in `librepdl` | formats |", "|---|---|---|", *(f"| {a} | {b} | {c} |" for a, b, c in cells), ""]
    return lines, len(names) - len(missing)


def text(version, ufuncs):
    output = subprocess.run([sys.executable, "-m", "librepdl", "docs", "--json"], check=True, capture_output=True).stdout
    registry = {row["name"]: row for row in json.loads(output)}
    kinds = [("NumPy's ufuncs", ufuncs, f"the {{}} ufuncs of NumPy {version} that take floating-point numbers"),
             ("NumPy's other elementwise functions", others.split(), "{} other elementwise functions"),
             ("NumPy's reductions, scans and products", reductions.split(), "{} reductions, scans and products"),
             ("`scipy.special`", special.split(), "{} functions of `scipy.special`")]
    counts, lines = [], []
    for title, names, said in kinds:
        rows, there = table(title, names, registry)
        counts.append(f"of {said.format(len(names))} {there} are there, {len(names) - there} missing")
        lines += rows
    head = "; ".join(counts) + ". Left out: what is for complex numbers, dates, integers or bits alone; of `scipy.special` what NumPy has, too, "
    head += "distributions of statistics and orthogonal polynomials."
    return "\n".join([*textwrap.wrap(head[0].upper() + head[1:], 140), "", *lines])


def main():
    parser = argparse.ArgumentParser(description="see the head of this file")
    given = parser.add_mutually_exclusive_group(required=True)
    given.add_argument("--write", action="store_true")
    given.add_argument("--check", action="store_true")
    args = parser.parse_args()
    document = page.read_text()
    if document.count(begin) != 1 or document.count(end) != 1:
        sys.exit(f"docs/python.md: expected the lines {begin.strip()} and {end.strip()} once each")
    before, rest = document.split(begin)
    written, after = rest.split(end)
    version, ufuncs = ".".join(numpy.__version__.split(".")[:2]), float_ufuncs()
    read = re.search(r"ufuncs of NumPy (\d+\.\d+)", written)
    if args.check and read and read[1] != version:
        rows = written.split("| NumPy's ufuncs |")[1].split("\n\n")[0]
        version, ufuncs = read[1], sorted(name for row in re.findall(r"^\| (`.*?) \|", rows, re.M) for name in re.findall(r"`(\w+)`", row))
    new = before + begin + text(version, ufuncs) + end + after
    if args.write:
        operator.attrgetter(*others.split(), *reductions.split())(numpy)  # an error where NumPy has no such function
        page.write_text(new)
    elif new != document:
        sys.exit(f"docs/python.md is stale: run tools/numpy_table.py --write, with NumPy {version} and the package")


main()

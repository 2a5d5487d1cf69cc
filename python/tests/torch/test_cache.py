"""Where the compiled library is kept, or comes from, and what is not loaded from there. The compiler is a script here, unless a test
says that it takes the real library: nothing is loaded."""

import fcntl
import os
import platform
import re
import shutil
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import torch

import librepdl.torch
from librepdl.torch import __main__ as command
from librepdl.torch import _build

COMPILER = """#!/bin/sh
while [ $# -gt 1 ]; do
  [ "$1" = -o ] && echo "built by $$ with libstdc++.so" >"$2"
  shift
done
"""


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """An empty cache, and a compiler of a moment."""
    cxx = tmp_path / "compiler"
    cxx.write_text(COMPILER)
    cxx.chmod(0o755)
    tmp_path.chmod(0o700)
    monkeypatch.setenv("CXX", str(cxx))
    monkeypatch.setenv("LIBREPDL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(_build, "PREBUILT", tmp_path / "prebuilt")
    return tmp_path / "cache"


def quiet(text):
    pass


def test_the_sources_may_be_one_file(tmp_path):
    """A job's sources are; how many jobs there are depends on the machine."""
    one = tmp_path / "all.cpp"
    one.write_text("".join(f'#include "{source.name}"\n' for source in sorted(_build.SOURCES.glob("*.cpp"))))
    done = subprocess.run([os.environ.get("CXX", "c++"), *_build._flags(), "-fsyntax-only", str(one)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]


def test_it_is_built_once_for_the_user_alone(cache, monkeypatch):
    said = []
    path = _build.library(said.append)
    assert path.parent.parent == cache and "".join(said).endswith(" done\n")
    for made in (cache, path.parent, path):
        assert stat.S_IMODE(made.stat().st_mode) == 0o700
    text = path.read_text()
    monkeypatch.setenv("CXX", "/bin/false")  # not needed any more
    assert _build.library(said.append).read_text() == text
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.delenv("CXX")
    assert _build.library(pytest.fail) == path
    assert sorted(p.name for p in path.parent.iterdir()) == ["librepdl_torch.sha256", "librepdl_torch.so", "lock"]


def cut(path):
    path.write_bytes(path.read_bytes()[:-1])


def emptied(path):
    path.write_bytes(b"")


def directory(path):
    path.unlink()
    path.mkdir()
    (path / "something").touch()


def link(path):
    other = path.with_name("elsewhere")
    path.rename(other)
    path.symlink_to(other)


def pipe(path):
    path.unlink()
    os.mkfifo(path)


@pytest.mark.parametrize("damage", [cut, emptied, directory, link, pipe, Path.unlink])
@pytest.mark.parametrize("suffix", [".so", ".sha256"])
def test_a_damaged_file_is_built_again(cache, damage, suffix):
    path = _build.library(quiet)
    before = path.read_text()
    damage(path.with_suffix(suffix))
    assert _build.library(quiet) == path
    assert path.read_text() != before and not path.is_symlink()
    after = path.read_text()
    assert _build.library(quiet).read_text() == after


@pytest.mark.parametrize("which", ["cache", "directory", "library", "digest", "above"])
@pytest.mark.parametrize("bit", [0o020, 0o002])
def test_what_others_can_write_is_not_loaded(cache, which, bit):
    path = _build.library(quiet)
    at = {"cache": cache, "directory": path.parent, "library": path, "digest": path.with_suffix(".sha256"), "above": cache.parent}[which]
    mode = stat.S_IMODE(at.stat().st_mode)
    at.chmod(mode | bit)
    with pytest.raises(_build.UntrustedCache) as e:
        _build.library(pytest.fail)
    assert f"{at} (mode {mode | bit:04o}, user {os.geteuid()}) can be written by others" in str(e.value)
    assert f"chmod go-w {at}" in str(e.value) and "LIBREPDL_CACHE" in str(e.value)
    at.chmod(mode)
    assert _build.library(pytest.fail) == path


def test_a_sticky_directory_above_is_fine(cache):
    cache.parent.chmod(0o1777)
    path = _build.library(quiet)
    assert _build.library(pytest.fail) == path


@pytest.mark.skipif(os.geteuid() != 0, reason="gives files away, as root")
@pytest.mark.parametrize("which", ["cache", "directory", "library", "digest", "link"])
def test_what_belongs_to_another_user_is_not_loaded(cache, which, tmp_path, monkeypatch):
    path = _build.library(quiet)
    at = {"cache": cache, "directory": path.parent, "library": path, "digest": path.with_suffix(".sha256"), "link": tmp_path / "link"}[which]
    if which == "link":
        tmp_path.chmod(0o1777)
        at.symlink_to(cache)
        monkeypatch.setenv("LIBREPDL_CACHE", str(at / "." / ".." / "link"))
        assert _build.library(quiet).samefile(path)
    os.chown(at, 12345, -1, follow_symlinks=False)
    with pytest.raises(_build.UntrustedCache, match=rf"{re.escape(str(at))} \(mode \d+, user 12345\) belongs to user 12345"):
        _build.library(pytest.fail)


def test_links_of_ones_own_are_followed_and_what_they_lead_to_is_looked_at(cache, tmp_path, monkeypatch):
    path = _build.library(quiet)
    (tmp_path / "open").mkdir()
    (tmp_path / "open" / "link").symlink_to("../cache")
    monkeypatch.setenv("LIBREPDL_CACHE", str(tmp_path / "open" / "link"))
    assert _build.library(pytest.fail).samefile(path)
    (tmp_path / "open").chmod(0o777)  # where the link could be replaced
    with pytest.raises(_build.UntrustedCache, match="open "):
        _build.library(pytest.fail)
    (tmp_path / "loop").symlink_to("loop")
    monkeypatch.setenv("LIBREPDL_CACHE", str(tmp_path / "loop"))
    with pytest.raises(_build.NoCompiler, match="too many symbolic links.*LIBREPDL_CACHE"):
        _build.library(pytest.fail)


def test_relative_paths_are_ignored(cache, monkeypatch, tmp_path):
    monkeypatch.setenv("LIBREPDL_CACHE", "cache")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert _build.cache_directory() == tmp_path / "xdg" / "librepdl"
    monkeypatch.setenv("XDG_CACHE_HOME", "xdg")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert _build.cache_directory() == tmp_path / ".cache" / "librepdl"
    monkeypatch.setenv("HOME", "")
    with pytest.raises(_build.NoCompiler, match="LIBREPDL_CACHE"):
        _build.library(pytest.fail)


def test_what_stands_in_the_way_is_one_error(cache, monkeypatch, tmp_path):
    monkeypatch.setenv("CXX", "/bin/false")
    with pytest.raises(_build.NoCompiler, match=r"/bin/false, failed with status 1; its output is in .*compiler\.log \(.*LIBREPDL_CACHE"):
        _build.library(quiet)
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.delenv("CXX")
    with pytest.raises(_build.NoCompiler, match=r"expected \$CXX.*LIBREPDL_CACHE"):
        _build.library(quiet)
    static = tmp_path / "static"
    static.write_text(COMPILER.replace(".so", ".a"))
    static.chmod(0o755)
    monkeypatch.setenv("CXX", str(static))
    with pytest.raises(_build.NoCompiler, match="static links the C\\+\\+ library statically; expected .*CXX"):
        _build.library(quiet)
    monkeypatch.setenv("CXX", "/bin/true")  # writes nothing
    with pytest.raises(_build.NoCompiler, match="set LIBREPDL_CACHE to a directory that can be written"):
        _build.library(quiet)
    (tmp_path / "file").touch()
    for nowhere in (tmp_path / "file" / "cache", Path("/proc/librepdl")):
        monkeypatch.setenv("LIBREPDL_CACHE", str(nowhere))
        with pytest.raises(_build.NoCompiler, match=f"{nowhere}.*set LIBREPDL_CACHE to a directory that can be written"):
            _build.library(quiet)


def test_the_second_waits_for_the_first(cache):
    path = _build.library(quiet)
    path.unlink()
    said, held = [], os.open(path.parent / "lock", os.O_RDWR)
    fcntl.flock(held, fcntl.LOCK_EX)
    second = threading.Thread(target=lambda: _build.library(lambda text: (said.append(text), waiting.set())))
    waiting = threading.Event()
    second.start()
    assert waiting.wait(30) and said == ["librepdl.torch: another process is compiling its library, waiting\n"]
    os.close(held)
    second.join(30)
    assert not second.is_alive() and path.exists()


def test_the_command_says_why_not(cache):
    cache.mkdir(mode=0o700)
    cache.chmod(0o777)
    done = subprocess.run([sys.executable, "-m", "librepdl.torch", "build"], capture_output=True, text=True)
    assert done.returncode == 1 and "Traceback" not in done.stderr and f"{cache} (mode 0777" in done.stderr
    cache.chmod(0o700)
    done = subprocess.run([sys.executable, "-c", "import librepdl.torch; librepdl.torch.enable()"], capture_output=True, text=True)
    assert done.returncode == 1 and "NoCompiler: librepdl.torch: its compiled library cannot be loaded: " in done.stderr
    assert f"remove {cache}" in done.stderr and "LIBREPDL_CACHE" in done.stderr


# ---- what comes with the package ----

def without_compiler(monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.delenv("CXX", raising=False)


@pytest.fixture
def shipped(cache, monkeypatch):
    """The library of a package that brings one, where there is no compiler and nothing in the cache."""
    path = _build.ship(_build.library(quiet), _build.PREBUILT)
    shutil.rmtree(cache)
    without_compiler(monkeypatch)
    return path


def test_what_comes_with_the_package_needs_no_compiler_and_no_cache(shipped, cache, monkeypatch):
    assert re.fullmatch(rf"torch-\d[\w.]+-{platform.machine()}-[0-9a-f]{{16}}\.so", shipped.name)
    assert [stat.S_IMODE(path.stat().st_mode) for path in sorted(shipped.parent.iterdir())] == [0o644] * 2
    for variable in ("LIBREPDL_CACHE", "XDG_CACHE_HOME", "HOME"):
        monkeypatch.delenv(variable, raising=False)
    assert _build.library(pytest.fail) == shipped and not cache.exists()


def test_one_library_is_for_all_builds_of_a_release(shipped, monkeypatch):
    for build in ("", "+cpu", "+cu130"):
        monkeypatch.setattr(torch, "__version__", torch.__version__.partition("+")[0] + build)
        assert _build.library(pytest.fail) == shipped


def installed(monkeypatch, tmp_path):
    """The sources as an installed package has them."""
    header, sources = _build._own_includes() / "librepdl" / "librepdl.h", tmp_path / "src"
    shutil.copytree(_build.SOURCES, sources)
    (sources / "librepdl").mkdir(exist_ok=True)
    shutil.copy(header, sources / "librepdl")
    monkeypatch.setattr(_build, "SOURCES", sources)
    return sources


def test_the_repositorys_library_is_the_installed_packages(shipped, monkeypatch, tmp_path):
    installed(monkeypatch, tmp_path)
    assert _build.library(pytest.fail) == shipped


def other_sources(monkeypatch, tmp_path):
    path = installed(monkeypatch, tmp_path) / "policy.def"
    path.write_text(path.read_text() + "\n")


def another_header(monkeypatch, tmp_path):
    path = installed(monkeypatch, tmp_path) / "librepdl" / "librepdl.h"
    path.write_text(path.read_text() + "\n")


def other_pytorch(monkeypatch, tmp_path):
    monkeypatch.setattr(torch.version, "git_version", "0" * 40)


def other_package(monkeypatch, tmp_path):
    monkeypatch.setattr(librepdl, "__version__", "0.1.0")


@pytest.mark.parametrize("change", [other_sources, another_header, other_pytorch, other_package])
def test_what_was_compiled_of_something_else_is_not_used(shipped, monkeypatch, tmp_path, change):
    change(monkeypatch, tmp_path)
    with pytest.raises(_build.NoCompiler):
        _build.library(pytest.fail)


def changed(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def not_used(monkeypatch, cache):
    """What is said of it; without a compiler it is an error, with one the cache's is taken, in silence once it is there."""
    said = []
    with pytest.raises(_build.NoCompiler, match=r"expected \$CXX"):
        _build.library(said.append)
    monkeypatch.undo()
    monkeypatch.setenv("LIBREPDL_CACHE", str(cache))
    monkeypatch.setenv("CXX", str(cache.parent / "compiler"))
    monkeypatch.setattr(_build, "PREBUILT", cache.parent / "prebuilt")
    assert _build.library(quiet) == _build.library(pytest.fail) == next(cache.glob("torch-*")) / _build.NAME
    return "".join(said)


@pytest.mark.parametrize("damage", [changed, cut, emptied, directory, link, pipe])
@pytest.mark.parametrize("suffix", [".so", ".sha256"])
def test_what_came_damaged_is_not_used(shipped, cache, monkeypatch, damage, suffix):
    damage(shipped.with_suffix(suffix))
    assert f"came with the package is not used: {shipped} is not what" in not_used(monkeypatch, cache)


@pytest.mark.parametrize("which", ["directory", "library", "digest", "above"])
@pytest.mark.parametrize("bit", [0o020, 0o002])
def test_what_came_and_others_can_write_is_not_used(shipped, cache, monkeypatch, which, bit):
    at = {"directory": shipped.parent, "library": shipped, "digest": shipped.with_suffix(".sha256"), "above": shipped.parents[1]}[which]
    mode = stat.S_IMODE(at.stat().st_mode)
    at.chmod(mode | bit)
    if which == "above":  # the cache's, too
        with pytest.raises(_build.UntrustedCache):
            _build.library(pytest.fail)
        return
    said = not_used(monkeypatch, cache)
    assert f"came with the package is not used: librepdl.torch: {at} (mode {mode | bit:04o}, user {os.geteuid()}) can be written" in said


def test_the_command_ships_what_is_then_found(cache, monkeypatch, capfd):
    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["librepdl.torch", "build", *map(str, arguments)])
        command.main()
        out, err = capfd.readouterr()
        return Path(out.removesuffix("\n")), err

    built, _ = run()
    assert built.parent.parent == cache
    without_compiler(monkeypatch)  # what the cache has is copied
    path, err = run("--into", cache.parent / "new" / "directory")
    assert path == cache.parent / "new" / "directory" / _build.shipped_name() and err == ""
    assert path.read_bytes() == built.read_bytes()
    monkeypatch.setattr(_build, "PREBUILT", path.parent)
    assert run() == (path, "librepdl.torch: the library came with the package\n")
    again, _ = run("--into", path.parent)
    assert again == path and path.read_bytes() == built.read_bytes()
    with pytest.raises(SystemExit, match="--into /proc/librepdl: "):
        run("--into", "/proc/librepdl")


def test_enable_takes_what_came_with_the_package(tmp_path):
    """The real library, which does not say where this machine's PyTorch is."""
    library = _build.library()
    assert str(Path(torch.__file__).parent / "lib").encode() not in library.read_bytes()
    tmp_path.chmod(0o700)
    path = _build.ship(library, tmp_path / "prebuilt")
    script = ("import sys; from pathlib import Path; import torch; import librepdl.torch; librepdl.torch._build.PREBUILT = Path(sys.argv[1])\n"
              "librepdl.torch.enable(); print(torch.exp(torch.ones(())).item().hex(), librepdl.torch.status()['library'])")
    environment = {key: value for key, value in os.environ.items() if key != "CXX"} | {"PATH": "/nowhere", "LIBREPDL_CACHE": "/proc/nowhere"}
    done = subprocess.run([sys.executable, "-c", script, str(path.parent)], capture_output=True, text=True, env=environment)
    assert (done.stdout, done.stderr) == (f"0x1.5bf0a80000000p+1 {path}\n", "")
    # None for this PyTorch, and no compiler.
    done = subprocess.run([sys.executable, "-c", script, "/nowhere"], capture_output=True, text=True, env=environment)
    assert done.returncode == 1 and "NoCompiler: librepdl.torch needs a library compiled for PyTorch" in done.stderr


def test_the_error_says_what_the_package_brings(cache, monkeypatch):
    without_compiler(monkeypatch)
    needed = (rf"compiled for PyTorch {re.escape(torch.__version__.partition('+')[0])} \({platform.machine()}\), and so a C\+\+ compiler "
              r"\(C\+\+20\) once; expected \$CXX, .* brings a compiled library for: ")
    with pytest.raises(_build.NoCompiler, match=needed + r"none\. Or set LIBREPDL_CACHE"):
        _build.library(pytest.fail)
    _build.PREBUILT.mkdir()
    for version, machine in (("2.11.0", platform.machine()), ("2.9.1", platform.machine()), ("2.12.0", "another")):
        (_build.PREBUILT / f"torch-{version}-{machine}-{0:016x}.so").touch()
    with pytest.raises(_build.NoCompiler, match=needed + r"2\.9\.1, 2\.11\.0\. Or set LIBREPDL_CACHE"):
        _build.library(pytest.fail)

"""Where the compiled library is kept, and what is not loaded from there. The compiler is a script here: nothing is loaded."""

import fcntl
import os
import re
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

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
    # enable(): this is an error, since a library may have been planted; what merely lacks makes it fall back.
    script = "import librepdl.torch; librepdl.torch.enable(); print(librepdl.torch.status()['kernels'])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout == "Python\n" and "cannot be loaded" in done.stderr and "LIBREPDL_CACHE" in done.stderr

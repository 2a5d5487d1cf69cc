"""Reads the PTX that nvcc embeds in an object file.

nvcc puts what it compiled into the ELF section .nv_fatbin: regions, each a header and its entries, each entry a header and
a payload. The PTX is compressed with zstd by default (--compress-mode: "size" and "balance" too, "none" leaves it plain).
Comments are no part of it.
"""
import ctypes
import struct

import elf

region_magic = 0xBA55ED50
kind_ptx, kind_machine_code = 1, 2


def zstd(data, size):
    try:
        library = ctypes.CDLL("libzstd.so.1")
    except OSError as error:
        raise ValueError(f"the PTX is compressed with zstd: expected libzstd.so.1 (Debian: libzstd1), {error}") from error
    library.ZSTD_decompress.restype = ctypes.c_size_t
    out = ctypes.create_string_buffer(size)
    done = library.ZSTD_decompress(out, ctypes.c_size_t(size), data, ctypes.c_size_t(len(data)))
    if done != size:
        raise ValueError(f"expected {size} bytes of PTX, zstd returned {done}")
    return out.raw


def entries(fatbin):
    """(kind, architecture, payload) of every entry; the payload of PTX as text, of others as None."""
    at = 0
    while at < len(fatbin):
        magic, _, header, length = struct.unpack_from("<IHHQ", fatbin, at)
        if magic != region_magic:
            raise ValueError(f"expected the magic number of a fatbin at byte {at} of .nv_fatbin, got {magic:#x}")
        at, end = at + header, at + header + length
        while at < end:
            kind, _, header, padded = struct.unpack_from("<HHIQ", fatbin, at)
            compressed, = struct.unpack_from("<I", fatbin, at + 16)
            architecture, = struct.unpack_from("<I", fatbin, at + 28)
            plain, = struct.unpack_from("<Q", fatbin, at + 56)
            payload = fatbin[at + header:at + header + padded]
            at += header + padded
            if kind != kind_ptx:
                yield kind, architecture, None
                continue
            if payload[:4] == b"\x28\xb5\x2f\xfd":
                payload = zstd(payload[:compressed], plain)
            text = payload.rstrip(b"\0").decode("ascii", "replace")
            if not text.lstrip().startswith((".version", "//")):
                raise ValueError("expected PTX as plain text or in zstd; compile with --compress-mode=default")
            yield kind, architecture, text
        at = (end + 7) // 8 * 8


def ptx_of(path):
    """{architecture: PTX} of an object file. ValueError if it holds machine code without the PTX that it was made from."""
    try:
        fatbin = elf.File(path).contents(".nv_fatbin")
        found = list(entries(fatbin)) if fatbin is not None else []
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error
    texts = {architecture: text for kind, architecture, text in found if kind == kind_ptx}
    bare = sorted({architecture for kind, architecture, _ in found if kind == kind_machine_code} - set(texts))
    if bare:
        raise ValueError(f"{path}: machine code for sm_{bare[0]} without the PTX that it was made from: build for {bare[0]}, "
                         f"not {bare[0]}-real")
    if not texts:
        raise ValueError(f"{path}: no PTX")
    return texts

"""Reads ELF files of 64 bits, little-endian: sections, symbols, relocations."""
import collections
import pathlib
import struct

Section = collections.namedtuple("Section", "index name kind flags offset size link info")
Symbol = collections.namedtuple("Symbol", "name kind binding section value size")  # section: its index, 0: undefined
Relocation = collections.namedtuple("Relocation", "offset kind symbol addend")

x86_64 = 62
writable, executable = 1, 4  # flags of sections
progbits, symbol_table, rela = 1, 2, 4  # kinds of sections
function = 2  # a kind of symbols
local = 0  # a binding


class File:
    def __init__(self, path):
        self.path = path
        self.data = data = pathlib.Path(path).read_bytes()
        if data[:6] != b"\x7fELF\x02\x01":
            raise ValueError(f"{path}: expected an ELF file of 64 bits, little-endian")
        self.machine, = struct.unpack_from("<H", data, 0x12)
        table, = struct.unpack_from("<Q", data, 0x28)
        size, count, names = struct.unpack_from("<HHH", data, 0x3A)
        if count == 0:  # more than 65279 sections: the first entry has the numbers
            count, = struct.unpack_from("<Q", data, table + 0x20)
            names = struct.unpack_from("<I", data, table + 0x28)[0] if names == 0xFFFF else names
        elif names == 0xFFFF:
            names, = struct.unpack_from("<I", data, table + 0x28)
        headers = [struct.unpack_from("<IIQQQQII", data, table + i * size) for i in range(count)]
        strings = headers[names][4]
        self.sections = [Section(i, self._string(strings + at), kind, flags, offset, length, link, info)
                         for i, (at, kind, flags, _, offset, length, link, info) in enumerate(headers)]

    def _string(self, at):
        return self.data[at:self.data.index(b"\0", at)].decode()

    def contents(self, name):
        """Of the first section of this name; None where there is none."""
        for s in self.sections:
            if s.name == name:
                return self.data[s.offset:s.offset + s.size]
        return None

    def symbols(self):
        """All, in the order of the table, which relocations count."""
        for table in self.sections:
            if table.kind == symbol_table:
                strings = self.sections[table.link].offset
                return [Symbol(self._string(strings + at), info & 15, info >> 4, section, value, size)
                        for at, info, _, section, value, size in
                        struct.iter_unpack("<IBBHQQ", self.data[table.offset:table.offset + table.size])]
        return []

    def relocations(self, section):
        """Of the section of this index, by offset."""
        for table in self.sections:
            if table.kind == rela and table.info == section:
                entries = struct.iter_unpack("<QQq", self.data[table.offset:table.offset + table.size])
                return sorted(Relocation(at, info & 0xFFFFFFFF, info >> 32, addend) for at, info, addend in entries)
        return []

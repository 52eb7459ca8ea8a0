"""Memory that sees every access: global and local arrays (`Memory`), and private ones (`Cells`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .types import Scalar
from .values import Partly, array, assign, bits_as, vector
from .watch import Entry
from .writer import Site

if TYPE_CHECKING:
    from .machine import Wave

STEPS = [np.arange(n)[:, None] for n in range(17)]


def subscript(name: str, index: int, sizes: tuple[int, ...]) -> str:
    """Atile[2][3] for an element by its number."""
    shown = ""
    for size in reversed(sizes):
        shown, index = f"[{index % size}]{shown}", index // size
    return name + shown


class Memory:
    """An array of numbers that work-items share; local memory has it once for each group.

    Attributes:
        name, space: as in the kernel's text; "global" or "local".
        scalar: the type of its numbers; sizes: how it is declared, vectors counted as a last index.
        size_bytes: of what one group sees.
        groups: how many there are of it, one behind the other.
        line: where it is declared.
    """

    def __init__(self, name: str, space: str, scalar: Scalar, sizes: tuple[int, ...], groups: int = 1,
                 data: np.ndarray | None = None, line: int = 0):  # fmt: skip
        self.name, self.space, self.scalar, self.sizes = name, space, scalar, sizes
        self.groups, self.line = groups, line
        self.size_bytes = scalar.size * int(np.prod(sizes))
        room = -(-self.size_bytes * groups // 16) * 16
        self.bytes = np.zeros(room, np.uint8)
        self.written: np.ndarray | None = None  # a byte for each byte, not 0 where somebody has stored
        if data is None:
            self.written = np.zeros(room, np.uint8)
            if not scalar.whole:
                self.view(scalar)[:] = np.nan
        else:
            self.view(scalar)[: data.size] = data
        self.address = 0  # of its first byte, once it has one

    def view(self, scalar: Scalar) -> np.ndarray:
        """All of it as numbers of a type."""
        return self.bytes.view(scalar.dtype)

    def marks(self, size: int) -> np.ndarray | None:
        """For each number of `size` bytes whether it has been stored to (not 0)."""
        return None if self.written is None else self.written.view(f"u{size}")

    def begin(self, wave: Wave, size: int, lanes=None):
        """The number of the first element that a lane's group sees; one number if it is the same for all."""
        if self.groups == 1:
            return 0
        slot = wave.slot
        if slot.__class__ is array and lanes is not None:
            slot = slot[lanes]
        return slot * (self.size_bytes // size)

    def element(self, at: int) -> str:
        """The element at so many bytes, in the array's own indices."""
        return subscript(self.name, at // self.scalar.size, self.sizes)

    def load(self, wave: Wave, site: Site, index, mask):
        """The numbers from element `index` on, of the site's type."""
        index = wave.inside(site, self, index, mask)
        size = site.scalar.size
        place = index + self.begin(wave, size)
        if site.width > 1:
            place = place + STEPS[site.width]
        marks = self.marks(size)
        if marks is not None:
            set_ = marks[place] != 0
            if not set_.all():
                wave.uninitialised(site, self, index, set_, mask)
        wave.log.append(Entry(site, self, index, mask, wave.phase, wave))
        values = self.view(site.scalar)[place]
        if site.scalar.whole:
            if values.__class__ is not array:
                return int(values)
            return values.view(np.int64) if size == 8 else values.astype(np.int64)
        return values

    def store(self, wave: Wave, site: Site, index, value, mask) -> None:
        """Store numbers from element `index` on."""
        index = wave.inside(site, self, index, mask)
        wave.log.append(Entry(site, self, index, mask, wave.phase, wave, value))
        size = site.scalar.size
        place = index + self.begin(wave, size)
        varies = value.__class__ is array and value.shape[-1] > 1
        if place.__class__ is not array:  # all to one place: the last lane wins
            if varies:
                value = value[..., -1 if mask is None else np.flatnonzero(mask)[-1]]
            elif value.__class__ is array:
                value = value[..., 0]
            if site.width > 1:
                place = slice(place, place + site.width)
        else:
            if mask is not None:
                place = place[mask]
                value = value[..., mask] if varies else value
            if site.width > 1:
                place = place + STEPS[site.width]
        self.view(site.scalar)[place] = self.held(value, site.scalar)
        marks = self.marks(size)
        if marks is not None:
            marks[place] = -1 if marks.dtype.kind == "i" else np.iinfo(marks.dtype).max

    @staticmethod
    def held(value, scalar: Scalar):
        """A value as memory holds it: of whole numbers the lower bits."""
        if not scalar.whole:
            return value
        if value.__class__ is array:
            return value.astype(scalar.dtype)
        bits = int(value) & (2**scalar.bits - 1)
        return bits - 2**scalar.bits if scalar.kind == "int" and bits >= 2 ** (scalar.bits - 1) else bits


class Cells:
    """A private array, which every work-item has to itself: for each number a value of all lanes."""

    space = "private"
    groups = 1

    def __init__(self, name: str, scalar: Scalar, sizes: tuple[int, ...], width: int, mask, zeroes: bool):
        self.name, self.scalar, self.width = name, scalar, width
        self.sizes = sizes if width == 1 else (*sizes, width)
        count = int(np.prod(self.sizes)) if self.sizes else 1
        zero = 0 if scalar.whole else scalar.dtype.type(0)
        self.mask = mask  # the lanes that were there when it was declared
        self.cells: list = [zero if zeroes else None] * count
        self.size_bytes = count * scalar.size
        self.address = 0

    def give(self, first: int, width: int, value) -> None:
        """A value where the array is declared."""
        for i in range(width):
            self.cells[first + i] = value[i] if width > 1 else value

    def begin(self, wave: Wave, size: int, lanes=None) -> int:
        return 0

    def element(self, at: int) -> str:
        return subscript(self.name, at // self.scalar.size, self.sizes)

    def load(self, wave: Wave, site: Site, index, mask):
        index = wave.inside(site, self, index, mask)
        wave.log.append(Entry(site, self, index, mask, wave.phase, wave))
        if index.__class__ is int:
            found = [self.cell(wave, site, index + i, mask) for i in range(site.width)]
        else:
            # each lane asks for a cell of its own: make a table, and let it choose
            wanted = np.unique(index if mask is None else index[mask])
            known = {int(w) + i for w in wanted for i in range(site.width)}
            table: np.ndarray = np.zeros((len(self.cells), wave.lanes), site.scalar.held)
            for i in known:
                table[i] = self.cell(wave, site, i, (index <= i) & (index + site.width > i) & wave.active(mask))
            lanes = np.arange(wave.lanes)
            found = [table[index + i, lanes] for i in range(site.width)]
        if site.width == 1:
            return found[0]
        return vector(found, site.scalar)

    def cell(self, wave: Wave, site: Site, i: int, mask):
        value = self.cells[i]
        if value is None or value.__class__ is Partly:
            value = wave.given(value, mask, site, self.element(i * self.scalar.size))
        if site.scalar is not self.scalar:
            value = bits_as(value, self.scalar, site.scalar)
        return value

    def store(self, wave: Wave, site: Site, index, value, mask) -> None:
        index = wave.inside(site, self, index, mask)
        wave.log.append(Entry(site, self, index, mask, wave.phase, wave, value))
        if site.scalar is not self.scalar:
            value = bits_as(value, site.scalar, self.scalar)
        if index.__class__ is int:
            self.put(index, site.width, value, mask)
            return
        for i in np.unique(index if mask is None else index[mask]).tolist():
            self.put(i, site.width, value, (index == i) & wave.active(mask))

    def put(self, first: int, width: int, value, mask) -> None:
        whole = mask is None or mask is self.mask
        for i in range(width):
            new = value
            if width > 1:
                new = value[i] if value.shape[1] > 1 else value[i, 0]
            self.cells[first + i] = new if whole else assign(mask, new, self.cells[first + i])

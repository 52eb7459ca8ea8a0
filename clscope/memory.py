"""Memory that sees every access: an array of the launch, of each work-group, or of each
work-item.
"""

from __future__ import annotations

from functools import cache
from math import prod

import numpy as np

from .finding import Site
from .types import Scalar, Type, Vector, layout, leaf_of
from .values import Lanes, array, cut, spoiled


@cache
def steps(n: int) -> np.ndarray:
    return np.arange(n)[:, None]


class Memory:
    """An array of numbers: a global one there is once, a local one for each work-group, a private
    one for each lane.

    Attributes:
        name, space: as in the kernel's text; "global", "local" or "private".
        scalar: the type of its numbers; sizes: as declared, with the length of its vectors as the
            last one; vector: whether its elements are vectors.
        size_bytes: of one copy; copies: how many there are of it, one after the other; slot: which
            is each lane's.
        address: of its first byte, once it has one.
    """

    def __init__(
        self,
        name: str,
        space: str,
        of: Type,
        copies: int = 1,
        slot: Lanes = 0,
        data: np.ndarray | None = None,
    ):
        self.name, self.space, self.copies, self.slot = name, space, copies, slot
        self.scalar, self.sizes = scalar, sizes = layout(of)
        self.vector = isinstance(leaf_of(of)[0], Vector)
        self.size_bytes = scalar.size * prod(sizes)
        self.first = slot * prod(sizes)  # where a lane's own copy begins, in own numbers
        self.bytes = np.zeros(-(-self.size_bytes * copies // 16) * 16, np.uint8)
        self.numbers = self.bytes.view(scalar.dtype)
        self.address = 0
        self.grain = 8  # the smallest number that has been stored, in bytes
        self.ended = False  # whether the block of its declaration has ended
        #: For each byte the event of the asynchronous copy that may be filling it, or reading it;
        #: 0 for none.
        self.incoming: np.ndarray | None = None
        self.outgoing: np.ndarray | None = None
        self._stored: np.ndarray | None = None
        if data is not None:
            self.view(scalar)[: data.size] = data
        else:
            self._stored = np.zeros(len(self.bytes), bool)
            self._stored[self.size_bytes * copies :] = True
            if not scalar.whole:
                self.view(scalar)[:] = np.nan

    def view(self, scalar: Scalar) -> np.ndarray:
        return self.numbers if scalar is self.scalar else self.bytes.view(scalar.dtype)

    @property
    def stored(self) -> np.ndarray | None:
        """For each byte whether it has a value; None once all of them have one."""
        if self._stored is not None and self._stored.all():
            self._stored = None
        return self._stored

    def known(self, size: int) -> np.ndarray:
        """Return for each element of `size` bytes whether all of it has a value."""
        stored = self.stored
        if stored is None:
            return np.ones(len(self.bytes) // size, bool)
        return stored[::size] if size <= self.grain else np.all(stored.reshape(-1, size), axis=1)

    def spoil(self, sign: int) -> None:
        """Fill what nobody has stored with other values of a sign: 1, -1 or 0."""
        if self.stored is not None:
            unset = ~self.known(self.scalar.size)
            self.view(self.scalar)[unset] = np.asarray(spoiled(self.scalar, sign))

    def element(self, at: int) -> str:
        """Atile[2][3] or v.x for the element at so many bytes."""
        shown, index, sizes = "", at // self.scalar.size, list(self.sizes)
        if self.vector:
            n = sizes.pop()
            index, number = divmod(index, n)
            shown = f".{'xyzw'[number]}" if n <= 4 else f".s{number:x}"
        for size in reversed(sizes):
            shown, index = f"[{index % size}]{shown}", index // size
        return self.name + shown

    def begin(self, size: int) -> Lanes:
        """Where a lane's own copy begins, counted in numbers of `size` bytes."""
        return self.first if size == self.scalar.size else self.slot * (self.size_bytes // size)

    def places(self, site: Site, index: Lanes, everyone: bool = False) -> Lanes:
        """Return where the elements that lanes access are in `view`, a row for each element of a
        vector; `everyone` says whether all lanes take part.
        """
        size = site.scalar.size
        if site.width > 1:
            index = index + steps(site.width)
        elif index.__class__ is int and everyone and self.space == "private":
            # the same element of every lane's own copy
            return slice(index, self.size_bytes * self.copies // size, self.size_bytes // size)
        return index + self.begin(size)

    def values(self, scalar: Scalar, places: Lanes) -> Lanes:
        """Return the elements at some places, as lanes hold them."""
        found = self.view(scalar)[places]
        if scalar.whole:
            return found.astype(np.int64) if found.__class__ is array else cut(int(found), scalar)
        return found.copy() if places.__class__ is slice else found

    def put(self, scalar: Scalar, places: Lanes, value: Lanes) -> None:
        """Give numbers a value; of a whole number that is too large, the lower bits."""
        self.view(scalar)[places] = np.asarray(cut(value, scalar)) if scalar.whole else value
        if self._stored is not None:
            self.grain = min(self.grain, scalar.size)
            self._stored.reshape(-1, scalar.size)[places] = True

    def give(self, first: int, width: int, value: Lanes, scalar: Scalar) -> None:
        """A private array's values where it is declared, without an entry in the log."""
        self.put(scalar, self.begin(scalar.size) + first + steps(width), value)

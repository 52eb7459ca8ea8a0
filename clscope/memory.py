"""Memory that sees every access: an array of the launch, of each work-group, or of each
work-item.
"""

from __future__ import annotations

from functools import cache
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from .types import Scalar, Type, Vector, layout, leaf_of
from .values import Lanes, array, cut
from .watch import Site

if TYPE_CHECKING:
    from .machine import Wave


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
        # the asynchronous copy that has not been waited for, and which bytes it fills
        self.filling: Site | None = None
        self.in_flight: np.ndarray | None = None
        # for each byte whether it has a value; None once all of them have one
        self.stored: np.ndarray | None = None
        if data is not None:
            self.view(scalar)[: data.size] = data
        else:
            self.stored = np.zeros(len(self.bytes), bool)
            self.stored[self.size_bytes * copies :] = True
            if not scalar.whole:
                self.view(scalar)[:] = np.nan

    def view(self, scalar: Scalar) -> np.ndarray:
        return self.numbers if scalar is self.scalar else self.bytes.view(scalar.dtype)

    def known(self, size: int) -> np.ndarray:
        """For each number of `size` bytes whether it has a value."""
        stored = self.stored
        return np.ones(len(self.bytes) // size, bool) if stored is None else stored[::size]

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

    def places(self, wave: Wave, site: Site, index: Lanes) -> Lanes:
        """Where the numbers of each lane are in `view`, a row for each number of a vector."""
        size = site.scalar.size
        if site.width > 1:
            index = index + steps(site.width)
        elif index.__class__ is int and wave.mask is None and self.space == "private":
            # the same number of every lane's own copy
            return slice(index, self.size_bytes * self.copies // size, self.size_bytes // size)
        return index + self.begin(size)

    def load(self, wave: Wave, site: Site, index: Lanes) -> Lanes:
        """The numbers from element `index` on, of the site's type."""
        places = self.places(wave, site, index)
        if self.stored is not None and self.stored.all():
            self.stored = None
        if self.stored is not None and not site.struct:
            wave.uninitialised(site, self, index, self.known(site.scalar.size)[places])
        if self.filling is not None and self.in_flight is not None:
            text = f"{site.text}: {{}} reads {self.name} without wait_group_events, while the"
            text += f" asynchronous copy in line {self.filling.line} may still be filling it"
            flying = self.in_flight.reshape(-1, site.scalar.size)[:, 0]
            wave.find("race", site, text, flying[places])
        if self.space != "private":  # private arrays are registers, for the most part
            wave.record(site, self, index)
        values = self.view(site.scalar)[places]
        if site.scalar.whole:
            one = values.__class__ is not array
            return cut(int(values), site.scalar) if one else values.astype(np.int64)
        return values.copy() if places.__class__ is slice else values

    def store(self, wave: Wave, site: Site, index: Lanes, value: Lanes) -> None:
        mask = wave.mask
        if self.space != "private":
            wave.record(site, self, index, value)
        places = self.places(wave, site, index)
        if places.__class__ is not slice:
            places = np.atleast_1d(places)
            lanes: Any = slice(None) if mask is None else mask
            if places.shape[-1] == 1:  # all to one place: the last lane wins
                lanes = [-1] if mask is None else np.flatnonzero(mask)[-1:]
            else:
                places = places[..., lanes]
            if value.__class__ is array and value.shape[-1] > 1:
                value = value[..., lanes]
        self.put(site.scalar, places, value)

    def fill(self, wave: Wave, site: Site, index: Lanes) -> None:
        """An asynchronous copy has begun to fill the element `index` of each active lane."""
        if self.in_flight is None:
            self.in_flight = np.zeros(len(self.bytes), bool)
        self.filling = site
        places = np.broadcast_to(self.places(wave, site, index), (site.width, wave.lanes))
        self.in_flight.reshape(-1, site.scalar.size)[places[:, wave.active]] = True

    def put(self, scalar: Scalar, places: Lanes, value: Lanes) -> None:
        """Give numbers a value; of a whole number that is too large, the lower bits."""
        self.view(scalar)[places] = np.asarray(cut(value, scalar)) if scalar.whole else value
        if self.stored is not None:
            self.stored.reshape(-1, scalar.size)[places] = True

    def give(self, first: int, width: int, value: Lanes, scalar: Scalar) -> None:
        """A private array's values where it is declared, without an entry in the log."""
        self.put(scalar, self.begin(scalar.size) + first + steps(width), value)

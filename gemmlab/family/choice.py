"""Which kernel `kernel="auto"` takes for a product in float32 or TF32, and why.

Where constants of a kind of device are known (``results/choice.json``), `ranking` says how long each of the
`candidates` would take, and the quickest is taken, unless others were timed here and were quicker (`settle`). All other
devices, and `edges` other than "auto", take the nearest row of the table (`selection`).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from math import log2
from typing import NamedTuple

from ..caches import Notes, cached
from ..catalog import find, sources
from ..opencl.devices import Device
from ..version import __version__
from . import selection
from .candidates import KERNELS, candidates
from .ranking import Chip, Constants, Shared, Work, seconds, sharing, text_of, work
from .selection import Choice, kind

Sizes = tuple[int, int, int]

#: Winners of trials on the device at hand (see `settle`), by device, driver, version, precision and class of shapes.
winners = Notes("choices.json")
_forgetting: list[Callable[[], None]] = []


class Known(NamedTuple):
    """The constants of a kind of device.

    Attributes:
        device, units: on which they were found: its name and its compute units.
        chip: what all texts share.
        texts: those of each text (`ranking.text_of`).
        ways: how the work of each text may be shared (`ranking.sharing`). A few texts and ways serve all shapes; with
            more of them, nearly every shape would have to wait for the compiler.
        timed: the quickest candidate of the record at usual sizes in float32, by M, N, K.
        check: seconds to see whether TF32 suits the operands, and further seconds per element.
    """

    device: str
    units: int
    chip: Chip
    texts: dict[tuple, Constants]
    ways: dict[tuple, frozenset[Shared]]
    timed: dict[Sizes, Choice]
    check: tuple[float, float]


class Ranked(NamedTuple):
    """A candidate, and how long it would take: the seconds of its launches, and of a look at the operands for TF32."""

    choice: Choice
    seconds: float
    work: Work


@cached(16)
def known(device: Device) -> Known | None:
    """The constants for a device: those of its kind, with its own compute units; None if there are none."""
    file = sources.folder("results") / "choice.json"
    found = json.loads(file.read_text(encoding="utf-8")).get(kind(device)) if file.exists() else None
    if not found:
        return None
    texts, ways = {}, {}
    for name, params, constants, shared in found["texts"]:
        text = KERNELS[name], tuple(params.items())
        texts[text] = Constants(*(1e-9 * c for c in constants))
        ways[text] = frozenset((share, strip, last) for share, strip, last in shared)
    timed = {
        (m, n, k): (KERNELS[name], tuple(find(KERNELS[name]).complete(params).items()))
        for m, n, k, name, params in found.get("timed", ())
    }
    chip = Chip(**{name: 1e-9 * value for name, value in found["chip"].items()}, units=device.units)
    start, element = (1e-9 * value for value in found["check"])
    return Known(found["device"], found["units"], chip, texts, ways, timed, (start, element))


def ranked(device: Device, sizes: Sizes, precision: str = "float32") -> list[Ranked]:
    """The candidates for M, N, K of a column-major product, quickest first; none without constants.

    For "tf32" and "tf32x3" those in float32 are among them: they are more accurate, and at small sizes quicker.
    """
    facts, (m, n, k) = known(device), sizes
    if facts is None:
        return []
    found: list[Ranked] = []
    for way in dict.fromkeys((precision, "float32")):
        check = facts.check[0] + facts.check[1] * (m * k + k * n) if way != "float32" else 0.0
        able = [choice for choice in candidates(device, sizes, way) if text_of(choice) in facts.texts]
        few = [choice for choice in able if sharing(choice, device.units) in facts.ways[text_of(choice)]]
        for choice in few or able:
            does = work(choice, sizes)
            found.append(Ranked(choice, seconds(does, facts.texts[text_of(choice)], facts.chip) + check, does))
    return sorted(found, key=lambda one: one.seconds)


@cached(4096)
def choose(device: Device, sizes: Sizes, edges: str = "auto", precision: str = "float32") -> Choice:
    """The kernel and its parameters for M, N, K of a column-major product.

    Raises:
        ValueError: if no kernel of that strategy serves these sizes; the message names one that does.
    """
    if edges == "auto":
        timed = settled(device, sizes, precision) or _recorded(device, sizes, precision)
        if timed:
            return timed
        best = ranked(device, sizes, precision)
        if best:
            return best[0].choice
    return selection.choose(device, sizes, edges, precision)


def settled(device: Device, sizes: Sizes, precision: str) -> Choice | None:
    """The winner of the trials of such shapes on this device, if there were any."""
    found = _winners().get(_place(device, sizes, precision))
    if found is None:
        return None
    with suppress(ValueError, TypeError, KeyError):  # what cannot be read is forgotten
        name, params = found
        return KERNELS[name], tuple(find(KERNELS[name]).validate(params, device.limits).items())
    return None


def _recorded(device: Device, sizes: Sizes, precision: str) -> Choice | None:
    """The quickest candidate of the record, if these very sizes were recorded on a device like this one."""
    facts = known(device)
    if facts is None or precision != "float32" or (facts.device, facts.units) != (device.name, device.units):
        return None
    taken = facts.timed.get(sizes)
    return taken if taken and not find(taken[0]).problems(dict(taken[1]), device.limits) else None


def settle(device: Device, sizes: Sizes, precision: str, choice: Choice) -> None:
    """Take this kernel from now on, also in later sessions, for all shapes of the class of M, N, K."""
    name = next(name for name, key in KERNELS.items() if key == choice[0])
    winners.write(_place(device, sizes, precision), [name, dict(choice[1])])
    _winners.cache_clear()  # type: ignore[attr-defined]
    choose.cache_clear()  # type: ignore[attr-defined]
    for forget in _forgetting:
        forget()


def when_settled(forget: Callable[[], None]) -> None:
    """Have `forget` called when a winner is remembered: what was worked out for its shapes before is out of date."""
    _forgetting.append(forget)


@cached(1)
def _winners() -> dict[str, list]:
    return winners.read()


def _place(device: Device, sizes: Sizes, precision: str) -> str:
    words = (device.name, device.platform, device.version, device.driver, __version__, precision)
    return " | ".join((*words, shape_class(sizes)))


def shape_class(sizes: Sizes) -> str:
    """What M, N, K have in common with the shapes that one winner serves: each size to half a doubling, and whether A's
    columns and B's are aligned to vectors of 4."""
    halves = " ".join(str(round(2 * log2(max(1, size)))) for size in sizes)
    return halves + " aligned" * (sizes[0] % 4 == 0) + " even" * (sizes[2] % 4 == 0)


# In words.


class Explanation(NamedTuple):
    """What "auto" takes for a product, and why; `str` says it in words.

    Attributes:
        m, n, k: of the row-major product.
        precision: as asked for.
        kernel: the kernel's key, or "packed" (see `gemmlab.blas.packed`).
        params: all its parameters; of "packed" none.
        why: sentences.
    """

    m: int
    n: int
    k: int
    precision: str
    kernel: int | str
    params: dict[str, int]
    why: str

    def __str__(self) -> str:
        words = ", ".join(f"{name}={value}" for name, value in self.params.items())
        taken = f"kernel {self.kernel} with {words}" if words else f"kernel {self.kernel!r}"
        asked = "" if self.precision == "float32" else f" in {self.precision}"
        return f"{self.m} x {self.n} x {self.k}{asked}: {taken}. {self.why}"


def explain(device: Device, m: int, n: int, k: int, precision: str = "float32") -> Explanation:
    """What `choose` takes for a row-major product of such sizes, and why."""
    sizes = n, m, k  # the column-major product is that of the swapped operands
    kernel, pairs = choose(device, sizes, "auto", precision)
    return Explanation(m, n, k, precision, kernel, dict(pairs), _why(device, sizes, precision, (kernel, pairs)))


def _why(device: Device, sizes: Sizes, precision: str, taken: Choice) -> str:
    if settled(device, sizes, precision) == taken:
        return f"It was the quickest of those that were timed on {device} at such sizes."
    if _recorded(device, sizes, precision) == taken:
        return f"It was the quickest of all that were recorded on {device} at exactly these sizes."
    order = ranked(device, sizes, precision)
    if not order:
        return f"No constants are known for {device}: it is the row of the table that is nearest to these sizes."
    facts, best = known(device), order[0]
    assert facts is not None
    sentences = [
        f"Of {len(order)} candidates it should be the quickest, with {_microseconds(best.seconds)} on {device}"
        f"{'' if facts.device in device.name else f' as far as constants of {facts.device} tell'}.",
        _shape_of(best, sizes, device),
    ]
    if precision != "float32":
        sentences.append(_beside_float32(order, precision))
    others = [one for one in order[1:] if text_of(one.choice) != text_of(taken)]
    if others:
        sentences.append(f"Next comes {_in_words(others[0], sizes)} with {_microseconds(others[0].seconds)}.")
    return " ".join(sentences)


def _shape_of(one: Ranked, sizes: Sizes, device: Device) -> str:
    groups, resident, steps, _, parts, *_ = one.work
    words = f"{groups:,} work-groups on {device.units} compute units do {steps:,} steps of k each"
    if parts > 1:
        words += f", and the sums of a tile that up to {parts} of them share are added up"
    return f"It computes {_tiles(one.choice, sizes)}: {words}{', after copies of operands' * (one.work.copied > 0)}."


def _tiles(choice: Choice, sizes: Sizes) -> str:
    """The tiles of the row-major result."""
    rows, cols, _ = find(choice[0]).tiles(dict(choice[1]))
    return f"tiles of {cols} x {rows} of the {sizes[1]} x {sizes[0]} result"


def _in_words(one: Ranked, sizes: Sizes) -> str:
    return f"kernel {one.choice[0]} in {_tiles(one.choice, sizes)}"


def _beside_float32(order: list[Ranked], precision: str) -> str:
    tensor = next((one for one in order if find(one.choice[0]).tensor), None)
    plain = next((one for one in order if not find(one.choice[0]).tensor), None)
    if tensor is None or plain is None:
        return ""
    faster = "float32 is quicker here, so that it multiplies" if plain.seconds < tensor.seconds else "tensor cores are"
    return (
        f"In {precision} it would take {_microseconds(tensor.seconds)}, a look at the operands included, and in "
        f"float32 {_microseconds(plain.seconds)}: {faster}{'' if plain.seconds < tensor.seconds else ' quicker'}."
    )


def _microseconds(seconds: float) -> str:
    return f"{1e6 * seconds:,.1f} microseconds"

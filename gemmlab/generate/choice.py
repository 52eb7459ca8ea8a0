"""Which kernel `kernel="auto"` takes for a product in float32 or TF32, and why.

Where constants of a kind of device are known (``results/choice.json``), `ranking` says how long
each of the `candidates` would take, and the quickest is taken, unless others were timed here and
were quicker (`record_winner`). All other devices, and `edges` other than "auto", take the nearest
row of the table (`selection`).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from math import inf, log2
from typing import NamedTuple

from ..caches import Notes, cached
from ..catalog import find, sources
from ..catalog.spec import round_up
from ..opencl.devices import Device
from ..version import __version__
from . import selection
from .candidates import KERNELS, candidates
from .ranking import Chip, Constants, Shared, Work, seconds, sharing, text_of, work
from .selection import Choice, kind

Sizes = tuple[int, int, int]

#: The model is wrong by a fifth at times. TF32 has to be so much quicker than float32 to multiply
#: instead, and so has a way to share work that is not on the menu (`Known.ways`), which has to be
#: compiled first.
_CLEARLY = 1.2

#: Winners of trials on the device at hand (see `record_winner`), by device, driver, version,
#: precision and class of shapes.
winners = Notes("choices.json")
_on_winner: list[Callable[[], None]] = []


class Known(NamedTuple):
    """The constants of a kind of device.

    Attributes:
        device, units: on which they were found: its name and its compute units.
        chip: what all texts share.
        texts: those of each text (`ranking.text_of`).
        ways: how the work of each text is mostly shared (`ranking.sharing`). A few texts and ways
            serve nearly all shapes; with more of them, nearly every shape would have to wait for
            the compiler.
        timed: the quickest candidate of the record at usual sizes in float32, by M, N, K.
        check: seconds of the device to see whether TF32 suits the operands, further ones per
            element, and those of the host until the next call can look; nothing where there are no
            tensor cores.
    """

    device: str
    units: int
    chip: Chip
    texts: dict[tuple, Constants]
    ways: dict[tuple, frozenset[Shared]]
    timed: dict[Sizes, Choice]
    check: tuple[float, ...]


class Ranked(NamedTuple):
    """A candidate, and how long it would take: the seconds of its launches, and of a look at the
    operands for TF32.
    """

    choice: Choice
    seconds: float
    work: Work


@cached(16)
def known(device: Device) -> Known | None:
    """The constants for a device: those of its kind, with its own compute units; None if there are
    none.
    """
    file = sources.folder("results") / "choice.json"
    found = (
        json.loads(file.read_text(encoding="utf-8")).get(kind(device)) if file.exists() else None
    )
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
    check = tuple(1e-9 * value for value in found["check"])
    return Known(found["device"], found["units"], chip, texts, ways, timed, check)


def ranked(device: Device, sizes: Sizes, precision: str = "float32") -> list[Ranked]:
    """The candidates for M, N, K of a column-major product, quickest first; none without constants.

    For "tf32" and "tf32x3" those in float32 are among them: they are more accurate, and at small
    sizes quicker.
    """
    facts = known(device)
    if facts is None:
        return []
    found: list[Ranked] = []
    for way in dict.fromkeys((precision, "float32")):
        able: list[Ranked] = []
        for choice in candidates(device, sizes, way):
            if text_of(choice) in facts.texts:
                does = work(choice, sizes)
                takes = seconds(does, facts.texts[text_of(choice)], facts.chip)
                able.append(
                    Ranked(
                        choice, takes if way == "float32" else _checked(takes, sizes, facts), does
                    )
                )
        found += _on_the_menu(able, facts, device.units)
    return sorted(found, key=lambda one: one.seconds)


def ranked_for_batch(device: Device, sizes: Sizes, number: int) -> list[Choice]:
    """Kernels in float32 for so many products of M, N, K in one launch, quickest first: those of
    `ranked`, with a work-group for each tile. Where there are none, the one for a single product
    with as many elements.

    To the model a batch is one product, whose rows of tiles are those of all products.
    """
    (m, n, k), facts, found = sizes, known(device), {}
    for one in ranked(device, (number * m, n, k)) if facts else ():
        kernel, params = one.choice
        choice = (
            kernel,
            tuple({**dict(params), "GROUPS": 0}.items()) if "GROUPS" in dict(params) else params,
        )
        if facts and text_of(choice) in facts.texts:
            rows = find(kernel).tiles(dict(choice[1]))[0]
            does = work(choice, (number * round_up(m, rows), n, k))
            found[choice] = seconds(does, facts.texts[text_of(choice)], facts.chip)
    side = number**0.5
    return sorted(found, key=found.__getitem__) or [
        choose(device, (round(m * side), round(n * side), k))
    ]


def _on_the_menu(able: list[Ranked], facts: Known, units: int) -> list[Ranked]:
    """Those that share work as the menu has it, and others that are clearly quicker than all of
    these.
    """
    usual = [sharing(one.choice, units) in facts.ways[text_of(one.choice)] for one in able]
    best = min((one.seconds for one, on_it in zip(able, usual, strict=True) if on_it), default=inf)
    return [
        one
        for one, on_it in zip(able, usual, strict=True)
        if on_it or _CLEARLY * one.seconds < best
    ]


def _checked(takes: float, sizes: Sizes, facts: Known) -> float:
    """Seconds per call of a product in TF32, if calls follow each other: the device looks at the
    operands, and then it multiplies while the host comes back and works the next call out, if that
    takes no longer.
    """
    (m, n, k), (start, element, host) = sizes, facts.check
    return start + element * (m * k + k * n) + max(takes, host)


@cached(4096)
def choose(device: Device, sizes: Sizes, edges: str = "auto", precision: str = "float32") -> Choice:
    """The kernel and its parameters for M, N, K of a column-major product.

    Raises:
        ValueError: if no kernel of that strategy serves these sizes; the message names one that
            does.
    """
    if edges == "auto":
        timed = recorded_winner(device, sizes, precision) or _recorded(device, sizes, precision)
        if timed:
            return timed
        order = ranked(device, sizes, precision)
        if order:
            best = _best(order).choice
            # in float32 also by trials and records, as without any precision
            return best if precision == "float32" or find(best[0]).tensor else choose(device, sizes)
    return selection.choose(device, sizes, edges, precision)


def _best(order: list[Ranked]) -> Ranked:
    """The quickest candidate, but one in TF32 only if it is clearly quicker than those in
    float32.
    """
    plain = _quickest(order, tensor=False) or order[0]
    return plain if _CLEARLY * order[0].seconds > plain.seconds else order[0]


def _quickest(order: list[Ranked], tensor: bool) -> Ranked | None:
    return next((one for one in order if find(one.choice[0]).tensor == tensor), None)


def recorded_winner(device: Device, sizes: Sizes, precision: str) -> Choice | None:
    """The winner of the trials of such shapes on this device, if there were any."""
    found = _winners().get(_place(device, sizes, precision))
    if found is None:
        return None
    with suppress(ValueError, TypeError, KeyError):  # what cannot be read is forgotten
        name, params = found
        return KERNELS[name], tuple(find(KERNELS[name]).validate(params, device.limits).items())
    return None


def _recorded(device: Device, sizes: Sizes, precision: str) -> Choice | None:
    """The quickest candidate of the record, if these very sizes were recorded on a device like this
    one.
    """
    facts = known(device)
    if (
        facts is None
        or precision != "float32"
        or (facts.device, facts.units) != (device.name, device.units)
    ):
        return None
    taken = facts.timed.get(sizes)
    return taken if taken and not find(taken[0]).problems(dict(taken[1]), device.limits) else None


def record_winner(device: Device, sizes: Sizes, precision: str, choice: Choice) -> None:
    """Take this kernel from now on, also in later sessions, for all shapes of the class of M, N,
    K.
    """
    name = next(name for name, key in KERNELS.items() if key == choice[0])
    winners.write(_place(device, sizes, precision), [name, dict(choice[1])])
    _winners.cache_clear()  # type: ignore[attr-defined]
    choose.cache_clear()  # type: ignore[attr-defined]
    for forget in _on_winner:
        forget()


def on_new_winner(forget: Callable[[], None]) -> None:
    """Have `forget` called when a winner is remembered: what was worked out for its shapes before
    is out of date.
    """
    _on_winner.append(forget)


@cached(1)
def _winners() -> dict[str, list]:
    return winners.read()


def _place(device: Device, sizes: Sizes, precision: str) -> str:
    words = (device.name, device.platform, device.version, device.driver, __version__, precision)
    return " | ".join((*words, shape_class(sizes)))


def shape_class(sizes: Sizes) -> str:
    """What M, N, K have in common with the shapes that one winner serves: each size to half a
    doubling, and whether A's columns and B's are aligned to vectors of 4.
    """
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
    return Explanation(
        m, n, k, precision, kernel, dict(pairs), _why(device, sizes, precision, (kernel, pairs))
    )


def _why(device: Device, sizes: Sizes, precision: str, taken: Choice) -> str:
    if recorded_winner(device, sizes, precision) == taken:
        return f"It was the quickest of those that were timed on {device} at such sizes."
    if _recorded(device, sizes, precision) == taken:
        return f"It was the quickest of all that were recorded on {device} at exactly these sizes."
    order = ranked(device, sizes, precision)
    if not order:
        return (
            f"No constants are known for {device}: it is the row of the table that is nearest to "
            "these sizes."
        )
    facts, best = known(device), _best(order)
    assert facts is not None
    rivals = order if best is order[0] else [one for one in order if not find(one.choice[0]).tensor]
    which = "" if rivals is order else " in float32"
    source = "" if facts.device in device.name else f", by the constants of {facts.device}"
    sentences = [
        f"Of {len(rivals)} candidates{which} it should be the quickest, with "
        f"{_microseconds(best.seconds)} on {device}{source}.",
        _shape_of(best, sizes, device),
    ]
    if precision != "float32":
        sentences.append(_beside_float32(order, precision))
    others = [one for one in rivals[1:] if text_of(one.choice) != text_of(taken)]
    if others:
        sentences.append(
            f"Next comes {_in_words(others[0], sizes)} with {_microseconds(others[0].seconds)}."
        )
    return " ".join(sentences)


def _shape_of(one: Ranked, sizes: Sizes, device: Device) -> str:
    groups, resident, steps, _, parts, *_ = one.work
    words = f"{groups:,} work-groups on {device.units} compute units do {steps:,} steps of k each"
    if parts > 1:
        words += f", and the sums of a tile that up to {parts} of them share are added up"
    return (
        f"It computes {_tiles(one.choice, sizes)}: "
        f"{words}{', after copies of operands' * (one.work.copied > 0)}."
    )


def _tiles(choice: Choice, sizes: Sizes) -> str:
    """The tiles of the row-major result."""
    rows, cols, _ = find(choice[0]).tiles(dict(choice[1]))
    return f"tiles of {cols} x {rows} of the {sizes[1]} x {sizes[0]} result"


def _in_words(one: Ranked, sizes: Sizes) -> str:
    return f"kernel {one.choice[0]} in {_tiles(one.choice, sizes)}"


def _beside_float32(order: list[Ranked], precision: str) -> str:
    tensor, plain = (_quickest(order, tensor) for tensor in (True, False))
    if tensor is None or plain is None:
        return ""
    if _best(order) is tensor:
        which = "tensor cores are quicker"
    elif tensor.seconds < plain.seconds:
        which = "that is too close to be sure, so that float32 multiplies"
    else:
        which = "float32 is quicker here, so that it multiplies"
    return (
        f"In {precision} it would take {_microseconds(tensor.seconds)}, a look at the operands "
        f"included, and in float32 {_microseconds(plain.seconds)}: {which}."
    )


def _microseconds(seconds: float) -> str:
    return f"{1e6 * seconds:,.1f} microseconds"

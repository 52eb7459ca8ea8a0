"""Which kernel of the catalog `kernel="auto"` runs for a product in float32 or TF32.

Where the table has a model of the device, `cost` predicts how long each candidate takes, and the
fastest one runs, unless `gemmlab.tune` has timed such sizes. Other devices, and values of `edges`
other than "auto", use the table's nearest row.

A candidate is a text of the table with a number of work-groups that share its work. Texts whose
tiles are much larger than C are left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from math import log2
from typing import Any, NamedTuple

from ..caches import Notes, cached
from ..catalog import find
from ..catalog.spec import Params, round_up, tiles_over
from ..opencl.devices import Device
from . import table
from .cost import Chip, Constants, Work, seconds, work
from .table import Choice, Sizes

#: How much faster than float32 a candidate in TF32 must be predicted to be: the model may be wrong
#: by a fifth.
CLEARLY = 1.2
#: How many times as long a step of the separate loop for the last steps of k (TAIL) takes.
TAIL_STEP = 1.5
#: The part of all steps that this loop must save: it is one more text to compile.
TAIL_SAVES = 0.1
#: Rows or columns of C that a narrow kernel may have.
LINES = (1, 2, 4, 8, 16)

#: Winners of trials on this machine, by device, driver, version, precision and class of shapes.
winners = Notes("choices.json")


class KnownText(NamedTuple):
    """What the table has of a text.

    Attributes:
        choice: the kernel, and its parameters except those of sharing.
        constants: of the model.
        groups: numbers of work-groups per compute unit among which its work may be shared.
    """

    choice: Choice
    constants: Constants
    groups: tuple[float, ...]


class Model(NamedTuple):
    """The table's model of a kind of device.

    Attributes:
        device: the one that was measured.
        chip: what all texts share.
        texts: those for each precision.
        check: of the range check for TF32: seconds of the device, seconds per element, and the
            host's seconds until the next call can check; empty without tensor cores.
    """

    device: str
    chip: Chip
    texts: dict[str, list[KnownText]]
    check: tuple[float, ...]


class Candidate(NamedTuple):
    """A kernel that may be chosen, with its predicted seconds, including TF32's range check."""

    choice: Choice
    seconds: float
    work: Work


@cached(16)
def model(device: Device) -> Model | None:
    """The model of the device's kind, with the device's own compute units; None without one."""
    found = table.section(table.kind(device), "model")
    if not found:
        return None
    texts: dict[str, list[KnownText]] = {precision: [] for precision in table.IMPLIED}
    for name, params, constants, groups, resident in found["texts"]:
        spec = find(name)
        if spec.problems(spec.complete(params), device.limits):
            continue
        choice = name, tuple(params.items())
        own = Constants._make([*(1e-9 * x for x in constants), resident])
        parts = params["PARTS"] if spec.tensor else 0
        texts[("float32", "tf32", "tf32x3")[parts]].append(KnownText(choice, own, tuple(groups)))
    chip = Chip(**{name: 1e-9 * value for name, value in found["chip"].items()}, units=device.units)
    check = tuple(1e-9 * value for value in found["check"])
    return Model(found["device"], chip, texts, check)


# Candidates


def settings(text: Choice, groups: tuple[float, ...], sizes: Sizes, units: int) -> Iterator[Choice]:
    """A text with each number of work-groups (`groups` are those per compute unit) at M, N, K; none
    if its tiles do not suit C.
    """
    kernel, p = text[0], dict(text[1])
    spec = find(kernel)
    if kernel == "narrow":
        suits = _suits_narrow(p, sizes)
    else:
        rows, columns, _ = spec.tiles(p)
        suits = rows < max(33, 2 * sizes[0]) and columns < max(33, 2 * sizes[1])
    if kernel == "warp_tiling":
        suits &= p["WIDTH"] > 1 or sizes[0] % 4 > 0  # vectors fit, without a copy of A
    if not suits:
        return
    if "GROUPS" not in spec.defaults:
        yield kernel, tuple((spec.defaults | p).items())
        return
    (rows, columns), depth = spec.tile_grid(*sizes[:2], p), spec.tiles(p)[2]
    steps, rest = tiles_over(sizes[2], depth), sizes[2] % depth
    for number in _groups(groups, units, rows * columns, steps):
        full = spec.defaults | p | {"GROUPS": number}
        if kernel == "warp_tiling":
            saves = rest > 0 and depth - TAIL_STEP * rest >= TAIL_SAVES * sizes[2]
            full["TAIL"] = int(saves and rows * columns >= units)
            full["ORDER"] = 16 if number == units else 8
        yield kernel, tuple(full.items())


def _suits_narrow(p: Params, sizes: Sizes) -> bool:
    """Whether C has few columns (ROWS = 0), or few rows, and the loads fit the long operand."""
    m, n, k = sizes
    few, contiguous = (m, k) if p["ROWS"] else (n, m)
    lines = next((count for count in LINES if count >= few), None)
    if lines != p["LINES"] or p["WIDTH"] != (4 if contiguous % 4 == 0 else 1):
        return False
    return p["TSK"] <= 128 or 2 * k > p["TSK"]


def _groups(per_unit: tuple[float, ...], units: int, tiles: int, steps: int) -> list[int]:
    """How many work-groups may share so many tiles of so many steps; 0 for one per tile."""
    offered = {max(1, round(share * units)) for share in per_unit}
    return [0, *sorted(n for n in offered if n <= tiles * steps and 8 * n >= tiles)]


# The choice


def ranked(device: Device, sizes: Sizes, precision: str = "float32") -> list[Candidate]:
    """The candidates for M, N, K of a column-major product, fastest first; none without a model.

    For "tf32" and "tf32x3" those in float32 are among them: more accurate, and often faster.
    """
    known = model(device)
    if known is None:
        return []
    found: list[Candidate] = []
    for kind in dict.fromkeys((precision, "float32")):
        for text in known.texts[kind]:
            for choice in settings(text.choice, text.groups, sizes, device.units):
                does = work(choice, sizes)
                predicted = seconds(does, text.constants, known.chip)
                if kind != "float32":
                    predicted = with_check(predicted, sizes, known)
                found.append(Candidate(choice, predicted, does))
    return sorted(found, key=lambda one: one.seconds)


def with_check(seconds: float, sizes: Sizes, known: Model) -> float:
    """Seconds per call of a product in TF32, if calls follow each other.

    The device checks the operands' range and multiplies, while the host prepares the next call.
    """
    (m, n, k), (start, element, host) = sizes, known.check
    return start + element * (m * k + k * n) + max(seconds, host)


def best(order: list[Candidate]) -> Candidate:
    """The fastest candidate, but one in TF32 only if it is clearly faster than all in float32."""
    plain = next((one for one in order if not find(one.choice[0]).tensor), order[0])
    return plain if CLEARLY * order[0].seconds > plain.seconds else order[0]


@cached(4096)
def kernel_for(
    device: Device, sizes: Sizes, edges: str = "auto", precision: str = "float32"
) -> Choice:
    """The kernel and its parameters for M, N, K of a column-major product.

    Raises:
        ValueError: if no kernel of that strategy supports these sizes.
    """
    if precision == "float32" and edges != "auto":
        return table.nearest(device, sizes, edges)
    found = winner(device, sizes, precision)
    if found:
        return found
    order = ranked(device, sizes, precision)
    if order:
        chosen = best(order).choice
        plain = precision != "float32" and not find(chosen[0]).tensor
        return kernel_for(device, sizes) if plain else chosen
    return table.nearest(device, sizes, "pad")


def ranked_for_batch(device: Device, sizes: Sizes, number: int) -> list[tuple[Choice, float]]:
    """Float32 kernels for so many products in one launch, each with its seconds, fastest first.

    The model sees a batch as one product, whose rows of tiles are those of all products; each tile
    has a work-group. None without a model.
    """
    (m, n, k), known, found = sizes, model(device), []
    if known is not None:
        for text in known.texts["float32"]:
            for choice in settings(text.choice, (), (number * m, n, k), device.units):
                rows, _, _ = find(choice[0]).tiles(dict(choice[1]))
                does = work(choice, (number * round_up(m, rows), n, k))
                found.append((choice, seconds(does, text.constants, known.chip)))
    return sorted(found, key=lambda pair: pair[1])


# Measured choices


def winner(device: Device, sizes: Sizes, precision: str) -> Choice | None:
    """The winner of the trials of such shapes on this device, if there were any."""
    found: Any = _winners().get(_key(device, sizes, precision))
    with suppress(ValueError, TypeError, KeyError):  # what cannot be read is ignored
        name, params = found
        return name, tuple(find(name).validate(params, device.limits).items())
    return None


def record_winner(device: Device, sizes: Sizes, precision: str, choice: Choice) -> None:
    """Choose this kernel from now on, also in later sessions, for the class of M, N, K."""
    winners.write(_key(device, sizes, precision), [choice[0], dict(choice[1])])
    _winners.cache_clear()  # type: ignore[attr-defined]
    kernel_for.cache_clear()  # type: ignore[attr-defined]


@cached(1)
def _winners() -> dict[str, list]:
    return winners.read()


def _key(device: Device, sizes: Sizes, precision: str) -> str:
    """What shapes with the same winner have in common: device, driver, version, precision, each
    size to half a doubling, and whether the columns of A and of B are aligned to vectors of 4.
    """
    halves = " ".join(str(round(2 * log2(max(1, size)))) for size in sizes)
    return " | ".join(
        (device.identity, precision, halves, str(sizes[0] % 4 == 0), str(sizes[2] % 4 == 0))
    )

"""Which kernel of the catalog `kernel="auto"` runs for a product in float32 or TF32.

All that was measured is in one table, ``results/choice.json``. Where it has a model of the device,
the model predicts how long each candidate takes, and the fastest one runs, unless `gemmlab.tune`
has timed such sizes. Other devices, and values of `edges` other than "auto", use the table's
nearest row. A candidate is a text of the table with a number of work-groups that share its work.
Texts whose tiles are much larger than C are left out.

The model has a few constants for each text, fitted to measurements. A kernel is launched as G
work-groups, each of which does s steps of k (see `Work`). A compute unit holds R of them
(`resident`), so they run in rounds. Those of the first round are spread evenly; later ones go to
the unit that is free first, which may take more than its share. A step of one work-group takes
`latency` seconds at least; q of them on a unit share its arithmetic, which takes q times `share`
seconds. The larger of the two hides most of the other, but not all: where they are equal, a step
takes 15 % longer (a 5-norm, which ranks the recorded candidates better than the other norms from
3 to 8, and than the maximum). Beginning a tile and storing it takes `tile` seconds. Memory is a
second bound: nothing is faster than reading A and B and writing C once. Where work-groups share
tiles, adding up the parts takes `cut` seconds, and `part` seconds for each further part of a tile.
Every further launch adds a fixed time.

Published models of this kind are Stream-K's (Osama et al., 2023), with four constants per chip and
kernel (the start, the sharing of a tile, the steps, the parts), AMD's Origami and NVIDIA's
nvMatmulHeuristics, which multiply rounds by the larger of arithmetic and memory time.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from contextlib import suppress
from math import ceil
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from ..caches import Notes, cached
from ..ladder import Key, catalog, find, sources
from ..ladder.spec import round_up, tiles_over

if TYPE_CHECKING:
    from ..opencl.devices import Device
Sizes = tuple[int, int, int]
#: A kernel's number or name, and its parameters as pairs: a key for caches.
Setting = tuple[Key, tuple[tuple[str, int], ...]]

#: The treatments of edges, each with the kernel that runs where the table has no row for it.
EDGE_KERNELS: dict[str, Key] = {"pad": 3, "guard": 12, "shift": 13}
#: What float32 is multiplied in.
Precision = Literal["float32", "tf32", "tf32x3"]
#: The parameters that a precision implies.
IMPLIED: dict[str, dict[str, int]] = {
    "float32": {},
    "tf32": {"PARTS": 1, "EVERY": 0, "TENSOR": 1},
    "tf32x3": {"PARTS": 2, "EVERY": 1, "TENSOR": 1},
}
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


# The table: by kind of device, up to three sections. "model" holds the constants of the model for
# kernels of the catalog, "kernels" the fastest kernel at some sizes for each treatment of edges,
# "tiles" the constants of generated kernels, and AutoGEMM's rules for chapter 14.


def kind_of(platform: str, kind: str = "GPU") -> str:
    """Return a device's kind in the table: a GPU's by its vendor, another device's by its
    runtime.
    """
    name = platform.lower()
    if kind == "GPU":
        return "nvidia" if "nvidia" in name else "gpu"
    return "intel" if "intel" in name else "pocl"


@cached(1)
def table() -> dict[str, Any]:
    """Return the whole file."""
    return json.loads((sources.folder("results") / "choice.json").read_text(encoding="utf-8"))


def section(kind: str, name: str) -> dict[str, Any]:
    """Return a section of a kind's entry; NVIDIA's for other GPUs, none of which was measured."""
    entries = table()
    if kind == "gpu" and kind not in entries:
        kind = "nvidia"
    return entries.get(kind, {}).get(name, {})


def kernel_rows(kind: str, edges: str) -> list[dict[str, Any]]:
    """Return the rows for a treatment of edges: "size" (of a cube, or M, N and K of a column-major
    product), "kernel", all "params", and "gflops".
    """
    return [
        {**row, "params": catalog[row["kernel"]].complete(row["params"])}
        for row in section(kind, "kernels").get(edges, [])
    ]


def nearest(device: Device, sizes: Sizes, edges: str) -> Setting:
    """Return the kernel of the row whose size is nearest to M, N, K of a column-major product.
    Raise ValueError if the device supports no kernel for `edges` at these sizes.
    """

    def supports(number: Key, params: dict[str, int]) -> bool:
        spec = catalog[number]
        if spec.problems(params, device.limits):
            return False
        return edges != "shift" or spec.supported_sizes(*sizes, params) == sizes

    every = kernel_rows(kind_of(device.platform, device.kind), edges)
    rows = [row for row in every if supports(row["kernel"], row["params"])]
    if rows:
        row = min(rows, key=lambda each: distance(each["size"], sizes))
        return row["kernel"], tuple(row["params"].items())
    spec = catalog[EDGE_KERNELS[edges]]
    params = spec.fit(device.limits, sizes if edges == "shift" else None)
    if supports(spec.number, params):
        return spec.number, tuple(params.items())
    if edges == "shift":
        raise ValueError(
            f"edges={edges!r} needs at least one tile, and no tile that {device} supports is as "
            f"small as {sizes[1]} rows of a and {sizes[0]} columns of b; edges='pad' and "
            "edges='guard' support any size"
        )
    raise ValueError(f"edges={edges!r}: no kernel for it fits the limits of {device}")


def implied(precision: str, kernel: Key) -> dict[str, int]:
    """Return the parameters that a precision implies, of those that this kernel has."""
    defaults = find(kernel).defaults
    return {name: value for name, value in IMPLIED[precision].items() if name in defaults}


def dimensions(size: Any) -> Sizes:
    """Return M, N, K of a row's size: a number for a cube, or the three."""
    if isinstance(size, int):
        return size, size, size
    m, n, k = size
    return m, n, k


def distance(size: Any, sizes: Sizes) -> float:
    """Return how far a row's size is from M, N, K, in doublings."""
    return sum(abs(math.log2(s / max(t, 1))) for s, t in zip(dimensions(size), sizes, strict=True))


# The model


class Work(NamedTuple):
    """What a kernel does at M, N, K, before any constant of a device.

    Attributes:
        groups: work-groups.
        steps: steps of k of a work-group, at most.
        tiles: tiles that a work-group begins, at most.
        parts: work-groups that share a tile, at most.
        read: bytes of A and B.
        written: bytes of C.
        launches: launches besides the kernel itself, such as padding.
        copied: bytes that these launches read and write, and those of parts of tiles.
    """

    groups: int
    steps: int
    tiles: int = 1
    parts: int = 1
    read: int = 0
    written: int = 0
    launches: int = 0
    copied: int = 0


class Constants(NamedTuple):
    """The constants of a text on a device, in seconds: see the top of this module. `start` is added
    once; `resident` is the number of work-groups that a compute unit holds at the same time.
    """

    start: float
    tile: float
    latency: float
    share: float
    cut: float
    part: float
    resident: int


class FittedChip(NamedTuple):
    """What all texts share: seconds per byte read and written, and per launch; compute units."""

    read: float
    write: float
    launch: float
    units: int


def seconds(work: Work, own: Constants, chip: FittedChip) -> float:
    """Return how long a kernel takes."""
    rounds, rest = divmod(work.groups, own.resident * chip.units)
    busy = rounds * (own.latency**5 + (own.resident * own.share) ** 5) ** 0.2
    if rest:  # work-groups of the last round: so many are on a unit at the same time
        each = rest / chip.units
        last = min(own.resident, 1 + each) if rounds else ceil(each)
        busy += (own.latency**5 + (last * own.share) ** 5) ** 0.2
        rounds += 1
    memory = work.read * chip.read + work.written * chip.write
    time = rounds * work.tiles * own.tile + max(work.steps * busy, memory)
    if work.parts > 1:
        time += own.cut + (work.parts - 1) * own.part
    return own.start + time + work.launches * chip.launch + work.copied * (chip.read + chip.write)


def work(setting: Setting, sizes: Sizes) -> Work:
    """Return what a kernel of the catalog does for M, N, K of a column-major product."""
    m, n, k = sizes
    spec, p = find(setting[0]), dict(setting[1])
    rows, columns, depth = spec.tiles(p)
    count, per_tile = tiles_over(m, rows) * tiles_over(n, columns), tiles_over(k, depth)
    groups, steps, begun, parts = count, per_tile, 1, 1
    if p.get("GROUPS"):
        groups = p["GROUPS"]
        steps = tiles_over(count * per_tile, groups)
        begun = tiles_over(steps, per_tile)
        parts = 1 if count % groups == 0 else min(per_tile, 1 + tiles_over(groups, count))
    launches, copied, (align_a, align_b) = 0, 0, spec.alignment(p)
    if (spec.wants_transposed(p) and n > 1 and k > 1) or round_up(k, align_b) != k:
        launches, copied = 1, 4 * k * n
    if round_up(m, align_a) != m:
        launches, copied = launches + 1, copied + 4 * k * m
    read, written = 4 * (m + n) * k, 4 * m * n
    return Work(groups, steps, begun, parts, read, written, launches, copied)


class FittedText(NamedTuple):
    """What the table has about a text."""

    setting: Setting  # the kernel, and its parameters except those of sharing
    constants: Constants
    groups: tuple[float, ...]  # work-groups per compute unit among which its work may be shared


class Model(NamedTuple):
    """The table's model of a kind of device, and the winners of trials on this device."""

    device: str  # the one that was measured
    chip: FittedChip
    texts: dict[str, list[FittedText]]  # for each precision
    # Of the range check for TF32: seconds of the device, seconds per element, and the host's
    # seconds until the next call can check; empty without tensor cores.
    check: tuple[float, ...]
    winners: dict[str, Any]


@cached(16)
def model(device: Device) -> Model | None:
    """Return the model of the device's kind, with the device's own compute units; None without
    one.
    """
    entry = section(kind_of(device.platform, device.kind), "model")
    if not entry:
        return None
    texts: dict[str, list[FittedText]] = {precision: [] for precision in IMPLIED}
    for name, params, constants, groups, resident in entry["texts"]:
        spec = find(name)
        if spec.problems(spec.complete(params), device.limits):
            continue
        own = Constants._make([*(1e-9 * x for x in constants), resident])
        precision = "float32"
        if spec.tensor:
            precision = "tf32" if params["PARTS"] == 1 else "tf32x3"
        texts[precision].append(FittedText((name, tuple(params.items())), own, tuple(groups)))
    chip = FittedChip(
        **{name: 1e-9 * value for name, value in entry["chip"].items()}, units=device.units
    )
    check = tuple(1e-9 * value for value in entry["check"])
    return Model(entry["device"], chip, texts, check, winners.read())


# The candidates


class Candidate(NamedTuple):
    """A kernel that may be chosen, with its predicted seconds, including TF32's range check."""

    setting: Setting
    seconds: float
    work: Work


def settings(
    text: Setting, groups: tuple[float, ...], sizes: Sizes, units: int
) -> Iterator[Setting]:
    """Yield a text with each number of work-groups (`groups` counts them per compute unit) at M, N,
    K; none if its tiles do not suit C.
    """
    kernel, pairs = text
    m, n, k = sizes
    spec, p = find(kernel), dict(pairs)
    rows, columns, depth = spec.tiles(p)
    if kernel == "narrow":
        # C has few columns (ROWS = 0), or few rows, and the loads fit the long operand
        few, contiguous = (m, k) if p["ROWS"] else (n, m)
        suits = p["LINES"] == next((lines for lines in LINES if lines >= few), None)
        suits &= p["WIDTH"] == (4 if contiguous % 4 == 0 else 1)
        suits &= p["TSK"] <= 128 or 2 * k > p["TSK"]
    else:
        suits = rows < max(33, 2 * m) and columns < max(33, 2 * n)
    if kernel == "warp_tiling":
        suits &= p["WIDTH"] > 1 or m % 4 > 0  # vectors fit, without a copy of A
    if not suits:
        return
    full = spec.defaults | p
    if "GROUPS" not in full:
        yield kernel, tuple(full.items())
        return
    tiles = tiles_over(m, rows) * tiles_over(n, columns)
    steps, rest = tiles_over(k, depth), k % depth
    offered = {max(1, round(share * units)) for share in groups}
    sensible = sorted(x for x in offered if tiles / 8 <= x <= tiles * steps)
    for number in (0, *sensible):
        full["GROUPS"] = number  # 0 for one per tile
        if kernel == "warp_tiling":
            saves = rest > 0 and depth - TAIL_STEP * rest >= TAIL_SAVES * k
            full["TAIL"] = int(saves and tiles >= units)
            full["ORDER"] = 16 if number == units else 8
        yield kernel, tuple(full.items())


def ranked(
    device: Device, sizes: Sizes, precision: str = "float32", number: int = 1
) -> list[Candidate]:
    """Return the candidates for M, N, K of a column-major product, the best first; none without a
    model.

    For "tf32" and "tf32x3" those in float32 are among them: more accurate, and often faster. One in
    TF32 must be `CLEARLY` faster to come before them.

    In a batch of `number` products each tile has a work-group. The model treats the batch as one
    product that has the rows of tiles of all.
    """
    m, n, k = sizes
    fitted = model(device)
    if fitted is None:
        return []
    predictions: list[tuple[float, Candidate]] = []
    for kind in dict.fromkeys((precision, "float32")):
        for text in fitted.texts[kind]:
            groups = text.groups if number == 1 else ()
            for setting in settings(text.setting, groups, (number * m, n, k), device.units):
                rows = m
                if number > 1:  # each product has whole tiles
                    rows = number * round_up(m, find(setting[0]).tiles(dict(setting[1]))[0])
                does = work(setting, (rows, n, k))
                predicted = seconds(does, text.constants, fitted.chip)
                if kind != "float32":
                    predicted = with_check(predicted, sizes, fitted)
                reserve = 1 if kind == "float32" else CLEARLY
                predictions.append((reserve * predicted, Candidate(setting, predicted, does)))
    return [one for _, one in sorted(predictions, key=lambda pair: pair[0])]


def with_check(seconds: float, sizes: Sizes, fitted: Model) -> float:
    """Return seconds per call of a product in TF32, if calls follow each other.

    The device checks the operands' range and multiplies, while the host prepares the next call.
    """
    (m, n, k), (start, element, host) = sizes, fitted.check
    return start + element * (m * k + k * n) + max(seconds, host)


# The choice


def kernel_for(
    device: Device, sizes: Sizes, edges: str = "auto", precision: str = "float32"
) -> Setting:
    """Return the kernel and its parameters for M, N, K of a column-major product.

    Raises:
        ValueError: if no kernel of that strategy supports these sizes.
    """
    if precision == "float32" and edges != "auto":
        return nearest(device, sizes, edges)
    won = winner(device, sizes, precision)
    if won:
        return won
    order = ranked(device, sizes, precision)
    if not order:
        return nearest(device, sizes, "pad")
    best = order[0].setting
    if precision != "float32" and not find(best[0]).tensor:
        return kernel_for(device, sizes)  # there may be a winner in float32
    return best


def winner(device: Device, sizes: Sizes, precision: str) -> Setting | None:
    """Return the winner of the trials of such shapes on this device, if there were any."""
    fitted = model(device)
    if fitted is None or not fitted.winners:
        return None
    saved: Any = fitted.winners.get(_key(device, sizes, precision))
    with suppress(ValueError, TypeError, KeyError):  # what cannot be read is ignored
        name, params = saved
        return name, tuple(find(name).validate(params, device.limits).items())
    return None


def record_winner(device: Device, sizes: Sizes, precision: str, setting: Setting) -> None:
    """Choose this kernel from now on, also in later sessions, for the class of M, N, K."""
    winners.write(_key(device, sizes, precision), [setting[0], dict(setting[1])])
    model.cache_clear()


def _key(device: Device, sizes: Sizes, precision: str) -> str:
    """Return what shapes with the same winner have in common: device, driver, version, precision,
    each size to half a doubling, and whether the columns of A and of B are aligned to vectors of 4.
    """
    halves = " ".join(str(round(2 * math.log2(max(1, size)))) for size in sizes)
    return " | ".join(
        (device.identity, precision, halves, str(sizes[0] % 4 == 0), str(sizes[2] % 4 == 0))
    )

"""Record the device time of every kernel that `matmul` may choose, at many shapes, for `fit.py`.

    python tools/record_candidates.py results/my_candidates.json

The same command continues a file that exists. Compiling takes longer than running: all texts are
compiled first, on all cores. Then one shape after another is timed, on random matrices with the
layouts that `matmul` gets from arrays in C order.
"""

from __future__ import annotations

import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import suppress
from functools import cache, partial
from itertools import product
from math import inf
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from typing import Any

import common
import numpy as np
import pyopencl as cl
import pyopencl.array as cla
from compare import MOST_FLOPS, random_shapes
from registers import registers
from tqdm import tqdm

from gemmlab import matmul
from gemmlab.blas.layout import Matrix
from gemmlab.blas.plan import PlanBuilder
from gemmlab.blas.run import session_of
from gemmlab.cli import device_option, output_file
from gemmlab.generate import candidates
from gemmlab.generate.candidates import Setting, Sizes
from gemmlab.ladder import find
from gemmlab.measurement import clock, records
from gemmlab.measurement.framed import FramedProduct
from gemmlab.opencl.devices import Device, find_device
from gemmlab.opencl.launch import Kernel

#: M, N, K of the row-major products that the README's claims are about.
PROMISED = (
    *((s, s, s) for s in (512, 1000, 1024, 1025, 2047, 2048, 2049, 4095, 4096, 4097, 5000, 8192)),
    (8192, 64, 8192),
    (64, 8192, 8192),
    (256, 256, 65536),
)
_SIDES = (16, 32, 64, 100, 128, 192, 200, 256, 300, 384, 500, 640, 768, 1280, 1500, 1536)
SQUARES = tuple((s, s, s) for s in (*_SIDES, 2500, 3000, 3333, 6144))
#: One row or column, or a few; random shapes have no side of 1 with all others aligned.
THIN = (
    *((1, s, s) for s in (1024, 4096, 8192)),
    *((s, 1, s) for s in (1024, 4096, 8192)),
    *((2, 4096, 4096), (4096, 8, 4096), (32, 4096, 4096), (4096, 32, 4096)),
    *((128, 4096, 4096), (4096, 4096, 128)),
)
#: Seed of the random shapes: not one of comparisons, so that the model is judged by shapes it never
#: saw.
SEED = 20101
RANDOM = 240
#: Sides of the squares at which the range check of operands for TF32 is timed.
RANGE_SIDES = (64, 1024, 4096, 8192)
#: Side of the square whose whole call is timed with that check.
RANGE_CALL_SIDE = 65
#: Timed runs of a candidate at a shape.
RUNS = 3

#: Parameters that do not change a text's constants: how work is shared, and whether the last steps
#: of k have a separate loop, which is used only where it is faster than the model assumes.
SHARING = ("GROUPS", "ORDER", "TAIL")
#: Tiles of warp tiling: TSM, TSN, TSK, WPTM, WPTN, WARPM, STAGES, BATCHES; and the work-groups per
#: compute unit that may share all tiles.
WARP_TILES: tuple[tuple[tuple[int, ...], tuple[float, ...]], ...] = (
    ((256, 128, 8, 16, 8, 4, 3, 7), (1,)),
    ((128, 256, 8, 8, 16, 8, 3, 7), (1,)),
    ((128, 128, 8, 8, 8, 4, 3, 7), (1, 2)),
    ((128, 64, 16, 8, 8, 4, 3, 10), (1, 2, 3)),
    ((64, 128, 16, 8, 8, 4, 3, 10), (1, 2, 3)),
    ((128, 32, 16, 8, 4, 8, 3, 6), (1, 2, 4)),
    ((32, 128, 16, 4, 8, 8, 3, 6), (1, 2, 4)),
    ((64, 64, 16, 8, 4, 8, 3, 10), (1 / 2, 1, 2, 4)),
    ((64, 64, 8, 8, 4, 8, 3, 7), ()),
    ((64, 32, 32, 4, 4, 8, 3, 6), (1 / 4, 1 / 2, 1, 2, 4)),
    ((32, 64, 32, 4, 4, 8, 3, 6), (1 / 4, 1 / 2, 1, 2, 4)),
    ((32, 32, 32, 4, 4, 8, 3, 6), (1 / 4, 1 / 2, 1, 2, 4)),
    ((128, 16, 32, 4, 4, 8, 2, 6), (1 / 2, 1, 2)),
    ((64, 16, 32, 4, 4, 8, 3, 6), (1 / 4, 1 / 2, 1, 2)),
    ((32, 16, 32, 4, 4, 8, 3, 6), (1 / 4, 1 / 2, 1, 2, 4)),
    ((16, 128, 32, 4, 4, 4, 2, 6), (1 / 2, 1, 2)),
    ((16, 64, 32, 4, 4, 4, 3, 6), (1 / 4, 1 / 2, 1, 2)),
    ((16, 32, 32, 4, 4, 4, 3, 6), (1 / 4, 1 / 2, 1, 2, 4)),
)
WARP_NAMES = ("TSM", "TSN", "TSK", "WPTM", "WPTN", "WARPM", "STAGES", "BATCHES")
#: Work-groups per compute unit for narrow products.
NARROW_GROUPS = (1 / 4, 1 / 2, 1, 2, 4, 8)
#: Steps of k in a tile of narrow products: by ROWS, for up to 4 lines and for more.
NARROW_DEPTHS = {0: ((64, 256, 1024), (64, 256)), 1: ((128, 512, 1024), (128, 256))}
#: Tiles for tensor cores.
TENSOR_TILES: dict[str, tuple[dict[str, int], ...]] = {
    "tensor_cores": (
        {"TSM": 128, "TSN": 128, "TSK": 8, "WM": 64, "WN": 64},
        {"TSM": 128, "TSN": 64, "TSK": 16, "WM": 64, "WN": 32},
        {"TSM": 64, "TSN": 64, "TSK": 16, "WM": 32, "WN": 32},
        {"TSM": 64, "TSN": 32, "TSK": 32, "WM": 32, "WN": 32},
        {"TSM": 32, "TSN": 32, "TSK": 32, "WM": 32, "WN": 32},
    ),
    "warpgroups": ({"TSK": 16, "STAGES": 3},),
}


def text_of(setting: Setting) -> Setting:
    """What has constants: the kernel and its parameters except those of sharing."""
    kernel, params = setting
    return kernel, tuple((name, value) for name, value in params if name not in SHARING)


def texts(precision: str) -> dict[Setting, tuple[float, ...]]:
    """The texts to time, and the work-groups per compute unit among which each may be shared."""
    found: list[tuple[str, dict[str, int], tuple[float, ...]]] = []
    if precision != "float32":
        for kernel, tiles in TENSOR_TILES.items():
            implied = candidates.implied(precision, kernel)
            found += [(kernel, tile | implied, ()) for tile in tiles]
    else:
        for (values, groups), width in product(WARP_TILES, (4, 1)):
            tile = dict(zip(WARP_NAMES, values, strict=True))
            found.append(("warp_tiling", tile | {"WIDTH": width, "TRANSPOSED": 0}, groups))
        for rows, lines, width in product((0, 1), candidates.LINES, (4, 1)):
            for wpt, depth in product((1, 4) if rows else (1,), NARROW_DEPTHS[rows][lines > 4]):
                tile = {"LINES": lines, "ROWS": rows, "TSK": depth, "WPT": wpt, "WIDTH": width}
                found.append(("narrow", tile, NARROW_GROUPS))
    return {
        text_of((kernel, tuple(find(kernel).complete(tile).items()))): groups
        for kernel, tile, groups in found
    }


def settings_at(device: Device, sizes: Sizes, precision: str = "float32") -> list[Setting]:
    """The kernels to time at M, N, K of a column-major product."""
    return [
        one
        for text, groups in texts(precision).items()
        if not find(text[0]).problems(find(text[0]).complete(dict(text[1])), device.limits)
        for one in candidates.settings(text, groups, sizes, device.units)
    ]


def shapes() -> list[Sizes]:
    """M, N, K of the row-major products to record, shuffled: any part has all kinds."""
    drawn = random_shapes(RANDOM, SEED, MOST_FLOPS["GPU"])
    found = list(dict.fromkeys([*PROMISED, *SQUARES, *THIN, *drawn]))
    np.random.default_rng(SEED).shuffle(found)
    return [(int(m), int(n), int(k)) for m, n, k in found]


def record(device: Device, path: Path, seconds: float = inf) -> None:
    """Time the candidates at the shapes that the file lacks; begin no more shapes after so many
    seconds. Raises ValueError for a device without candidates, such as a CPU, and a file of another
    device.
    """
    end = time.monotonic() + seconds
    note = "runs: number in kernels, least and median microseconds of all launches"
    empty = {**common.head(device), "note": note, "kernels": [], "shapes": []}
    data = common.continued(path, device) or empty
    recorded = [tuple(shape["sizes"]) for shape in data["shapes"]]
    wanted: dict[Sizes, dict[str, list[Setting]]] = {}
    precisions = candidates.IMPLIED if "tensor" in device.features else ("float32",)
    for m, n, k in shapes():
        sizes = n, m, k  # as the column-major product of the swapped operands
        if sizes not in recorded:
            wanted[sizes] = {one: settings_at(device, sizes, one) for one in precisions}
            if not wanted[sizes]["float32"]:
                raise ValueError(f"{device} has no candidates to time; they are for GPUs")
    if "nvidia" in device.features and "registers" not in data:
        data["registers"] = registers_of_all(device)
    compile_all(device, {one for each in wanted.values() for some in each.values() for one in some})
    if "tensor" in device.features and "range_call_us" not in data:
        data["range_us"] = [range_check(device, side) for side in RANGE_SIDES]
        data["range_call_us"] = call_with_range_check(device)
    for sizes, each in common.begun(wanted.items(), end, "shape"):
        data["shapes"].append(time_shape(device, sizes, each, data["kernels"]))
        records.write(path, data)


def registers_of_all(device: Device) -> list[list]:
    """Each text, by kernel and parameters, with its registers per work-item; compiled on all cores,
    without groups that share tiles.
    """
    some = [
        (name, dict(params))
        for precision in candidates.IMPLIED
        for name, params in texts(precision)
        if not find(name).problems(find(name).complete(dict(params)), device.limits)
    ]
    with ThreadPoolExecutor() as pool:
        counts = pool.map(lambda one: registers(one[0], one[1], device), some)
        return [
            [name, params, count[0]]
            for (name, params), count in zip(some, tqdm(counts, total=len(some)), strict=True)
            if count
        ]


def compile_all(device: Device, wanted: set[Setting]) -> None:
    """Compile on a GPU, on all cores; the driver keeps the results on disk."""
    if device.kind == "GPU":
        with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
            done = pool.map(partial(compile_one, device.index), wanted)
            list(tqdm(done, total=len(wanted), unit="text", disable=None))


def compile_one(index: int, one: Setting) -> None:
    with suppress(RuntimeError, ValueError, cl.Error):  # timing it will say why
        build(find_device(index), one)


@cache
def build(device: Device, one: Setting) -> Kernel:
    return Kernel(find(one[0]), dict(one[1]), device, device.context)


def time_shape(
    device: Device, sizes: Sizes, precisions: dict[str, list[Setting]], kernels: list
) -> dict[str, Any]:
    """What is recorded of a shape; new candidates are added to `kernels`."""
    m, n, k = sizes
    a, b = random(device, m * k), random(device, k * n)
    found: dict[str, Any] = {"sizes": list(sizes)}
    for precision, some in precisions.items():
        runs, failed = [], []
        for one in some:
            if (entry := [one[0], dict(one[1])]) not in kernels:
                kernels.append(entry)
            number = kernels.index(entry)
            try:
                timed = FramedProduct(build(device, one), device, sizes, a, b)
                taken = [1e3 * sum(timed.run().values()) for _ in range(RUNS)]
            except (RuntimeError, ValueError, MemoryError, cl.Error) as error:
                failed.append([number, str(error).splitlines()[0][:120]])
                continue
            runs.append([number, common.short(min(taken)), common.short(median(taken))])
        found[precision] = {"runs": runs, "failed": failed}
    return found


def range_check(device: Device, side: int) -> list[float]:
    """Elements of two square matrices, and microseconds of the device to check their range."""
    matrices = [Matrix.compact(side, side, random(device, side**2)) for _ in range(2)]
    session = session_of(device.timed_queue, device)
    builder = PlanBuilder(session.queue, device)
    builder.look_for_unsplittable(*matrices)
    plan = builder.finish()

    def seconds() -> float:
        return clock.device_seconds(*(event for _, event in session.run(plan)))

    seconds()  # compiles
    return [2 * side**2, common.short(1e6 * min(seconds() for _ in range(20)))]


def call_with_range_check(device: Device) -> float:
    """Microseconds of a call in TF32 so small that the host decides, nothing aligned."""
    shape = RANGE_CALL_SIDE, RANGE_CALL_SIDE
    x = cla.to_device(device.queue, np.random.default_rng(0).standard_normal(shape, np.float32))
    call = partial(matmul, x, x, kernel="tensor_cores", precision="tf32")
    return common.short(1e6 * clock.call_seconds(call, device.queue.finish))


def random(device: Device, elements: int) -> cl.Buffer:
    """Standard normal numbers on the device."""
    numbers = np.random.default_rng(0).standard_normal(elements, np.float32)
    flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
    return cl.Buffer(device.context, flags, hostbuf=numbers)


def main(arguments: list[str] | None = None) -> None:
    parser = common.parser(__doc__)
    parser.add_argument("file", type=output_file, help="the file to write")
    common.add_seconds(parser)
    device_option(parser)
    given = parser.parse_args(arguments)
    record(find_device(given.device), given.file, given.seconds)


if __name__ == "__main__":
    common.run(main)

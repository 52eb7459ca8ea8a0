"""How fast are several GPUs of one host together?

    python tools/devices.py OUT [--devices 0,1] [--size 65536] [--folder /dev/shm]

Writes OUT after each part, and continues with the parts that OUT lacks. The matrices consist of
4 x 4 blocks: one random pattern times small whole numbers, so float32 makes no rounding error and
every block of the result is known: C_ij = (sum over l of s_il t_lj) P Q. Each result is checked by
the product of C_ij and a random vector.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import common
import dask.array as da
import numpy as np
import pyopencl.array as cla
from dask.distributed import Client, wait

import gemmlab
from gemmlab import distributed, files
from gemmlab.cli import count, record_file
from gemmlab.distributed import blocks
from gemmlab.measurement import clock, records

FACTORS = np.array([-3, -1, 1, 3], np.float32)


def pattern(name: str, block: int) -> np.ndarray:
    """P of a, or Q of b: entries of -1 and 1, so that 9 K bounds every sum."""
    rng = np.random.default_rng(ord(name))
    bits = np.unpackbits(np.frombuffer(rng.bytes(block * block // 8), np.uint8))
    return bits.reshape(block, block).astype(np.float32) * 2 - 1


def factors(name: str, number: int) -> np.ndarray:
    """What each block of a or b multiplies its pattern by."""
    return FACTORS[np.random.default_rng(ord(name) + 1).integers(0, 4, (number, number))]


# Run by the workers


@lru_cache
def pattern_on_device(name: str, block: int) -> cla.Array:
    return cla.to_device(gemmlab.default_device().queue, pattern(name, block))


def in_place(name: str, block: int, number: int, first: int, block_id=(0, 0)) -> blocks.DeviceBlock:
    """A block that is made on the device and stays there; rows are counted from `first`."""
    factor = factors(name, number)[block_id[0] + first, block_id[1]]
    return blocks.DeviceBlock(pattern_on_device(name, block) * factor)


@lru_cache
def expected(block: int) -> tuple[np.ndarray, np.ndarray]:
    """x and P Q x, in float64."""
    x = np.random.default_rng(7).integers(-9, 10, block).astype(np.float64)
    p, q = (pattern(name, block).astype(np.float64) for name in "ab")
    return x, p @ (q @ x)


def right(c, block: int, number: int, block_id=(0, 0)) -> np.ndarray:
    """Whether a block of the result is right, as an array of one element."""
    x, wanted = expected(block)
    by = (factors("a", number) @ factors("b", number))[block_id]
    return np.array([[np.array_equal(np.asarray(c).astype(np.float64) @ x, by * wanted)]])


def finish() -> None:
    gemmlab.default_device().queue.finish()


def one_call(block: int) -> dict:
    """`gemmlab.matmul` of device arrays, as its user calls it."""
    call = partial(gemmlab.matmul, *(pattern_on_device(name, block) for name in "ab"))
    return rate(block, clock.call_seconds(call, finish), 1)


class Target:
    """A matrix in a file, into which workers write their blocks."""

    def __init__(self, file: Path, size: int):
        self.file, self.shape, self.dtype, self.ndim = file, (size, size), np.dtype("f"), 2
        np.lib.format.open_memmap(file, "w+", np.float32, self.shape)

    def __setitem__(self, part, block) -> None:
        mapped = np.load(self.file, mmap_mode="r+")[part]
        rows = [slice(at, at + 256) for at in range(0, len(block), 256)]
        with ThreadPoolExecutor(4) as threads:
            list(threads.map(lambda r: np.copyto(mapped[r], block[r]), rows))


# The parts


def rate(size: int, seconds: float, devices: int) -> dict:
    tflops = 2 * size**3 / seconds * 1e-12
    each = tflops / devices
    return {"size": size, "seconds": seconds, "tflops": tflops, "tflops_per_device": each}


def blocks_in_place(client: Client, size: int, block: int, copies: bool) -> dict:
    """Rows of blocks of the result on the device that has these rows of a; b on every device, or
    (not `copies`) spread over them.
    """
    addresses = list(distributed.survey(client))
    number, devices = size // block, len(addresses)
    each = number // devices
    sides = (block,) * number

    def made(name: str, first: int, count: int, worker: str) -> da.Array:
        known = {"dtype": np.float32, "meta": np.empty((0, 0), np.float32)}
        key = f"{name}-{first}-{count}-{worker}-{size}"
        chunks = sides[:count], sides
        lazy = da.map_blocks(in_place, name, block, number, first, chunks=chunks, name=key, **known)
        return client.persist(lazy, workers=[worker])

    tops = [made("a", i * each, each, worker) for i, worker in enumerate(addresses)]
    if copies:
        bs = [made("b", 0, number, worker) for worker in addresses]
    else:
        rows = [made("b", i * each, each, worker) for i, worker in enumerate(addresses)]
        bs = [da.concatenate(rows)] * devices
    wait([*tops, *bs])
    start = time.perf_counter()
    products = [
        client.persist(distributed.matmul(a, b), workers=[worker])
        for a, b, worker in zip(tops, bs, addresses, strict=True)
    ]
    wait(products)
    client.run(finish)
    measured = rate(size, time.perf_counter() - start, devices)
    c, chunks = da.concatenate(products), ((1,) * number,) * 2
    each = da.map_blocks(right, c, block, number, chunks=chunks, dtype=bool)
    return measured | {"right": bool(each.compute().all())}


def write_file(file: Path, size: int, block: int) -> None:
    """a or b, by the file's name."""
    if file.exists():
        return
    number = size // block
    whole = np.lib.format.open_memmap(file, "w+", np.float32, (size, size))
    tile, by = pattern(file.stem, block), factors(file.stem, number)
    for i, j in np.ndindex(number, number):
        rows, columns = (slice(at * block, (at + 1) * block) for at in (i, j))
        np.multiply(tile, by[i, j], out=whole[rows, columns])


def from_files(client: Client, folder: Path, size: int, block: int, chunks) -> dict:
    """All three matrices as mapped files."""
    for name in "ab":
        write_file(folder / f"{name}.npy", size, block)
    a, b = (np.load(folder / f"{name}.npy", mmap_mode="r") for name in "ab")
    target: Any = Target(folder / "c.npy", size)
    start = time.perf_counter()
    da.store(distributed.matmul(a, b, chunks=chunks), target, lock=False)
    measured = rate(size, time.perf_counter() - start, len(distributed.survey(client)))
    number = size // block
    c = np.load(folder / "c.npy", mmap_mode="r").reshape(number, block, number, block)
    each = (right(c[i, :, j], block, number, (i, j)) for i, j in np.ndindex(number, number))
    return measured | {"chunks": chunks, "right": bool(np.all([*each]))}


def main(arguments: list[str] | None = None) -> None:
    parser = common.parser(__doc__)
    parser.add_argument("out", type=record_file)
    parser.add_argument("--size", type=count, default=65536)
    parser.add_argument("--devices", type=lambda s: [int(i) for i in s.split(",")], default=[0, 1])
    parser.add_argument("--folder", default="/dev/shm", help="for files of 12 size^2 bytes")
    given = parser.parse_args(arguments)
    size, block, device = given.size, given.size // 4, gemmlab.devices()[given.devices[0]]
    everything = common.head(device, f"{len(given.devices)} x {device.name}")
    everything["device"] |= {"devices": len(given.devices)}
    parts = everything["parts"] = files.load_json(given.out, dict).get("parts", {})
    rows, depth = size // 2, block // 2
    with (
        tempfile.TemporaryDirectory(dir=given.folder) as folder,
        distributed.cluster(given.devices, dashboard=False) as client,
    ):
        runs: dict[str, Callable[[], dict]] = {
            "one call": lambda: client.submit(one_call, block).result(),
            f"from files, blocks of {rows} x {rows}, steps of {depth}": lambda: from_files(
                client, Path(folder), size, block, (rows, rows, depth)
            ),
            "in place": lambda: blocks_in_place(client, size, block, True),
            "b spread": lambda: blocks_in_place(client, size // 2, block // 2, False),
        }
        for name in [name for name in runs if name not in parts]:
            runs[name]()  # compiles, and pins memory
            parts[name] = runs[name]()
            records.write(given.out, everything)
            print(name, parts[name], flush=True)


if __name__ == "__main__":
    import devices  # by its name, so that workers import it as well

    common.run(devices.main)

"""How fast are several GPUs of one host together?

    python tools/devices.py OUT [--devices 0,1] [--size 65536] [--block 16384] [--seconds 240]

Writes OUT after each part, keeps the parts that OUT already has, and begins none after that many
seconds. The matrices are blocks of one random pattern times small whole numbers, so float32 makes
no rounding error and every block of the result is known: C_ij = (sum over l of s_il t_lj) P Q. Each
result is checked by the product of C_ij and a random vector.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
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
from gemmlab import distributed
from gemmlab.blas.staging import Staging
from gemmlab.distributed import blocks, stored
from gemmlab.measurement import records

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


def in_place(name: str, block: int, number: int, block_id=(0, 0)) -> blocks.DeviceBlock:
    """A block that is made on the device and stays there."""
    values = pattern_on_device(name, block) * factors(name, number)[block_id]
    return blocks.DeviceBlock(values, stays=True)


@lru_cache
def expected(block: int) -> tuple[np.ndarray, np.ndarray]:
    """x and P Q x."""
    x = np.random.default_rng(7).integers(-9, 10, block).astype(np.float64)
    return x, times(pattern("a", block), times(pattern("b", block), x))


def times(matrix: np.ndarray, x: np.ndarray) -> np.ndarray:
    """matrix x in float64, without a copy of the matrix."""
    starts = range(0, len(matrix), 256)
    with ThreadPoolExecutor(8) as threads:
        parts = threads.map(lambda i: matrix[i : i + 256].astype(np.float64) @ x, starts)
        return np.concatenate(list(parts))


def right(c, block: int, number: int, block_id=(0, 0)) -> np.ndarray:
    """Whether a block of the result is right, as an array of one element."""
    x, wanted = expected(block)
    by = (factors("a", number) @ factors("b", number))[block_id]
    return np.array([[np.array_equal(times(np.asarray(c), x), by * wanted)]])


def finish() -> None:
    gemmlab.default_device().queue.finish()


SPENT: dict[str, float] = {}


def watch() -> None:
    """From now on add up where this worker's seconds go. Stages of different blocks overlap."""

    def timed(owner: Any, function: str, stage: str) -> None:
        original = getattr(owner, function)
        SPENT[stage] = 0.0

        def call(*args, **options):
            start = time.perf_counter()
            try:
                return original(*args, **options)
            finally:
                SPENT[stage] += time.perf_counter() - start

        setattr(owner, function, call)

    timed(stored, "_on_device", "reading, uploading and multiplying")
    timed(stored.Pair, "arrived", "of these, waiting for operands")
    timed(stored.Rooms, "free", "of these, operands waiting for the device")
    timed(Staging, "receive", "copying back")
    timed(blocks, "_uploaded", "uploading blocks of arrays")
    timed(blocks, "_downloaded", "downloading blocks of arrays")
    SPENT["writing"] = 0.0


def spent() -> dict[str, float]:
    found = dict(SPENT)
    SPENT.update(dict.fromkeys(SPENT, 0.0))
    return found


def warm(rows: int, columns: int, depth: int) -> None:
    """Compile what a product of such blocks needs, and pin memory."""
    device = gemmlab.default_device()
    x, y = (cla.zeros(device.queue, s, np.float32) for s in ((rows, depth), (depth, columns)))
    c = gemmlab.matmul(x, y)
    c += gemmlab.matmul(x, y)
    small = np.zeros((2048, 2048), np.float32)
    gemmlab.matmul(small, small)
    finish()


def one_call(block: int) -> dict:
    """`gemmlab.matmul` of device arrays, as its user calls it."""
    x, y = pattern_on_device("a", block), pattern_on_device("b", block)
    found = []
    for _ in range(5):
        finish()
        start = time.perf_counter()
        c = gemmlab.matmul(x, y)
        finish()
        found.append(time.perf_counter() - start)
        del c
    return rate(block, float(np.median(found[1:])), 1)


class Target:
    """A matrix in a file, into which workers write their blocks."""

    def __init__(self, file: Path, size: int):
        self.file, self.shape, self.dtype, self.ndim = file, (size, size), np.dtype("f"), 2
        np.lib.format.open_memmap(file, "w+", np.float32, self.shape)

    def __setitem__(self, part, block) -> None:
        start, mapped = time.perf_counter(), np.load(self.file, mmap_mode="r+")[part]
        rows = [slice(at, at + 256) for at in range(0, len(block), 256)]
        with ThreadPoolExecutor(16) as threads:
            list(threads.map(lambda r: np.copyto(mapped[r], block[r]), rows))
        SPENT["writing"] += time.perf_counter() - start


# The parts


class Record:
    """The file, and how much time is left."""

    def __init__(self, given: argparse.Namespace):
        self.given, self.start = given, time.monotonic()
        device = gemmlab.devices()[given.devices[0]]
        self.found = common.head(device, f"{len(given.devices)} x {device.name}")
        self.found["device"] |= {"devices": len(given.devices)}
        before = json.loads(given.out.read_text()) if given.out.exists() else {}
        self.found["parts"] = before.get("parts", {})

    def part(self, name: str, run: Callable[[], dict]) -> None:
        late = time.monotonic() - self.start > self.given.seconds
        if late or not any(word in name for word in self.given.only.split(",")):
            return
        try:
            self.found["parts"][name] = run()
        except Exception as error:
            self.found["parts"][name] = {"failed": f"{type(error).__name__}: {error}"[:2000]}
        records.write(self.given.out, self.found)
        seconds = time.monotonic() - self.start
        print(f"{seconds:5.0f} s, {name}: {self.found['parts'][name]}", flush=True)


def rate(size: int, seconds: float, devices: int) -> dict:
    tflops = 2 * size**3 / seconds * 1e-12
    each = tflops / devices
    return {"size": size, "seconds": seconds, "tflops": tflops, "tflops_per_device": each}


def blocks_in_place(client: Client, given, addresses: list[str], copies: bool) -> dict:
    """Rows of blocks of the result on the device that has these rows of a; b on every device, or
    (not `copies`) spread over them.
    """
    number, devices = given.size // given.block, len(addresses)
    each = number // devices
    sides = (given.block,) * number

    def made(name: str, first: int, count: int, title: str, worker: str) -> da.Array:
        blocks_ = da.map_blocks(
            lambda name, block_id: in_place(
                name, given.block, number, (block_id[0] + first, block_id[1])
            ),
            name,
            chunks=(sides[:count], sides),
            dtype=np.float32,
            meta=np.empty((0, 0), np.float32),
            name=title,
        )
        return client.persist(blocks_, workers=[worker])

    numbered = list(enumerate(addresses))
    tops = [made("a", i * each, each, f"a-{i}-{copies}-{devices}", w) for i, w in numbered]
    if copies:
        bs = [made("b", 0, number, f"b-{i}-{devices}", w) for i, w in numbered]
    else:
        parts = [made("b", i * each, each, f"part-{i}-{devices}", w) for i, w in numbered]
        bs = [da.concatenate(parts)] * devices
    wait([*tops, *bs])
    client.run(warm, *(given.block,) * 3)
    client.run(spent)
    start = time.perf_counter()
    products = [
        client.persist(distributed.matmul(a, b), workers=[w])
        for a, b, w in zip(tops, bs, addresses, strict=True)
    ]
    wait(products)
    client.run(finish)
    found = rate(given.size, time.perf_counter() - start, devices)
    found["spent"] = list(client.run(spent).values())
    checked = da.map_blocks(
        right,
        da.concatenate(products),
        given.block,
        number,
        chunks=((1,) * number,) * 2,
        dtype=bool,
    )
    return found | {"right": bool(checked.compute().all())}


def memory_folder(size_bytes: int) -> Path:
    """The host's memory, or a disk if that has too little room."""
    places = [Path(p) for p in ("/dev/shm", tempfile.gettempdir()) if os.path.isdir(p)]
    return next((p for p in places if shutil.disk_usage(p).free > 1.1 * size_bytes), places[-1])


def write_file(folder: Path, name: str, given) -> np.memmap:
    """a or b as a file, written by several threads."""
    number, block = given.size // given.block, given.block
    file = folder / f"{name}.npy"
    whole = np.lib.format.open_memmap(file, "w+", np.float32, (given.size, given.size))
    tile, by = pattern(name, block), factors(name, number)

    def fill(task: tuple[int, int]) -> None:
        i, at = task
        rows = slice(i * block + at, i * block + min(block, at + 512))
        for j in range(number):
            columns = slice(j * block, (j + 1) * block)
            np.multiply(tile[at : at + 512], by[i, j], out=whole[rows, columns])

    with ThreadPoolExecutor(os.cpu_count()) as threads:
        list(threads.map(fill, [(i, at) for i in range(number) for at in range(0, block, 512)]))
    return np.load(file, mmap_mode="r")


def from_files(client: Client, given, folder: Path, chunks: tuple[int, int, int]) -> dict:
    """All three matrices as mapped files."""
    a, b = (np.load(folder / f"{name}.npy", mmap_mode="r") for name in "ab")
    target: Any = Target(folder / "c.npy", given.size)
    client.run(warm, *chunks)
    client.run(spent)
    start = time.perf_counter()
    da.store(distributed.matmul(a, b, chunks=chunks), target, lock=False)
    found = rate(given.size, time.perf_counter() - start, len(given.devices))
    found |= {"chunks": chunks, "spent": list(client.run(spent).values())}
    c, number = np.load(folder / "c.npy", mmap_mode="r"), given.size // given.block
    found["right"] = all(
        bool(right(c[rows, columns], given.block, number, (i, j)).all())
        for i, rows in enumerate(parts(given.size, given.block))
        for j, columns in enumerate(parts(given.size, given.block))
    )
    (folder / "c.npy").unlink()
    return found


def parts(size: int, block: int) -> list[slice]:
    return [slice(at, at + block) for at in range(0, size, block)]


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("out", type=Path)
    parser.add_argument("--size", type=int, default=65536)
    parser.add_argument("--block", type=int, default=16384, help="side of the known blocks")
    parser.add_argument("--seconds", type=float, default=240)
    parser.add_argument("--devices", type=lambda s: [int(i) for i in s.split(",")], default=[0, 1])
    parser.add_argument("--only", default="", help="words in the names of the parts to run")
    return parser.parse_args()


def main() -> None:
    given = parsed()
    record, size, block = Record(given), given.size, given.block
    one = argparse.Namespace(**vars(given) | {"devices": given.devices[:1]})
    half = argparse.Namespace(**vars(given) | {"size": size // 2, "block": block // 2})
    folder = Path(tempfile.mkdtemp(dir=memory_folder(12 * size**2)))
    try:
        for name in "ab":
            write_file(folder, name, given)
        with distributed.cluster(given.devices, dashboard=False) as client:
            addresses = list(distributed.survey(client))
            client.run(watch)
            record.part("one call", lambda: client.submit(one_call, block).result())
            for rows, columns, depth in (
                (size // 2, size // 2, block // 2),
                (size // 2, size // 4, block),
            ):
                chunks = rows, columns, depth
                record.part(
                    f"from files, blocks of {rows} x {columns}, steps of {depth}",
                    partial(from_files, client, given, folder, chunks),
                )
            record.part("in place", lambda: blocks_in_place(client, given, addresses, True))
            record.part("b spread", lambda: blocks_in_place(client, half, addresses, False))
        with distributed.cluster(one.devices, dashboard=False) as client:
            client.run(watch)
            addresses = list(distributed.survey(client))
            record.part(
                "one device, in place", lambda: blocks_in_place(client, one, addresses, True)
            )
            half.devices = one.devices
            for name in "ab":
                write_file(folder, name, half)
            for share in (2, 4):
                chunks = (half.size, half.size // share, half.block)
                record.part(
                    f"one device, from files, blocks of {chunks[0]} x {chunks[1]}",
                    partial(from_files, client, half, folder, chunks),
                )
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parent))
    import devices  # by its name, so that workers import it as well

    common.run(devices.main)

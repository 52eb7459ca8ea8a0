"""How fast are two cards together? Matrices of 65,536 x 65,536 on one card, on both, and on the host's processors.

    python docs/experiments/two_cards.py OUT [--size 65536] [--block 16384] [--seconds 180] [--devices 0,1]

It writes OUT/nvidia_h200_x2.json after each part, keeps the parts that are there, and begins none after so many
seconds. The matrices are blocks of one random pattern times small whole numbers, so that float32 makes no rounding
error and every block of the result is known: C_ij = (sum over l of s_il t_lj) P Q. Each result is checked by C_ij x for
a random vector x.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from pathlib import Path

import dask
import dask.array as da
import numpy as np
import pyopencl.array as cla
from dask.distributed import Client, wait

import gemmlab
from gemmlab import distributed
from gemmlab.bench import records
from gemmlab.distributed import blocks, stored

FACTORS = np.array([-3, -1, 1, 3], np.float32)


def pattern(name: str, block: int) -> np.ndarray:
    """P of a, or Q of b: entries of -1 and 1, so that 9 K is a bound for sums."""
    rng = np.random.default_rng(ord(name))
    bits = np.unpackbits(np.frombuffer(rng.bytes(block * block // 8), np.uint8)).reshape(block, block)
    return bits.astype(np.float32) * 2 - 1


def factors(name: str, number: int) -> np.ndarray:
    """By what each block of a (or b) multiplies its pattern."""
    return FACTORS[np.random.default_rng(ord(name) + 1).integers(0, 4, (number, number))]


def factors_of_result(number: int) -> np.ndarray:
    return factors("a", number) @ factors("b", number)


# In a worker.


@lru_cache
def pattern_on_device(name: str, block: int) -> cla.Array:
    return cla.to_device(gemmlab.default_device().queue, pattern(name, block))


def near(name: str, block: int, number: int, block_id=(0, 0)) -> blocks.DeviceBlock:
    """A block that is made on the device, and stays there."""
    return blocks.DeviceBlock(pattern_on_device(name, block) * factors(name, number)[block_id], stays=True)


@lru_cache
def expected(block: int) -> tuple[np.ndarray, np.ndarray]:
    """x and P Q x."""
    x = np.random.default_rng(7).integers(-9, 10, block).astype(np.float64)
    return x, times(pattern("a", block), times(pattern("b", block), x))


def times(matrix: np.ndarray, x: np.ndarray) -> np.ndarray:
    """matrix x in float64, on a few threads and without a copy of the matrix."""
    with ThreadPoolExecutor(8) as threads:
        parts = threads.map(lambda i: matrix[i : i + 256].astype(np.float64) @ x, range(0, len(matrix), 256))
        return np.concatenate(list(parts))


def right(c, block: int, number: int, block_id=(0, 0)) -> np.ndarray:
    """Whether a block of the result is right, as an array of one element."""
    x, wanted = expected(block)
    return np.array([[np.array_equal(times(np.asarray(c), x), factors_of_result(number)[block_id] * wanted)]])


def finish() -> None:
    gemmlab.default_device().queue.finish()


def watch_times() -> None:
    """From now on add up the seconds that this worker spends copying, reading, writing, and waiting for its device."""
    global spent
    spent = {"upload": 0.0, "download": 0.0, "read": 0.0, "wait": 0.0, "write": 0.0}

    def timed(module, function: str, what: str) -> None:
        original = getattr(module, function)

        def call(*args):
            start = time.perf_counter()
            try:
                return original(*args)
            finally:
                spent[what] += time.perf_counter() - start

        setattr(module, function, call)

    timed(blocks, "_uploaded", "upload")
    timed(blocks, "_downloaded", "download")
    timed(blocks, "_wait_for_earlier", "wait")
    timed(stored, "_read", "read")


def times_spent() -> dict[str, float]:
    found = dict(spent)
    spent.update(dict.fromkeys(spent, 0.0))
    return found


# The parts.


class Run:
    """What all parts share, and what they have found."""

    def __init__(self, given: argparse.Namespace):
        self.given, self.start = given, time.monotonic()
        self.file = given.out / "nvidia_h200_x2.json"
        device = gemmlab.devices()[given.devices[0]]
        before = json.loads(self.file.read_text()) if self.file.exists() else {}
        command = f"python docs/experiments/two_cards.py --size {given.size} --block {given.block}"
        commands = [c for c in before.get("command", "").split("; ") if c and c != command]
        self.found = {
            "title": f"{len(given.devices)} x {device.name}",
            **records.origin("; ".join([*commands, command])),
            "device": device.facts() | {"devices": len(given.devices)},
            "parts": before.get("parts", {}),
        }

    def part(self, name: str, does: Callable[[], dict], needs: float = 10) -> None:
        if not any(word in name for word in self.given.only.split(",")):
            return
        if time.monotonic() - self.start + needs > self.given.seconds:
            self.found["parts"].setdefault(name, {"left out": "no time was left"})
            return
        begun = time.monotonic()
        try:
            found = does()
        except Exception as error:
            found = {"failed": f"{type(error).__name__}: {error}"[:2000]}
        self.found["parts"][name] = found | {"part_seconds": time.monotonic() - begun}
        records.write(self.file, self.found)
        print(f"{time.monotonic() - self.start:5.0f} s, {name}: {self.found['parts'][name]}", flush=True)


def rate(size: int, seconds: float, cards: int) -> dict:
    tflops = 2 * size**3 / seconds * 1e-12
    return {"size": size, "seconds": seconds, "tflops": tflops, "tflops_per_card": tflops / cards}


def one_call(block: int) -> dict:
    """`gemmlab.matmul` of device arrays, as its user calls it, for blocks of this size."""
    x, y = pattern_on_device("a", block), pattern_on_device("b", block)
    found = []
    for _ in range(5):
        finish()
        start = time.perf_counter()
        c = gemmlab.matmul(x, y)
        finish()
        found.append(time.perf_counter() - start)
    del c
    return rate(block, float(np.median(found[1:])), 1) | {"all_seconds": found}


def on_one(client: Client, given, addresses: list[str]) -> dict:
    """The rate of one card, and of each while the other multiplies, too."""
    alone = client.submit(one_call, given.block, workers=addresses[0], pure=False).result()
    together = client.gather([client.submit(one_call, given.block, workers=w, pure=False) for w in addresses])
    return alone | {"tflops_while_the_other_works": [t["tflops"] for t in together]}


def warm(rows: int, columns: int, depth: int) -> None:
    """Compile what a product of such blocks takes, and a sum of two."""
    queue = gemmlab.default_device().queue
    x, y = (cla.zeros(queue, shape, np.float32) for shape in ((rows, depth), (depth, columns)))
    c = gemmlab.matmul(x, y)
    _ = c + c
    queue.finish()


def near_cards(client: Client, given, addresses: list[str], copies: bool) -> dict:
    """Blocks of the result near the card whose rows they are; b on every card, or (not `copies`) spread over them."""
    number, cards = given.size // given.block, len(addresses)
    each = number // cards
    rows, whole = (given.block,) * number, (given.block,) * number

    def made(name: str, first: int, count: int, salt: str) -> da.Array:
        return da.map_blocks(
            lambda name, block_id: near(name, given.block, number, (block_id[0] + first, block_id[1])),
            name, chunks=(rows[:count], whole), dtype=np.float32, meta=np.empty((0, 0), np.float32), name=salt,
        )  # fmt: skip

    tops = [client.persist(made("a", i * each, each, f"a-{i}-{copies}"), workers=[w]) for i, w in enumerate(addresses)]
    if copies:
        bs = [client.persist(made("b", 0, number, f"b-{i}"), workers=[w]) for i, w in enumerate(addresses)]
    else:
        parts = [client.persist(made("b", i * each, each, f"part-{i}"), workers=[w]) for i, w in enumerate(addresses)]
        bs = [da.concatenate(parts)] * cards
    wait([*tops, *bs])
    client.run(warm, *(given.block,) * 3)
    client.run(times_spent)
    start = time.perf_counter()
    products = [
        client.persist(distributed.matmul(a, b), workers=[w]) for a, b, w in zip(tops, bs, addresses, strict=True)
    ]
    wait(products)
    client.run(finish)
    found = rate(given.size, time.perf_counter() - start, cards) | {"spent": list(client.run(times_spent).values())}
    checked = da.map_blocks(
        right, da.concatenate(products), given.block, number, chunks=((1,) * number,) * 2, dtype=bool
    )
    return found | {"right": bool(checked.compute().all())}


def near_one(given) -> dict:
    """`near_cards` with a single card."""
    with distributed.cluster(given.devices[:1], dashboard=False) as client:
        client.run(watch_times)
        return near_cards(client, given, list(distributed.survey(client)), True)


def folder_for(size_bytes: int) -> Path:
    """The host's memory, or a disk if that has too little room."""
    places = [Path(p) for p in ("/dev/shm", tempfile.gettempdir()) if os.path.isdir(p)]
    return next((p for p in places if shutil.disk_usage(p).free > 1.1 * size_bytes), places[-1])


def write_file(folder: Path, name: str, given) -> np.memmap:
    """a or b as a file of the host's memory, written by several threads."""
    number, block = given.size // given.block, given.block
    whole = np.lib.format.open_memmap(folder / f"{name}.npy", "w+", np.float32, (given.size, given.size))
    tile, by = pattern(name, block), factors(name, number)

    def fill(task: tuple[int, int]) -> None:
        i, at = task
        rows = slice(i * block + at, i * block + min(block, at + 512))
        for j in range(number):
            np.multiply(tile[at : at + 512], by[i, j], out=whole[rows, j * block : (j + 1) * block])

    with ThreadPoolExecutor(os.cpu_count()) as threads:
        list(threads.map(fill, [(i, at) for i in range(number) for at in range(0, block, 512)]))
    return np.load(folder / f"{name}.npy", mmap_mode="r")


def write_files(folder: Path, given, files: list[np.memmap]) -> dict:
    """Write a and b, and add them to the list."""
    files += [write_file(folder, name, given) for name in "ab"]
    return {"gigabytes": sum(x.nbytes for x in files) * 1e-9}


class Into:
    """A matrix in a file that workers write their blocks into."""

    def __init__(self, file: Path, size: int):
        self.file, self.shape, self.dtype, self.ndim = file, (size, size), np.dtype(np.float32), 2
        np.lib.format.open_memmap(file, "w+", np.float32, self.shape)

    def __setitem__(self, part, block) -> None:
        start, mapped = time.perf_counter(), np.load(self.file, mmap_mode="r+")[part]
        parts = [slice(at, at + 512) for at in range(0, len(block), 512)]
        with ThreadPoolExecutor(8) as threads:
            list(threads.map(lambda rows: np.copyto(mapped[rows], block[rows]), parts))
        spent["write"] += time.perf_counter() - start


def from_files(client: Client, given, folder: Path, a, b, chunks: tuple[int, int, int]) -> dict:
    """All three matrices in the host's memory, as files that are mapped; C is written there, too."""
    number = given.size // given.block
    target = Into(folder / "c.npy", given.size)
    client.run(warm, *chunks)
    client.run(times_spent)
    start = time.perf_counter()
    distributed.matmul(a, b, chunks=chunks).store(target, lock=False)
    found = rate(given.size, time.perf_counter() - start, len(given.devices)) | {"chunks": chunks}
    found |= {"spent": list(client.run(times_spent).values())}
    c = np.load(folder / "c.npy", mmap_mode="r")
    places = [(i, j) for i in range(number) for j in range(number)]

    def block_of(place: tuple[int, int]) -> np.ndarray:
        i, j = (given.block * at for at in place)
        return c[i : i + given.block, j : j + given.block]

    found["right"] = all(bool(right(block_of(place), given.block, number, place).all()) for place in places)
    (folder / "c.npy").unlink()
    return found


def on_processors(given) -> dict:
    """Dask's own matmul with NumPy, on all processors of the host by threads; a smaller size."""
    size = min(16384, given.size)
    chunk = max(64, size // 8)
    with dask.config.set(scheduler="threads", num_workers=os.cpu_count()):
        a, b = (da.random.default_rng(s).random((size, size), np.float32, chunks=chunk).persist() for s in (1, 2))
        start = time.perf_counter()
        da.matmul(a, b).persist()
        return rate(size, time.perf_counter() - start, 1) | {"processors": os.cpu_count()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--size", type=int, default=65536)
    parser.add_argument("--block", type=int, default=16384)
    parser.add_argument("--seconds", type=float, default=180)
    parser.add_argument("--devices", type=lambda s: [int(i) for i in s.split(",")], default=[0, 1])
    parser.add_argument("--only", default="", help="words of the parts' names, such as files,processors")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    run, size, block = Run(given), given.size, given.block
    folder = Path(tempfile.mkdtemp(dir=folder_for(12 * size**2)))
    try:
        with distributed.cluster(given.devices, dashboard=False) as client:
            addresses = list(distributed.survey(client))
            client.run(watch_times)
            run.part("one card, matmul of device arrays", lambda: on_one(client, given, addresses), 15)
            run.part("all cards, blocks near them", lambda: near_cards(client, given, addresses, True), 30)
            small = argparse.Namespace(**vars(given) | {"size": size // 2, "block": block // 2})
            run.part("all cards, b spread over them", lambda: near_cards(client, small, addresses, False), 30)
            files: list[np.memmap] = []
            run.part(f"files in {folder.parent}", lambda: write_files(folder, given, files), 20)
            if files:
                for chunks in ((size // 2, size // 2, block // 4), (block, block, block // 4)):
                    run.part(f"all cards, from files, blocks of {chunks[0]} x {chunks[1]}",
                             lambda chunks=chunks: from_files(client, given, folder, *files, chunks), 20)  # fmt: skip
        run.part("processors, da.matmul with NumPy", lambda: on_processors(given), 12)
        run.part("one card, blocks near it", lambda: near_one(given), 35)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    records.write(run.file, run.found)


if __name__ == "__main__":
    import two_cards  # by its name, so that workers import it, too, and remember patterns

    two_cards.main()

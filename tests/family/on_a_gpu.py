"""The family on a GPU, in a few minutes: is it right, which tiles are fastest, and how fast beside cuBLAS.

    PYTHONPATH=$PWD:tests python tests/family/on_a_gpu.py --out "$OUT" --seconds 230

It writes what it finds into two files of the folder at once, and does not repeat what is there already:
``family_run.json`` (everything) and ``family.json`` (the tiles, in the form of ``results/family.json``).
"""

import argparse
import json
import random
import sys
import time
from functools import partial
from pathlib import Path

from configurations import covering, warped, wrong

from gemmlab.bench import tiles
from gemmlab.bench.records import origin
from gemmlab.family.precision import PRECISIONS
from gemmlab.family.tiles import by_rule
from gemmlab.opencl.devices import find_device

COMMAND = " ".join(
    ["python tests/family/on_a_gpu.py", *(word for word in sys.argv[1:] if word in ("--warps", "--paces"))]
)


class Notes:
    """Results by name, in a file; each is worked out once, and only while there is time."""

    def __init__(self, file: Path, seconds: float):
        self.file, self.end = file, time.monotonic() + seconds
        self.found = json.loads(file.read_text()) if file.exists() else {}

    def note(self, name: str, work, needs: float = 5.0) -> None:
        """Do the work, unless that was done before or fewer than `needs` seconds are left."""
        if name in self.found or time.monotonic() + needs > self.end:
            return
        start = time.monotonic()
        try:
            self.found[name] = work()
        except Exception as error:  # the rest is still worth having
            self.found[name] = f"{type(error).__name__}: {error}"
        self.file.write_text(json.dumps(self.found, indent=1, default=str) + "\n")
        print(f"{name}: {self.found[name]}  ({time.monotonic() - start:.1f} s)", flush=True)


def cublas(letter: str, size: int) -> float:
    """GFLOPS of `torch.matmul`, the median of three rounds, by the clock on the wall as for `tiles.rate`."""
    import torch

    torch.backends.cuda.matmul.allow_tf32 = False
    dtype = getattr(torch, str(PRECISIONS[letter].dtype))
    a, b = (torch.randn(size, size, dtype=dtype, device="cuda") for _ in "ab")

    def run(times: int) -> float:
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(times):
            torch.matmul(a, b)
        torch.cuda.synchronize()
        return (time.perf_counter() - start) / times

    run(2)
    times = max(1, min(50, int(0.03 / run(1))))
    spent = sorted(run(times) for _ in range(3))[1]
    return round((8 if PRECISIONS[letter].components == 2 else 2) * size**3 / spent * 1e-9, 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("."))
    parser.add_argument("--seconds", type=float, default=230)
    parser.add_argument("--sizes", default="2048,4096,1000")
    parser.add_argument("--letters", default="dcz")
    parser.add_argument("--tiles", type=int, default=48, help="of each precision, at the first size")
    parser.add_argument("--warps", action="store_true", help="only kernels of warps, in half a minute")
    parser.add_argument("--paces", action="store_true", help="only the paces of kernels of warps, in a minute")
    given = parser.parse_args()
    device, sizes = find_device(), [int(size) for size in given.sizes.split(",")]
    notes = Notes(given.out / "family_run.json", given.seconds)
    rows = given.out / "family.json"
    notes.note("origin", lambda: origin(COMMAND) | device.facts())
    if given.paces:
        for letter in given.letters:
            notes.note(f"paces of {letter}", partial(paces, rows, device, letter))
        return
    if given.warps:
        only_warps(notes, rows, device, given.letters, sizes)
        return
    notes.note("wrong of the covering sample", lambda: wrong(device, [*covering(), *covering(warped())]))

    for letter in given.letters:
        space = tiles.candidates(device, letter)
        tried = [space[0], *random.Random(0).sample(space[1:], min(len(space), given.tiles) - 1)]
        for size in sizes:
            name = f"{letter} tiles at {size}"
            notes.note(name, partial(search, rows, device, letter, size, tried), needs=15)
            ranked = notes.found.get(name)
            if isinstance(ranked, list) and ranked:  # at the other sizes only the best of the first
                tried = [tile for _, tile in ranked[:8]]
                tried += [tile for tile in [by_rule(device, letter, (1000, 1000, 1000))] if tile not in tried]
            notes.note(f"{letter} cuBLAS at {size}", partial(cublas, letter, size), needs=8)

    big = (max(sizes),) * 3
    for letter in given.letters:
        ranked = notes.found.get(f"{letter} tiles at {big[0]}")
        if isinstance(ranked, list) and ranked:
            tile = ranked[0][1]
            for beta, trans in ((True, (0, 0)), (False, (0, 1)), (False, (1, 0)), (False, (2, 2))):
                work = partial(tiles.rate, device, letter, big, 0.1, trans, beta, kernel="family", params=tile)
                notes.note(f"{letter} at {big[0]}, transposed {trans}, beta {beta}", work)
    for kernel in ("auto", "family"):
        for beta, trans in ((False, (0, 0)), (True, (0, 0)), (False, (0, 1)), (False, (1, 0)), (False, (1, 1))):
            work = partial(tiles.rate, device, "s", big, 0.1, trans, beta, kernel=kernel)
            notes.note(f"s at {big[0]}, kernel {kernel}, transposed {trans}, beta {beta}", work)
    notes.note(f"s cuBLAS at {big[0]}", partial(cublas, "s", big[0]))


def only_warps(notes: Notes, rows: Path, device, letters: str, sizes: list[int]) -> None:
    """Whether a sample of the kernels of warps is right, and the fastest of the tiles for them."""
    notes.note("wrong of a sample", lambda: wrong(device, covering(warped())[::4]))
    for letter in letters:
        for size in sizes:
            work = partial(search, rows, device, letter, size, tiles.warp_tiles(letter))
            notes.note(f"{letter} tiles at {size}", work, needs=2)


def paces(rows: Path, device, letter: str) -> None:
    """The paces of the tiles for warps; they go into the table."""
    tiles.compile_ahead(device, letter, (1024, 1024, 1024), tiles.warp_tiles(letter))
    tiles.add_paces(rows, device, letter, tiles.warp_tiles(letter), COMMAND)


def search(rows: Path, device, letter: str, size: int, tried: list) -> list:
    """The tiles with their GFLOPS, the fastest first; they go into the table, too."""
    cube, rated = (size, size, size), []
    for found in (tried, None):
        found = found or [near for _, tile in rated[:2] for near in tiles.neighbours(tile)]
        tiles.compile_ahead(device, letter, cube, found)
        rated = sorted(rated + tiles.best(device, letter, cube, found), key=lambda entry: -entry[0])
    tiles.add(rows, device, letter, size, rated, COMMAND)
    return rated


if __name__ == "__main__":  # the processes that compile import this file as well
    main()

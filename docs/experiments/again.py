"""Measure some settings of a recorded landscape again, one by one and by the public way: do they still agree?

python docs/experiments/again.py OUT [--title H200] [--kernels 3,6,9] [--each 3] [--size 4096] [--device 0]

The settings are drawn with a fixed seed from those that reached at least half of their kernel's best rate. What is
found is printed, and written to OUT/again.json.
"""

from __future__ import annotations

import argparse
import json
import random
from pathlib import Path

import gemmlab
from gemmlab.bench import landscape
from gemmlab.catalog import find
from gemmlab.opencl.devices import find_device


def drawn(found: landscape.Landscape, kernel: int, count: int) -> list[dict[str, int]]:
    """Settings of a kernel, by seed."""
    best = found.best(kernel)
    if best is None:
        raise SystemExit(f"kernel {kernel} is not in the landscape of {found.title}")
    rows = [key for key, row in found.rows(kernel).items() if not isinstance(row[0], str) and row[0] > best.gflops / 2]
    chosen = random.Random(kernel).sample(sorted(rows), min(count, len(rows)))
    return [dict(zip(find(kernel).defaults, key, strict=True)) for key in chosen]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--title", default="H200", help="part of the title of the landscape (H200)")
    parser.add_argument("--kernels", default="3,6,9")
    parser.add_argument("--each", type=int, default=3, help="settings of each kernel (3)")
    parser.add_argument("--size", type=int, help="M = N = K; by default that of the landscape")
    parser.add_argument("--device", default=None)
    given = parser.parse_args()
    found, device = landscape.find_landscape(given.title), find_device(given.device)
    if found is None:
        raise SystemExit(f"no landscape has {given.title!r} in its title")
    rows = []
    for kernel in map(int, given.kernels.split(",")):
        for params in drawn(found, kernel, given.each):
            now = gemmlab.measure(kernel, given.size or found.size, params=params, device=device, repeats=5)
            then = found.rate(kernel, params)
            assert then
            rows.append({"kernel": kernel, "params": params, "recorded": then.gflops, "again": round(now.gflops, 1),
                         "change": round(now.gflops / then.gflops - 1, 4), "ok": now.ok})  # fmt: skip
            print(*rows[-1].values(), flush=True)
            given.out.mkdir(parents=True, exist_ok=True)
            told = {"landscape": found.title, "device": device.facts(), "settings": rows}
            (given.out / "again.json").write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

"""Is a product still right if a worker is killed in the middle of it? Every time?

    python docs/experiments/killed_workers.py [--runs 20] [--workers 2] [--size 1000] [--block 250] [--seed 0]

In each run one of the workers, taken at random, gets SIGKILL at a random moment. What it held is lost, Dask computes it
again elsewhere, and a new process takes the worker's place. Runs take arrays and matrices in files by turns.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import tempfile
import time

import dask.array as da
import numpy as np
from dask.distributed import Client

from gemmlab import check, default_device, distributed


def all_there(client: Client, workers: int) -> list[int]:
    """The numbers of the workers' processes, once all of them answer."""
    while True:
        found = client.run(os.getpid, on_error="ignore")
        if len(found) == workers:
            return list(found.values())
        time.sleep(0.2)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--size", type=int, default=1000)
    parser.add_argument("--block", type=int, default=250)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    a, b = check.exact_inputs(given.size, given.size, given.size)
    wanted, chance, right = a @ b, random.Random(given.seed), 0
    with tempfile.TemporaryDirectory() as folder, distributed.cluster([default_device()] * given.workers) as client:
        for name, x in (("a", a), ("b", b)):
            np.save(f"{folder}/{name}.npy", x)
        x, y = (np.load(f"{folder}/{name}.npy", mmap_mode="r") for name in "ab")
        chunks = (given.block,) * 3
        products = {
            "arrays": distributed.matmul(*(da.from_array(np.asarray(z), chunks=given.block) for z in (x, y))),
            "files": distributed.matmul(x, y, chunks=chunks),
        }
        start = time.monotonic()
        for c in products.values():  # compile, and see how long it takes
            client.compute(c).result()
        usual = (time.monotonic() - start) / len(products)
        for run in range(given.runs):
            kind = ("arrays", "files")[run % 2]
            victim, moment = chance.randrange(given.workers), chance.uniform(0, 0.9 * usual)
            process = all_there(client, given.workers)[victim]
            start = time.monotonic()
            future = client.compute(products[kind])
            time.sleep(moment)
            done = future.done()
            os.kill(process, signal.SIGKILL)
            ok = bool(np.array_equal(future.result(timeout=120), wanted))
            right += ok
            seconds = time.monotonic() - start
            when = "too late" if done else f"after {moment:.2f} s"
            verdict = "right" if ok else "WRONG"
            print(f"{run + 1}: {kind}, worker {victim} killed {when}; {verdict}, {seconds:.1f} s", flush=True)
            del future
    print(f"{right} of {given.runs} right")


if __name__ == "__main__":
    main()

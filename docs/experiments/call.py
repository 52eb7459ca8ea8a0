"""What a call costs: the host's share, batches, and NumPy operands, beside PyTorch where it is installed.

python docs/experiments/call.py OUT.json [--small] [--only host,...] [--device 0]

Every result is checked before it is timed. The file is written after each experiment, and an experiment that is in it
already is left out, so that the script can be started again. A failure is written into the file and does not stop the
others. `--small` is for processors.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import resource
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyopencl as cl
import pyopencl.array as cla

from gemmlab import catalog, matmul, model
from gemmlab.bench import calls, records
from gemmlab.blas import passes, products, staging
from gemmlab.opencl.devices import find_device

torch = None
with contextlib.suppress(ImportError):
    import torch

    torch.backends.cuda.matmul.allow_tf32 = False

Shape = tuple[int, ...]


def whole(shape: Shape, seed: int) -> np.ndarray:
    """Odd whole numbers from -3 to 3, whose products and sums float32 does not round."""
    choice = np.random.default_rng(seed).integers(0, 4, shape, np.uint8)
    return np.array([-3, -1, 1, 3], np.float32)[choice]


def expected(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The product, by PyTorch where it has a GPU."""
    if torch and torch.cuda.is_available():
        return torch.matmul(torch.from_numpy(a).cuda(), torch.from_numpy(b).cuda()).cpu().numpy()
    return a @ b


def pair(shape: tuple[int, int, int], batch: Shape = ()) -> tuple[np.ndarray, np.ndarray]:
    m, n, k = shape
    return whole((*batch, m, k), 1), whole((*batch, k, n), 2)


def microseconds(call: Callable[[], object], wait: Callable[[], object], turns: int = 2000) -> dict[str, float]:
    """Of the host, per call: the mean of the lowest tenth, and the median. All is waited for after every 20 calls."""
    times = []
    for turn in range(turns):
        start = time.perf_counter_ns()
        call()
        times.append((time.perf_counter_ns() - start) * 1e-3)
        if turn % 20 == 19:
            wait()
    low = sorted(times)[: max(1, turns // 10)]
    return {"lowest tenth": sum(low) / len(low), "median": float(np.median(times))}


def measure_host(device, given) -> dict:
    """Microseconds until `matmul` returns on device arrays; the launches alone; PyTorch."""
    queue = cl.CommandQueue(device.context, device.cl)
    sizes = (64, 100, 256) if given.small else (64, 256, 1000, 1024, 4096, 8192)
    return {str(size): host_share(queue, size) for size in sizes}


def host_share(queue: cl.CommandQueue, size: int) -> dict:
    a, b = pair((size, size, size))
    x, y = cla.to_device(queue, a), cla.to_device(queue, b)
    same = [np.array_equal(matmul(x, y).get(), expected(a, b)) for _ in range(2)]
    turns, out = 2000 if size <= 1024 else 60, matmul(x, y)
    found: dict = {
        "right": same,
        "matmul": microseconds(lambda: matmul(x, y), queue.finish, turns),
        "matmul, out": microseconds(lambda: matmul(x, y, out), queue.finish, turns),
    }

    def look_up():
        return products._known(x, y, None, "auto", None, None, "auto", "float32")

    for repeat in look_up() or ():  # none, if this call cannot be repeated
        allocate, buffers = passes.pool_of(queue).allocate, (x.base_data, y.base_data, out.base_data)
        found["launches"] = len(repeat.launches)
        found["launches alone"] = microseconds(lambda: repeat(queue, buffers, allocate), queue.finish, turns)  # noqa: B023
        kernel, sizes, local_size, _, _ = repeat.launches[-1]
        found["one launch alone"] = microseconds(
            lambda: cl.enqueue_nd_range_kernel(queue, kernel, sizes, local_size),  # noqa: B023
            queue.finish,
            turns,
        )
        found["looking up"] = microseconds(look_up, queue.finish, turns)
    if torch and torch.cuda.is_available():
        p, q = torch.from_numpy(a).cuda(), torch.from_numpy(b).cuda()
        found["PyTorch"] = microseconds(lambda: torch.matmul(p, q), torch.cuda.synchronize, turns)
    return found


BATCHES = [(64, 256), (256, 64), (64, 250), (64, 128), (64, 100), (32, 512), (16, 1024), (4, 2048)]


WARP_TILING = next(number for number, spec in catalog.items() if spec.file.endswith("warp_tiling.cl"))
#: Its tiles that are tried for batches, with a work-group for each tile.
WARP_TILES = {
    "128 x 64": {"TSM": 128, "TSN": 64, "TSK": 16, "WPTM": 8, "WPTN": 8, "WARPM": 4, "BATCHES": 10},
    "64 x 128": {"TSM": 64, "TSN": 128, "TSK": 16, "WPTM": 8, "WPTN": 8, "WARPM": 4, "BATCHES": 10},
    "64 x 64": {"TSM": 64, "TSN": 64, "TSK": 16, "WPTM": 8, "WPTN": 8, "WARPM": 4, "BATCHES": 10},
    "256 x 128": {"TSM": 256, "TSN": 128, "TSK": 8, "WPTM": 16, "WPTN": 8, "WARPM": 4, "BATCHES": 7},
    "64 x 32": {"TSM": 64, "TSN": 32, "TSK": 32, "WPTM": 4, "WPTN": 4, "WARPM": 8, "BATCHES": 6},
    "32 x 32": {"TSM": 32, "TSN": 32, "TSK": 16, "WPTM": 4, "WPTN": 4, "WARPM": 8, "BATCHES": 6},
}


def measure_batches(device, given) -> dict:
    """Batches of squares in one call: as "auto" does it, by the family, and one product after another; torch.bmm."""
    queue = cl.CommandQueue(device.context, device.cl)
    batches = [(6, 32), (3, 64)] if given.small else BATCHES
    found, start = {}, time.monotonic()
    for number, size in batches:
        if time.monotonic() - start < given.seconds:
            found[f"{number} x {size}"] = batch_of(queue, number, size)
    return found


def batch_of(queue: cl.CommandQueue, number: int, size: int) -> dict:
    a, b = pair((size, size, size), (number,))
    x, y = cla.to_device(queue, a), cla.to_device(queue, b)
    ways = {
        "auto": calls.Way(lambda: matmul(x, y), queue.finish),
        "family": calls.Way(lambda: matmul(x, y, kernel="family"), queue.finish),
    }
    for name, given in WARP_TILES.items():
        if max(given["TSM"], given["TSN"]) <= size and queue.device.type & cl.device_type.GPU:
            params = {"STAGES": 3, "TRANSPOSED": 0, "GROUPS": 0, **given}
            ways[name] = calls.Way(lambda params=params: matmul(x, y, kernel=WARP_TILING, params=params), queue.finish)
    wanted = expected(a, b)
    right: dict = {}
    for name in [*ways]:
        try:
            right[name] = bool(np.array_equal(matmul_of(ways[name]), wanted))
        except Exception as error:
            right[name] = f"{type(error).__name__}: {error}"[:300]
            del ways[name]
    if torch and torch.cuda.is_available():
        p, q = torch.from_numpy(a).cuda(), torch.from_numpy(b).cuda()
        ways["PyTorch"] = calls.Way(lambda: torch.bmm(p, q), torch.cuda.synchronize)
    seconds = calls._alternating(ways)
    with one_after_another():
        ways = {"one after another": ways["auto"]}
        right["one after another"] = bool(np.array_equal(matmul(x, y).get(), wanted))
        seconds |= calls._alternating(ways)
    return {"right": right, "gflops": rates(seconds, 2.0 * number * size**3)}


def matmul_of(way: calls.Way) -> np.ndarray:
    result: Any = way.call()
    return result.get()


@contextlib.contextmanager
def one_after_another() -> Iterator[None]:
    """Each product of a batch has a launch of its own."""
    before = products._ALONE, products._at_once
    products._ALONE, products._at_once = 0, lambda *_: False
    forget()
    try:
        yield
    finally:
        products._ALONE, products._at_once = before
        forget()


def forget() -> None:
    """Have calls worked out again."""
    products._remembered.cache_clear()
    products._kept.cache_clear()


def rates(seconds: dict[str, list[float]], flops: float) -> dict[str, list[float]]:
    """GFLOPS of each round."""
    return {name: [flops / each * 1e-9 for each in rounds] for name, rounds in seconds.items()}


def measure_numpy(device, given) -> dict:
    """NumPy in, NumPy out: staged, unstaged, and by PyTorch from pageable memory; other pieces and threads."""
    found: dict = {}
    pays = staging.pays
    for size in (300,) if given.small else given.numpy:
        shape = size, size, size
        a, b = pair(shape)
        wanted = expected(a, b)

        def call(
            staged: bool | None = None, piece=staging.PIECE, threads=staging.THREADS, strips=staging.STRIPS, a=a, b=b
        ):
            """`matmul`; without `staged` as it is."""
            wanted = (piece, threads, strips)
            if wanted != (staging.PIECE, staging.THREADS, staging.STRIPS):
                staging.PIECE, staging.THREADS, staging.STRIPS = wanted
                staging.staging_of.cache_clear()
            staging.pays = pays if staged is None else lambda *_: staged
            try:
                return matmul(a, b, device=device)
            finally:
                staging.pays = pays

        chosen = {"staged": (True,), "not staged": (False,)}
        others = [
            (2**20, 8, 8),
            (2**21, 8, 8),
            (2**22, 4, 8),
            (2**22, 8, 4),
            (2**22, 12, 8),
            (2**21, 12, 16),
            (2**23, 8, 8),
        ]
        tried = {f"pieces of {p}, {t} threads, {s} strips": (True, p, t, s) for p, t, s in others if size >= 4096}
        one: dict = {"right": {}, "gflops": {}}
        default = staging.PIECE, staging.THREADS, staging.STRIPS
        for name, args in (chosen | tried).items():
            one["right"][name] = bool(np.array_equal(call(*args), wanted))
            times = [timed(lambda args=args: call(*args)) for _ in range(3 if size > 4096 else 7)]
            one["gflops"][name] = [model.gflops(*shape, t) for t in times]
        call(True, *default)
        if torch and torch.cuda.is_available():
            p, q = torch.from_numpy(a), torch.from_numpy(b)
            times = [timed(lambda p=p, q=q: torch.matmul(p.cuda(), q.cuda()).cpu().numpy()) for _ in range(4)]
            one["gflops"]["PyTorch"] = [model.gflops(*shape, t) for t in times[1:]]
        found[str(size)] = one
    return found


def timed(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def measure_memory(device, given) -> dict:
    """Bytes in use before and after a thousand calls on device arrays, and on NumPy arrays."""
    queue = cl.CommandQueue(device.context, device.cl)
    size = 100 if given.small else 512
    a, b = pair((size, size + 8, size - 8))
    large = pair((60, 70, 80) if given.small else (1500, 1300, 1100))
    x, y = cla.to_device(queue, a), cla.to_device(queue, b)
    found: dict = {"right": bool(np.array_equal(matmul(x, y).get(), a @ b))}
    wanted = large[0] @ large[1]
    found["right, NumPy"] = bool(np.array_equal(matmul(*large, device=device), wanted))
    found["before"] = in_use(queue)
    for _ in range(1000):
        matmul(x, y)
    found["after 1000 calls"] = in_use(queue)
    for _ in range(100 if given.small else 1000):
        last = matmul(*large, device=device)
    found["after 1000 calls with NumPy arrays"] = in_use(queue)
    return found | {"last one right": bool(np.array_equal(last, wanted))}


def in_use(queue: cl.CommandQueue) -> dict[str, int]:
    """Bytes of the process at its largest, of the pool, and of the GPU, where PyTorch can tell."""
    queue.finish()
    pool = passes.pool_of(queue)
    found = {"largest": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024, "pool": pool.managed_bytes}
    if torch and torch.cuda.is_available():
        free, total = torch.cuda.mem_get_info()
        found["GPU"] = total - free
    return found


EXPERIMENTS = {
    "host": measure_host,
    "numpy": measure_numpy,
    "batches": measure_batches,
    "memory": measure_memory,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--seconds", type=float, default=math.inf, help="no batch is begun after so long")
    parser.add_argument("--device", default=None)
    parser.add_argument("--numpy", type=int, nargs="*", default=[1024, 2048, 4096, 16384], help="sizes for numpy")
    parser.add_argument("--only", default=",".join(EXPERIMENTS))
    given = parser.parse_args()
    device = find_device(given.device)
    head = {"title": device.name, "device": device.facts(), **records.origin("python docs/experiments/call.py OUT")}
    found = json.loads(given.out.read_text()) if given.out.exists() else head
    for name in given.only.split(","):
        if name in found:
            print(f"{name}: left out")
            continue
        begun = time.monotonic()
        try:
            found[name] = EXPERIMENTS[name](device, given)
        except Exception:
            found[name] = {"failed": traceback.format_exc()}
        records.write(given.out, found)
        print(f"{name}: {time.monotonic() - begun:.0f} s", json.dumps(found[name], default=str)[:3000], flush=True)


if __name__ == "__main__":
    main()

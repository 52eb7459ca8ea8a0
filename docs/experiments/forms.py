"""What transposed operands and beta cost: whole calls of `gemm` beside the plain product, in rounds that take turns.

    python docs/experiments/forms.py results/nvidia_h200_forms.json [--types ...] [--sizes ...] [--device 0]

Every form is checked once, entry by entry, in numbers for which no order of summation rounds. With beta = 1 the result
is written over C, as in BLAS.
"""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path

import numpy as np
import pyopencl as cl
import pyopencl.array as cla

from gemmlab import check, gemm
from gemmlab.bench import calls, records
from gemmlab.opencl.devices import Device, find_device

CHECKED = (300, 200, 260)  # m, n, k of the product by which a form is checked
PLAIN = "N, N"


def forms(dtype: str) -> dict[str, dict]:
    """Arguments of `gemm` by the form's name: each pair of operations, and beta."""
    pairs = [("N", "N"), ("N", "T"), ("T", "N"), ("T", "T")]
    if dtype.startswith("complex"):
        pairs += [("N", "C"), ("C", "N"), ("C", "C")]
    found: dict[str, dict] = {", ".join(pair): dict(zip(("trans_a", "trans_b"), pair, strict=True)) for pair in pairs}
    return found | {"beta = 1": {"beta": 1}}


def turned(x: np.ndarray, operation: str) -> np.ndarray:
    """What lies in memory, if the operation makes x of it."""
    return np.ascontiguousarray({"N": x, "T": x.T, "C": x.conj().T}[operation])


def product(device: Device, form: dict, a: np.ndarray, b: np.ndarray) -> calls.Way:
    """A way to compute op(a) op(b), or that plus C, on a queue of its own."""
    queue = cl.CommandQueue(device.context, device.cl)
    stored = (turned(x, form.get(name, "N")) for x, name in ((a, "trans_a"), (b, "trans_b")))
    x, y = (cla.to_device(queue, z) for z in stored)
    c = cla.zeros(queue, (len(a), b.shape[1]), a.dtype) if "beta" in form else None
    return calls.Way(partial(gemm, 1, x, y, c=c, overwrite_c=True, **form), queue.finish)


def is_right(device: Device, form: dict, dtype: str) -> bool:
    """Whether the product is exact, and with beta the sum with one product more."""
    m, n, k = CHECKED
    a, b = check.exact_inputs(m, n, k, dtype=np.dtype(dtype))
    way = product(device, form, a, b)
    found = [way.call().get() for _ in range(1 + ("beta" in form))]
    return all(check.compare(c, times * (a @ b), 0.0).ok for times, c in enumerate(found, 1))


def measured(device: Device, dtype: str, size: int) -> dict:
    """Seconds per call of each round, by the form's name, and the rate of each beside the plain product's."""
    wrong = [name for name, form in forms(dtype).items() if not is_right(device, form, dtype)]
    a, b = check.random_inputs(size, size, size, kind="normal", dtype=np.dtype(dtype))
    seconds = calls._alternating({name: product(device, form, a, b) for name, form in forms(dtype).items()})
    plain = np.array(seconds[PLAIN])
    ratios = {name: float(np.median(plain / spent)) for name, spent in seconds.items() if name != PLAIN}
    print(f"{dtype}, {size}: " + "; ".join(f"{name} {ratio:.3f}" for name, ratio in ratios.items()), wrong, flush=True)
    return {"dtype": dtype, "size": size, "seconds": seconds, "beside_plain": ratios, "wrong": wrong}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--types", default="float32,complex64")
    parser.add_argument("--sizes", default="2048,4096")
    parser.add_argument("--device", default=None)
    given = parser.parse_args()
    device, found = find_device(given.device), []
    command = f"python docs/experiments/forms.py {given.out} --types {given.types} --sizes {given.sizes}"
    for dtype in given.types.split(","):
        for size in map(int, given.sizes.split(",")):
            found.append(measured(device, dtype, size))
            head = {"title": device.name, **records.origin(command), "device": device.facts()}
            records.write(given.out, head | {"forms": found})


if __name__ == "__main__":
    main()

"""Side by side with cuBLAS and CLBlast: whole products one after another, in the same run, on the same device."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable

import numpy as np
import pyopencl as cl
import pyopencl.array as cla

from .. import model
from ..blas import products
from ..blas.passes import Session
from ..blas.problem import Layout, Problem
from ..family import selection
from ..opencl.devices import Device, find_device

ROUNDS = 3  # of which the median counts
CALLS = 20  # one after another in each round
ACCURATE = (512, 4096, 8192)  # sizes at which errors are compared, where these are asked for


def ours(
    m: int,
    n: int,
    k: int,
    device: Device | int | str | None = None,
    kernel="auto",
    params=None,
    precision: str = "float32",
    rounds: int = ROUNDS,
) -> list[float]:
    """GFLOPS of each round of `matmul`'s launches for a column-major M x N x K product of random matrices.

    B lies as K x N, so that a kernel that wants it transposed pays for that.
    """
    device = find_device(device)
    queue, rng = cl.CommandQueue(device.context, device.cl), np.random.default_rng(0)
    a, b = (cla.to_device(queue, rng.standard_normal(s, np.float32)).base_data for s in ((k, m), (n, k)))
    chosen = products.select(kernel, params, "auto", device, device.context, (m, n, k), precision)

    def product() -> None:
        with Session(queue, device) as session:
            out = session.new(Layout.compact(m, n))
            products.multiply(session, chosen, Problem.compact(m, n, k), a, b, out)

    return _rounds(m, n, k, queue, product, rounds)


def _rounds(m: int, n: int, k: int, queue: cl.CommandQueue, product: Callable[[], None], rounds=ROUNDS) -> list[float]:
    """GFLOPS of each round of products, by the clock on the wall: from before the first until all are done.

    On a queue without profiling, for the notes that a device takes for it cost NVIDIA's 6 us a launch.
    """
    rates = []
    for _ in range(rounds + 1):
        queue.finish()
        start = time.perf_counter()
        for _ in range(CALLS):
            product()
        queue.finish()
        rates.append(model.gflops(m, n, k, (time.perf_counter() - start) / CALLS))
    return rates[1:]


def cublas(m: int, n: int, k: int) -> list[float]:
    """GFLOPS of each round of cuBLAS SGEMM by `torch.matmul`, TF32 off, with CUDA events around the round."""
    import torch

    torch.backends.cuda.matmul.allow_tf32 = False
    a, b = torch.randn(n, k, device="cuda"), torch.randn(k, m, device="cuda")
    rates = []
    for _ in range(ROUNDS + 1):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        for _ in range(CALLS):
            torch.matmul(a, b)
        end.record()
        torch.cuda.synchronize()
        rates.append(model.gflops(m, n, k, start.elapsed_time(end) * 1e-3 / CALLS))
    return rates[1:]


_COLUMN_MAJOR, _AS_IT_LIES = 102, 111  # CLBlast's numbers for the layout, and for "not transposed"


def clblast(m: int, n: int, k: int, device: Device | int | str | None, library: str) -> list[float]:
    """GFLOPS of each round of CLBlast's SGEMM, which that shared library holds, as it is tuned; timed likewise.

    Raises:
        OSError: if the library cannot be loaded.
        ValueError: if it is not CLBlast's.
        RuntimeError: if it refuses the product.
    """
    device = find_device(device)
    sgemm = getattr(ctypes.CDLL(library), "CLBlastSgemm", None)
    if sgemm is None:
        raise ValueError(f"library={library!r} is not CLBlast: it holds no CLBlastSgemm")
    size, pointer = ctypes.c_size_t, ctypes.c_void_p
    operand = (pointer, size, size)
    sgemm.argtypes = [*[ctypes.c_int] * 3, size, size, size, ctypes.c_float, *operand, *operand, ctypes.c_float,
                      *operand, pointer, pointer]  # fmt: skip
    queue, rng = cl.CommandQueue(device.context, device.cl), np.random.default_rng(0)
    a, b, c = (cla.to_device(queue, rng.standard_normal(s, np.float32)) for s in ((k, m), (n, k), (n, m)))
    pa, pb, pc = (getattr(x.data, "int_ptr", None) for x in (a, b, c))
    handle = ctypes.c_void_p(queue.int_ptr)

    def product() -> None:
        said = sgemm(_COLUMN_MAJOR, _AS_IT_LIES, _AS_IT_LIES, m, n, k, 1.0, pa, 0, m, pb, 0, k, 0.0, pc, 0, m,
                     ctypes.byref(handle), None)  # fmt: skip
        if said:
            raise RuntimeError(f"CLBlast refuses {m} x {n} x {k} with its status {said}")

    return _rounds(m, n, k, queue, product)


def side_by_side(sizes, device: Device | int | str | None = None, library: str = "", torch: bool = True) -> list[dict]:
    """For each size (a cube's, or M, N, K) the rounds of all, and which kernel "auto" took.

    Where there are tensor cores also those of `matmul` with precision="tf32" and "tf32x3".

    Args:
        library: CLBlast's shared library; "" leaves it out.
        torch: whether to ask PyTorch for cuBLAS.
    """
    device, found = find_device(device), []
    for m, n, k in map(selection.dimensions, sizes):
        number, settings = selection.choose(device, (m, n, k))
        one = {"m": m, "n": n, "k": k, "kernel": number, "params": dict(settings)}
        if torch:
            one["cublas"] = cublas(m, n, k)
        one["auto"] = ours(m, n, k, device)
        if library:
            one["clblast"] = clblast(m, n, k, device, library)
        for precision in _precisions(device)[1:]:
            one[precision] = ours(m, n, k, device, precision=precision)
        words = (f"{name} {spread(rates)}" for name, rates in one.items() if isinstance(rates, list))
        print(f"{m} x {n} x {k}: {', '.join(words)} GFLOPS")
        found.append(one)
    return found


def _precisions(device: Device) -> list[str]:
    return [name for name, fixed in selection.PRECISIONS.items() if not fixed or "tensor" in device.features]


#: Inputs for `errors`: standard normal, uniform in [0, 1), and normal ones with rows and columns scaled by powers of 2.
INPUTS = ("normal", "uniform", "scaled")


def _inputs(kind: str, rows: int, cols: int):
    import torch

    if kind == "uniform":
        return torch.rand(rows, cols, device="cuda")
    x = torch.randn(rows, cols, device="cuda")
    if kind == "scaled":
        powers = (torch.randint(-20, 21, shape, device="cuda") for shape in ((rows, 1), (1, cols)))
        for power in powers:
            x *= torch.exp2(power.float())
    return x


def errors(sizes, device: Device | int | str | None = None) -> list[dict]:
    """For each size and each of `INPUTS` the error of cuBLAS SGEMM and of each precision.

    The Frobenius norm of the difference from the float64 product (by cuBLAS DGEMM) over that product's norm.
    """
    import torch

    torch.backends.cuda.matmul.allow_tf32 = False
    device, found = find_device(device), []
    for m, n, k in map(selection.dimensions, sizes):
        for kind in INPUTS:
            torch.manual_seed(0)
            a, b = _inputs(kind, n, k), _inputs(kind, k, m)
            exact = a.double() @ b.double()

            def error(c, exact=exact) -> float:
                return float((c.double() - exact).norm() / exact.norm())

            one = {"m": m, "n": n, "k": k, "inputs": kind, "cublas": error(a @ b)}
            x, y = (cla.to_device(device.queue, z.cpu().numpy()) for z in (a, b))
            for precision in _precisions(device):
                one[precision] = error(torch.from_numpy(products.matmul(x, y, precision=precision).get()).cuda())
            words = ", ".join(f"{name} {value:.2e}" for name, value in one.items() if isinstance(value, float))
            print(f"errors at {m} x {n} x {k}, {kind}: {words}")
            found.append(one)
    return found


def recorded(sizes, device: Device | int | str | None = None, library: str = "", torch: bool = True) -> dict:
    """What a record says of a comparison: the rounds, and the medians of the libraries as yardsticks for charts.

    With PyTorch also the errors at those of `ACCURATE` that are among the sizes.
    """
    found = side_by_side(sizes, device, library, torch)
    yards = [
        {"name": name, **{side: x[side] for side in "mnk"}, "gflops": sorted(x[key])[ROUNDS // 2]}
        for key, name in (("cublas", "cuBLAS SGEMM"), ("clblast", "CLBlast SGEMM"))
        for x in found
        if key in x
    ]
    return {
        "yardsticks": yards,
        "side_by_side": found,
        "errors": errors([s for s in sizes if s in ACCURATE], device) if torch else [],
    }


def spread(rates: list[float]) -> str:
    low, middle, high = sorted(rates)[0], sorted(rates)[len(rates) // 2], sorted(rates)[-1]
    return f"{middle:,.0f} ({low:,.0f} to {high:,.0f})"

"""Comparisons with cuBLAS and CLBlast: whole products one after another, in the same run, on the same device."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pyopencl as cl
import pyopencl.array as cla

from .. import model
from ..blas import products
from ..blas.passes import Session
from ..blas.problem import Layout, Problem
from ..family import choice, selection
from ..opencl.devices import Device, find_device

ROUNDS = 3  # the median of them counts
CALLS = 20  # products per round, one after another
ACCURATE = (512, 4096, 8192)  # errors are compared at those of these sizes that are measured


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

    B is stored as K x N, so the time of a kernel that needs it transposed includes the transposition.

    Args:
        m, n, k: sizes of the product.
        device: a Device, an index or part of a name; the preferred device by default.
        kernel: its number, or "auto".
        params: the kernel's parameters.
        precision: "float32", "tf32" or "tf32x3".
        rounds: rounds of `CALLS` products each.
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
    """GFLOPS of each round of products by the host's clock, from before the first product until all are done.

    The queue must not be a profiling queue: on NVIDIA's devices profiling costs 6 us per launch.
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
    """GFLOPS of each round of cuBLAS SGEMM through `torch.matmul` without TF32, timed by CUDA events around a round."""
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
    """GFLOPS of each round of CLBlast's SGEMM with the tuning that it comes with, timed like `ours`.

    Args:
        m, n, k: sizes of the column-major product.
        device: a Device, an index or part of a name; the preferred device by default.
        library: path or name of CLBlast's shared library.

    Raises:
        OSError: if the library cannot be loaded.
        ValueError: if it is not CLBlast.
        RuntimeError: if CLBlast refuses the product.
    """
    device = find_device(device)
    sgemm = getattr(ctypes.CDLL(library), "CLBlastSgemm", None)
    if sgemm is None:
        raise ValueError(f"library={library!r} is not CLBlast: it has no function CLBlastSgemm")
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
            raise RuntimeError(f"CLBlast refuses {m} x {n} x {k} with status {said}")

    return _rounds(m, n, k, queue, product)


def side_by_side(sizes, device: Device | int | str | None = None, library: str = "", torch: bool = True) -> list[dict]:
    """Compare `matmul` with other libraries at each size.

    Args:
        sizes: each is one number, for M = N = K, or (M, N, K).
        device: a Device, an index or part of a name; the preferred device by default.
        library: path or name of CLBlast's shared library; "" leaves CLBlast out.
        torch: whether to measure cuBLAS, through PyTorch.

    Returns:
        For each size "m", "n", "k"; the "kernel" and "params" that "auto" selected; and the GFLOPS of each round by
        library: "cublas", "auto" (ours), "clblast" and, on devices with tensor cores, "tf32" and "tf32x3".
    """
    device, found = find_device(device), []
    for m, n, k in map(selection.dimensions, sizes):
        number, settings = choice.choose(device, (m, n, k))
        one: dict[str, Any] = {"m": m, "n": n, "k": k, "kernel": number, "params": dict(settings)}
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


#: Inputs for `errors`: standard normal, uniform in [0, 1), and normal with rows and columns scaled by powers of 2.
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
    """The errors of cuBLAS SGEMM and of `matmul` in each precision, for each size and each of `INPUTS`.

    An error is the Frobenius norm of the difference from the float64 product (by cuBLAS DGEMM) over the norm of
    that product.

    Args:
        sizes: each is one number, for M = N = K, or (M, N, K).
        device: a Device, an index or part of a name; the preferred device by default.

    Returns:
        For each case "m", "n", "k", "inputs", and the errors by "cublas" and the names of the precisions.
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
    """Run a comparison for a record.

    The arguments are those of `side_by_side`.

    Returns:
        "side_by_side"; the medians of the libraries as "yardsticks" for charts; and, with PyTorch, the "errors" at
        those of the sizes that are in `ACCURATE`.
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
    """The median of the rates and, in brackets, the slowest and the fastest."""
    low, middle, high = sorted(rates)[0], sorted(rates)[len(rates) // 2], sorted(rates)[-1]
    return f"{middle:,.0f} ({low:,.0f} to {high:,.0f})"

"""Compare `matmul` with other libraries, in the same run on the same device.

    python tools/compare.py calls --random 60 --seed 1            with PyTorch, or NumPy on a CPU
    python tools/compare.py calls --random 60 --precision tf32    tensor cores, with float32
    python tools/compare.py calls --random 60 --device-time       the device alone, not the host
    python tools/compare.py launches --sizes 1000,4096 --cublas   launches only, with cuBLAS
    python tools/compare.py launches --sizes 1000 --clblast libclblast.so.1
    python tools/compare.py join results/cpu_calls.json "a CPU" "40 shapes, seed 1=random.json" ...

`join` joins records of `calls` into one: each becomes a set with the shapes before its equals sign.
"""

from __future__ import annotations

import argparse
import ctypes
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import calls
import common
import numpy as np
import pyopencl as cl
import pyopencl.array as cla

from gemmlab import matmul, model
from gemmlab.blas import routes
from gemmlab.blas.plan import Builder, Matrix, Plan, Product
from gemmlab.blas.problem import Layout, Problem
from gemmlab.blas.request import Request
from gemmlab.cli import amount, count, output_file, size_list
from gemmlab.generate import choice, table
from gemmlab.measurement import peaks, records, timing
from gemmlab.opencl.devices import Device, find_device

#: Rounds of launches; the median counts. And products of a round.
ROUNDS = 3
PRODUCTS = 20
#: Sizes at which errors are compared, if they are measured.
ACCURATE = (512, 4096, 8192)
#: Inputs for `errors`: standard normal; uniform in [0, 1); normal, rows and columns scaled by
#: powers of 2.
INPUTS = ("normal", "uniform", "scaled")
TYPES = ("float32", "float64", "complex64", "complex128", "float16")


# Launches alone


def gflops(sizes: calls.Shape, contender: calls.Contender) -> list[float]:
    """The rate of each round of products, after one to warm up.

    The queue must not be a profiling one: on NVIDIA's devices profiling costs 6 us per launch.
    """
    seconds = [contender.wall_seconds(PRODUCTS) for _ in range(ROUNDS + 1)][1:]
    return [model.gflops(*sizes, each) for each in seconds]


def normal_buffers(queue: cl.CommandQueue, *shapes: tuple[int, int]) -> list[Any]:
    rng = np.random.default_rng(0)
    return [cla.to_device(queue, rng.standard_normal(s, np.float32)).base_data for s in shapes]


def ours(sizes: calls.Shape, device: Device, precision: str = "float32") -> list[float]:
    """GFLOPS of each round of `matmul`'s launches for a column-major product.

    B is stored as K x N: the time of a kernel that needs it transposed includes the transposition.
    """
    m, n, k = sizes
    queue = cl.CommandQueue(device.context, device.cl)
    a, b = normal_buffers(queue, (k, m), (n, k))
    out = cla.empty(queue, (n, m), np.float32).base_data
    problem, builder = Problem.compact(m, n, k), Builder(queue, device)
    request = Request.of("auto", None, "auto", precision)
    query = routes.Query(request, np.dtype(np.float32), problem, None, device)
    route = routes.choose(query)
    target = Matrix(out, Layout.compact(m, n))
    route.emit(builder, Product(problem, a, b, 1.0, 0.0, None, target))
    plan = builder.plan(otherwise=lambda: Plan(()))  # as a call would wait for the answer
    return gflops(sizes, calls.Contender(lambda: plan(queue), queue.finish))


def cublas(sizes: calls.Shape) -> list[float]:
    """GFLOPS of each round of cuBLAS SGEMM through `torch.matmul` without TF32."""
    import torch

    m, n, k = sizes
    torch.backends.cuda.matmul.allow_tf32 = False
    a, b = torch.randn(n, k, device="cuda"), torch.randn(k, m, device="cuda")
    call = partial(torch.matmul, a, b)
    return gflops(sizes, calls.Contender(call, torch.cuda.synchronize))


def clblast(sizes: calls.Shape, device: Device, library: str) -> list[float]:
    """GFLOPS of each round of CLBlast's SGEMM with the tuning that it comes with.

    Raises:
        OSError: if the library cannot be loaded.
        ValueError: if it is not CLBlast.
        RuntimeError: if CLBlast refuses the product.
    """
    queue = cl.CommandQueue(device.context, device.cl)
    m, n, k = sizes
    buffers = normal_buffers(queue, (k, m), (n, k), (n, m))
    sgemm = clblast_sgemm(library, queue, sizes)
    return gflops(sizes, calls.Contender(lambda: sgemm(*buffers), queue.finish))


def clblast_sgemm(library: str, queue: cl.CommandQueue, sizes: calls.Shape) -> Callable[..., None]:
    """CLBlast's SGEMM of three buffers, column-major."""
    function = getattr(ctypes.CDLL(library), "CLBlastSgemm", None)
    if function is None:
        raise ValueError(f"library={library!r} is not CLBlast: it has no function CLBlastSgemm")
    size, pointer, number = ctypes.c_size_t, ctypes.c_void_p, ctypes.c_float
    matrix = (pointer, size, size)
    function.argtypes = [
        *(ctypes.c_int,) * 3, *(size,) * 3, number, *matrix, *matrix, number, *matrix, pointer,
        pointer,
    ]  # fmt: skip
    column_major, not_transposed = 102, 111
    m, n, k = sizes
    handle = ctypes.c_void_p(queue.int_ptr)

    def call(*buffers: cl.Buffer) -> None:
        a, b, c = (buffer.int_ptr for buffer in buffers)
        layout = column_major, not_transposed, not_transposed
        status = function(
            *layout, m, n, k, 1.0, a, 0, m, b, 0, k, 0.0, c, 0, m, ctypes.byref(handle), None
        )
        if status:
            raise RuntimeError(f"CLBlast refuses {m} x {n} x {k} with status {status}")

    return call


def side_by_side(sizes: list, device: Device, library: str, torch: bool) -> list[dict]:
    """By size: "m", "n", "k", our "kernel" and "params", and GFLOPS of each round by library.

    Args:
        sizes: each is a number, for M = N = K, or (M, N, K) of the column-major product.
        device: where.
        library: the name of CLBlast's shared library; "" leaves it out.
        torch: whether to measure cuBLAS.
    """
    found = []
    for m, n, k in map(table.dimensions, sizes):
        kernel, params = choice.choose(device, (m, n, k))
        one: dict[str, Any] = {"m": m, "n": n, "k": k, "kernel": kernel, "params": dict(params)}
        if torch:
            one["cublas"] = cublas((m, n, k))
        one["auto"] = ours((m, n, k), device)
        if library:
            one["clblast"] = clblast((m, n, k), device, library)
        for precision in tensor_precisions(device):
            one[precision] = ours((m, n, k), device, precision)
        rates = {name: value for name, value in one.items() if isinstance(value, list)}
        words = ", ".join(f"{name} {np.median(value):,.0f}" for name, value in rates.items())
        print(f"{m} x {n} x {k}: {words} GFLOPS", flush=True)
        found.append(one)
    return found


def tensor_precisions(device: Device) -> list[str]:
    return ["tf32", "tf32x3"] if "tensor" in device.features else []


def errors(sizes: list, device: Device) -> list[dict]:
    """The errors of cuBLAS SGEMM and of `matmul` in each precision, by size and kind of `INPUTS`.

    An error is the Frobenius norm of the difference from the float64 product over the norm of that
    product.
    """
    import torch

    torch.backends.cuda.matmul.allow_tf32 = False
    found = []
    for size in sizes:
        for kind in INPUTS:
            torch.manual_seed(0)
            a, b = cuda_matrix(kind, size), cuda_matrix(kind, size)
            exact = a.double() @ b.double()
            results = {"cublas": a @ b}
            u, v = (cla.to_device(device.queue, x.cpu().numpy()) for x in (a, b))
            for precision in ("float32", *tensor_precisions(device)):
                c = matmul(u, v, precision=precision).get()
                results[precision] = torch.from_numpy(c).cuda()
            norm = exact.norm()
            one = {name: float((c.double() - exact).norm() / norm) for name, c in results.items()}
            found.append({**dict.fromkeys("mnk", size), "inputs": kind, **one})
            print(f"errors at {size}, {kind}: {one}", flush=True)
    return found


def cuda_matrix(kind: str, size: int) -> Any:
    import torch

    if kind == "uniform":
        return torch.rand(size, size, device="cuda")
    x = torch.randn(size, size, device="cuda")
    if kind == "scaled":
        for shape in ((size, 1), (1, size)):
            x *= torch.exp2(torch.randint(-20, 21, shape, device="cuda").float())
    return x


# Commands


def run_calls(given: argparse.Namespace) -> None:
    device = find_device(given.device)
    if given.title and not given.json:
        raise ValueError("--title is for the record; give --json FILE, too")
    shapes = [table.dimensions(size) for size in given.sizes]
    if given.random:
        most = given.most_flops or calls.MOST_FLOPS.get(device.kind, calls.MOST_FLOPS["CPU"])
        print(f"random shapes of at most {most:.0e} operations (--most-flops)")
        shapes += calls.random_shapes(given.random, given.seed, most)
    if not shapes:
        raise ValueError("nothing to compare: give --sizes, --random N, or both")
    rows: list[calls.Row] = []
    for dtype in given.types:
        how = given.precision, given.device_time
        rows += calls.compare(shapes, device, given.numpy, dtype, *how)
    calls.print_summary(rows, device.kind)
    if given.json:
        large = calls.summary(calls.large(rows, device.kind))
        found = {
            "calls": [row._asdict() for row in rows],
            "summary": calls.summary(rows),
            "large": large,
        }
        records.write(given.json, {**common.head(device, given.title), **found})
        print(f"wrote {given.json}")


def run_launches(given: argparse.Namespace) -> None:
    if not (given.cublas or given.clblast):
        raise ValueError("nothing to compare with: give --cublas, --clblast LIBRARY, or both")
    if given.title and not given.json:
        raise ValueError("--title is for the record; give --json FILE, too")
    device = find_device(given.device)
    found = side_by_side(given.sizes, device, given.clblast, given.cublas)
    if not given.json:
        return
    yardsticks = [
        {"name": name, **{side: one[side] for side in "mnk"}, "gflops": float(np.median(one[key]))}
        for key, name in (("cublas", "cuBLAS SGEMM"), ("clblast", "CLBlast SGEMM"))
        for one in found
        if key in one
    ]
    accurate = [size for size in given.sizes if size in ACCURATE]
    chosen = [
        timing.measure(
            one["kernel"], one["m"], one["n"], one["k"], params=one["params"], device=device
        )
        for one in found
    ]
    records.write(
        given.json,
        {
            **common.head(device, given.title),
            "peaks": vars(peaks.peaks(device)),
            "yardsticks": yardsticks,
            "side_by_side": found,
            "errors": errors(accurate, device) if given.cublas else [],
            "auto": [records.entry(result) for result in chosen],
            "results": [],
        },
    )
    print(f"wrote {given.json}")


def run_join(given: argparse.Namespace) -> None:
    sets = []
    for part in given.parts:
        shapes, equals, file = part.partition("=")
        if not equals:
            raise ValueError(f"{part!r} is not of the form SHAPES=FILE")
        sets.append({"shapes": shapes, **json.loads(Path(file).read_text(encoding="utf-8"))})
    note = (
        "whole calls in wall-clock time, alternating with another library's product of the same "
        "operands; a ratio is its seconds over ours"
    )
    kept = ("title", "shapes", "command", "device", "summary", "large")
    joined = [
        {**{name: one[name] for name in kept}, "calls": [rounded(call) for call in one["calls"]]}
        for one in sets
    ]
    shared = {name: sets[0][name] for name in ("device", "date", "versions")}
    head = {"title": given.title, "command": common.command(), **shared, "note": note}
    records.write(given.file, {**head, "sets": joined})


def rounded(call: dict) -> dict:
    """A call with its seconds in four digits, a small part of what differs from round to round."""
    seconds = {name: [float(f"{s:.4g}") for s in each] for name, each in call["seconds"].items()}
    return {**call, "seconds": seconds}


def words_from(*allowed: str) -> Callable[[str], list[str]]:
    """The type of an option that takes some of these words, separated by commas."""

    def parse(text: str) -> list[str]:
        words = text.split(",")
        if unknown := [word for word in words if word not in allowed]:
            raise argparse.ArgumentTypeError(f"{unknown[0]!r} is none of {', '.join(allowed)}")
        return words

    return parse


def parser() -> argparse.ArgumentParser:
    raw = argparse.RawDescriptionHelpFormatter
    top = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    commands = top.add_subparsers(required=True)
    whole = commands.add_parser("calls", help="whole calls in wall-clock time")
    whole.set_defaults(run=run_calls)
    words = "such as 512,64x8192x1024: M x N x K of row-major products"
    whole.add_argument("--sizes", type=size_list, default=[], help=words)
    whole.add_argument("--random", type=count, default=0, metavar="N", help="so many random shapes")
    whole.add_argument("--seed", type=int, default=0, help="of the random shapes (default: 0)")
    words = "operations of a random shape at most (default: 2e12, on CPUs 1e10)"
    whole.add_argument("--most-flops", type=amount, help=words)
    words = "such as float64,complex64 (default: float32)"
    whole.add_argument("--types", type=words_from(*TYPES), default=["float32"], help=words)
    whole.add_argument("--numpy", action="store_true", help="NumPy arrays instead of device arrays")
    words = "tf32, tf32x3 or both, compared with float32 instead of another library"
    whole.add_argument("--precision", type=words_from("tf32", "tf32x3"), default=[], help=words)
    words = "time the device alone, which never waits for the host (GPUs)"
    whole.add_argument("--device-time", action="store_true", help=words)
    alone = commands.add_parser("launches", help="launches alone, without what a call costs")
    alone.set_defaults(run=run_launches)
    words = "such as 512,64x8192x1024: M x N x K of column-major products"
    alone.add_argument("--sizes", type=size_list, required=True, help=words)
    alone.add_argument("--cublas", action="store_true", help="cuBLAS SGEMM, through PyTorch")
    alone.add_argument("--clblast", metavar="LIBRARY", default="", help="such as libclblast.so.1")
    for command in (whole, alone):
        common.add_device(command)
        command.add_argument("--json", type=output_file, metavar="FILE", help="write a record")
        command.add_argument("--title", help="with --json: a short name of the device for charts")
    join = commands.add_parser("join", help="join records of calls into one")
    join.set_defaults(run=run_join)
    join.add_argument("file", type=output_file, help="the file to write")
    join.add_argument("title", help="of the joined record")
    join.add_argument(
        "parts", nargs="+", metavar="SHAPES=FILE", help="what was recorded, and where"
    )
    return top


def main(arguments: list[str] | None = None) -> None:
    given = parser().parse_args(arguments)
    given.run(given)


if __name__ == "__main__":
    common.run(main)

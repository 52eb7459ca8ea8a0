"""Run a kernel of the ladder, or an edited text of it, on a product: `simulate`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NoReturn

import numpy as np

from clscope import Finding, TextError
from clscope.api import find_races, judge_unset
from clscope.budget import Budget
from clscope.lint import roundings
from clscope.machine import Machine, Order
from clscope.memory import Memory
from clscope.text import Spot, explained
from clscope.translate import Program, compile_kernel
from clscope.tree import Variable
from clscope.types import FLOAT, Array, Pointer
from clscope.wave import Spoil

from ..check import bound, exact_inputs, random_inputs
from ..ladder import KernelSpec, Key, find, fixup, signature
from ..ladder.sources import read
from ..ladder.spec import positive
from .reasons import reasons
from .run import ProductRun, redefined

#: For sizes that the defaults do not suit: tiles of 8, and what kernels of whole warps need at
#: least.
SMALL = {
    **dict.fromkeys(("TS", "TSM", "TSN", "TSK"), 8), **dict.fromkeys(("WPT", "WPTM", "WPTN"), 2),
    "WIDTH": 2, "RX": 4, "RY": 2, "GX": 2, "GY": 4, "UNROLL": 1,
}  # fmt: skip

SMALL_WARPS = {"TSM": 32, "TSN": 32, "TSK": 8, "WPTM": 4, "WPTN": 4, "WARPM": 8}

# of kernels whose warps have blocks of one size
SMALL_TILES = {"TSM": 64, "TSN": 64, "TSK": 8, "GROUPS": 5}


class LaunchError(TextError):
    """A kernel whose parameters, work-groups or local memory do not fit the launch."""


def settings(
    spec: KernelSpec, m: int, n: int, k: int, params: Mapping[str, int] | None
) -> dict[str, int]:
    """Complete parameters for these sizes: the given ones, the defaults, or small tiles."""
    full, small = spec.validate(params), shrunk(spec, None)
    supported = [spec.supported_sizes(m, n, k, each) == (m, n, k) for each in (full, small)]
    if params is None and supported == [False, True]:
        return small
    spec.check_sizes(m, n, k, full, "mnk")
    return full


def shrunk(spec: KernelSpec, params: Mapping[str, int] | None) -> dict[str, int]:
    """Complete parameters with tiles small enough to draw, if the kernel's rules allow that."""
    full = spec.validate(params)
    for most in (SMALL, SMALL_WARPS, SMALL_TILES):
        small = full | {
            name: min(full[name], value) for name, value in most.items() if name in full
        }
        if not spec.problems(small):
            return small
    return full


def simulate(  # noqa: PLR0913
    kernel: Key | KernelSpec = 6,
    m: int = 16,
    n: int = 16,
    k: int = 16,
    params: Mapping[str, int] | None = None,
    source: str | None = None,
    *,
    order: Order = "lockstep",
    seed: int = 0,
    groups: Sequence[tuple[int, ...]] | None = None,
    limit: int = 100_000,
    seconds: float | None = None,
    local_memory: int | None = None,
) -> ProductRun:
    """Run a kernel of the ladder, or an edited text of it, on A (m x k) and B (k x n) with entries
    +-0.5 and +-1.5.

    Args:
        kernel: its number; it says how large work-groups and tiles are. m, n, k: sizes that it
            takes, a few tiles.
        params: its parameters; None for the defaults, or small tiles where the sizes are too small
            for these.
        source: another text to run in its place.
        order, seed, limit: as in `run`; seed also draws the inputs. A loop that provably never ends
            is a finding; one that iterates more often than `limit` leaves the run `unfinished`.
        groups: only these work-groups, such as [(0, 0)].
        seconds: processor time of its thread that it may take, findings included. After that the
            run is `unfinished`, and so it is after 128 MB of records (512 MB without `seconds`).
        local_memory: bytes that a device gives to a work-group; a kernel with more is refused.

    Raises:
        TextError: (a ValueError) if the text is not a kernel, with line and column.
        TimeoutError: if translating the text alone takes longer than `seconds`.
        ValueError, ParameterError: for sizes and parameters that do not fit.
    """
    spec = find(kernel)
    m, n, k = (positive(name, size) for name, size in zip("mnk", (m, n, k), strict=True))
    full = settings(spec, m, n, k, params)
    budget = Budget(seconds)
    name = None if source is None else "gemm"
    program = compile_kernel(read(spec.file) if source is None else source, name, full, budget)
    local, launch = spec.local_size(full), spec.global_size(m, n, full)
    _as_a_product(program, spec, full, local)
    _fits(program, local_memory)
    types = {p.name: p.type.to.scalar for p in program.params if isinstance(p.type, Pointer)}
    names = [p.name for p in program.params]
    inputs = exact_inputs(m, n, k, seed)
    a, b = (x.astype(types[name].dtype) for x, name in zip(inputs, names[3:5], strict=True))

    def launched(
        a: np.ndarray, b: np.ndarray, spoil: Spoil | None = None
    ) -> tuple[Machine, list[object]]:
        args: list[object] = [m, n, k]
        # one row of this array is one column in memory
        rows = b if spec.wants_transposed(full) else b.T
        leading = spec.leading_dimensions(m, n, k, full)
        for matrix, distance, name in zip((a.T, rows), leading, names[3:5], strict=True):
            data = np.pad(matrix, ((0, 0), (0, distance - matrix.shape[1])))
            of = Array(types[name], data.size)
            args.append(Memory(name, "global", of, data=data.ravel()))
        args.append(Memory(names[5], "global", Array(types[names[5]], m * n)))
        if spec.takes_workspace:
            args.append(_pieces(spec, full, names[6]))
        machine = Machine(program, launch, local, limit, budget)
        machine.spoil = spoil or {}
        machine.run(args, order, seed, groups)
        ended = not machine.stop and not machine.unfinished
        if spec.needs_fixup(full, frozenset()) and ended and groups is None:
            fixed = _fixup(spec, full, args)
            machine.findings += [*fixed.findings, *find_races(fixed)[0]]  # of the second launch
            machine.stop = fixed.stop
        return machine, args

    machine, args = launched(a, b)
    judge_unset(machine, lambda spoil: launched(a, b, spoil)[0])
    run = ProductRun(machine, args, spec, full, a, b, every=groups is None)
    if groups is not None or run.unfinished or run.stop:
        return run
    if not run.exact and {f.kind for f in run.findings} <= {"redefined", "slip"}:
        run.findings += reasons(run, program.functions, lambda a, b: launched(a, b)[0])
    elif run.ok and (rounding := next(roundings(program.functions), None)):
        u, v = random_inputs(m, n, k, seed)
        machine, args = launched(u, v)
        if not machine.unfinished:
            run.findings += _inaccurate(rounding, args[5], u, v, spec.product_error(full))
    return run


def _inaccurate(
    rounding: Finding, c: Any, a: np.ndarray, b: np.ndarray, error: float
) -> Iterator[Finding]:
    """A rounding that makes the product of random matrices less accurate than it may be."""
    got = c.view(c.scalar)[: c.sizes[0]].reshape(b.shape[1], a.shape[0]).T
    if got.dtype != np.float32:
        return
    want = a.astype(np.float64) @ b
    bad = ~(np.abs(got - want) <= bound(a, b, error))
    if bad.any():
        column, row = np.argwhere(bad.T)[0]
        text = f"{int(bad.sum()):,} of {bad.size:,} elements are too inaccurate with random inputs"
        text += f", such as C({row}, {column}) = {got[row, column]:g} instead of "
        text += f"{want[row, column]:g}"
        yield replace(rounding, message=f"{rounding.message}: {text}")


def _as_a_product(
    program: Program, spec: KernelSpec, params: dict[str, int], local: tuple[int, int]
) -> None:
    """Refuse a kernel that has not the parameters, or the work-groups, of a product."""

    def refuse(problem: str, spot: Spot = program.kernel.spot) -> NoReturn:
        with explained(program.text):
            raise LaunchError(problem, spot)

    parameters = [_parameter(p) for p in program.params]
    if problem := signature.problem(parameters, spec.takes_workspace):
        at = signature.misfit(parameters)
        refuse(problem, program.kernel.spot if at is None else program.params[at].spot)
    if program.size and program.size != (*local, 1):
        size, own = " x ".join(map(str, program.size)), f"{local[0]} x {local[1]}"
        why = "".join(f"; {f.message}" for f in redefined(program, params))
        refuse(f"{program.name} requires work-groups of {size}, but is launched with {own}{why}")


def _fits(program: Program, most: int | None) -> None:
    """Refuse a kernel that declares more local memory than a work-group has."""
    sizes = {array: array.type.stride for array in program.locals}
    if most is not None and sum(sizes.values()) > most:
        largest = max(sizes, key=lambda array: sizes[array])
        takes = f"{program.name} declares {sum(sizes.values()):,} bytes of local memory, "
        takes += f"{sizes[largest]:,} of them for {largest.name}"
        with explained(program.text):
            raise LaunchError(f"{takes}, but a work-group has {most:,}", largest.spot)


def _parameter(param: Variable) -> signature.Parameter:
    of = param.type
    if isinstance(of, Pointer):
        return signature.Parameter(param.name, f"{of.to}*", of.space)
    return signature.Parameter(param.name, str(of))


def _pieces(spec: KernelSpec, params: dict[str, int], name: str) -> Memory:
    """Memory for pieces of tiles; behind them the counters, if the kernel has any, zero."""
    rows, cols, _ = spec.tiles(params)
    size = spec.workspace(params)
    counters = size - 2 * params["GROUPS"] * rows * cols
    memory = Memory(name, "global", Array(FLOAT, max(1, size)))
    memory.put(FLOAT, slice(size - counters, size), 0)
    return memory


def _fixup(spec: KernelSpec, params: dict[str, int], args: Sequence[Any]) -> Machine:
    """The second launch of Stream-K: fixup.cl adds up the pieces of divided tiles."""
    m, n, k, _, _, c, pieces = args
    program = compile_kernel(read(fixup.FILE), "fixup", fixup.parameters(spec, params))
    size, scalars = fixup.launch(spec, m, n, k, params)
    machine = Machine(program, size, fixup.LOCAL_SIZE, 5_000)
    machine.run([*scalars, pieces, c])
    return machine

"""Whole calls: any product is exact, or refused by the name of the argument that is to blame."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyopencl as cl
import pytest
from configurations import SMALL_TILE
from conftest import NO_SKIP
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from layouts import Framed, Layout, whole
from pyopencl.tools import ImmediateAllocator
from texts import SMALL

import gemmlab
from gemmlab.blas import plan, staging

pytestmark = pytest.mark.optimised(False)

EXAMPLES = 600 if NO_SKIP else 300
TYPES = ("float32", "float32", "float64", "complex64", "complex128", "float16")
NAMED = {
    "float32": "sgemm",
    "float64": "dgemm",
    "complex64": "cgemm",
    "complex128": "zgemm",
    "float16": "hgemm",
}
#: 0, 1, primes, and one more and less than sides of tiles.
SIDES = st.sampled_from((0, 1, 1, 2, 3, 4, 5, 7, 8, 9, 13, 15, 16, 17, 23, 31, 32, 33, 47, 65, 130))
EVERY_TYPE: tuple[dict, ...] = (
    *2 * ({},),
    {"kernel": "family", "params": SMALL_TILE},
    {"kernel": "packed"},
    {"edges": "split"},
    {"kernel": "family", "params": SMALL_TILE, "edges": "split"},
)
SMALL_LADDER = tuple({"kernel": number, "params": SMALL[number]} for number in (3, 10, 12, 13))
#: Its tiles are shared by work-groups.
NARROW = {"LINES": 2, "TSK": 32, "WIDTH": 1, "WPT": 1, "GROUPS": 5}
LADDER: tuple[dict, ...] = (
    *SMALL_LADDER,
    {"kernel": 3, "params": SMALL[3], "edges": "pad"},
    {"kernel": 12, "edges": "shift"},
    *({"edges": edges} for edges in ("pad", "guard", "shift")),
    *({"kernel": "narrow", "params": NARROW | {"ROWS": rows}} for rows in (0, 1)),
)
#: Where the arrays are; the last two are in NumPy's memory, for a device with separate memory.
WHERE = ("on a device", "in NumPy", "in NumPy, pinned", "in NumPy, copied")
APPLIED = {
    "N": lambda x: x,
    "T": lambda x: x.swapaxes(-1, -2),
    "C": lambda x: x.conj().swapaxes(-1, -2),
}
SPELLED = {"N": (0, "N", False), "T": (1, "T", True), "C": (2, "C", np.int64(2))}


@st.composite
def layouts(draw) -> Layout:
    """Most of them ordinary: others are refused on a device."""
    if draw(st.integers(0, 3)):
        return Layout(
            draw(st.booleans()), draw(st.sampled_from((0, 0, 3))), sub_buffer=draw(st.booleans())
        )
    step = st.sampled_from((1, 1, 1, -1, 2))
    flags = (draw(st.integers(0, 5)) == 0 for _ in range(3))
    return Layout(
        draw(st.booleans()), draw(st.integers(0, 3)), draw(step), draw(step), draw(step), *flags
    )


@dataclass(frozen=True)
class Call:
    """What a call is made of."""

    shapes: tuple[tuple[int, ...], tuple[int, ...]]  # of op(a) and op(b)
    layouts: tuple[Layout, ...]
    dtype: str
    other: str  # the type of `out`, or of c
    options: dict
    where: str
    with_allocator: bool
    given: bool  # `out`, or c
    seed: int
    gemm: bool = False
    ta: str = "N"
    tb: str = "N"
    alpha: complex = 1
    beta: complex = 0
    overwrite: Any = False

    @property
    def on_device(self) -> bool:
        return self.where == WHERE[0]


@st.composite
def calls(draw) -> Call:
    gemm = draw(st.booleans())
    m, n, k = (draw(SIDES) for _ in range(3))
    shapes: list[tuple[int, ...]] = [(m, k), (k, n)]
    dtype = draw(st.sampled_from(TYPES))
    more: dict = {}
    if gemm:
        factors = (0, 1, 1, -2, 0.5) if np.dtype(dtype).kind == "f" else (0, 1, -2, 2 - 3j)
        more = {
            "gemm": True,
            "ta": draw(st.sampled_from("NTC")),
            "tb": draw(st.sampled_from("NTC")),
            "alpha": draw(st.sampled_from(factors)),
            "beta": draw(st.sampled_from((*factors, -0.0))),
            "overwrite": draw(st.sampled_from((False, True, 1))),
        }
    elif draw(st.booleans()):  # a batch, broadcast
        batch = draw(st.lists(st.sampled_from((3, 2, 2, 1, 5, 0)), min_size=1, max_size=3))
        for i in (0, 1):
            own = [draw(st.sampled_from((size, size, 1))) for size in batch]
            shapes[i] = (*own[draw(st.integers(0, len(own))) :], *shapes[i])
    if not gemm:  # vectors
        which = draw(st.integers(0, 7))
        shapes[0] = (k,) if which in (0, 2) else shapes[0]
        shapes[1] = (k,) if which in (1, 2) else shapes[1]
    where, of_the_ladder = draw(st.sampled_from(WHERE)), dtype == "float32"
    of_the_ladder = of_the_ladder or draw(st.integers(0, 9)) == 0
    suited = EVERY_TYPE + LADDER * of_the_ladder
    if where in WHERE[2:]:  # small kernels: "auto" is for a GPU
        suited = EVERY_TYPE[2:3] + EVERY_TYPE[-1:] + SMALL_LADDER * of_the_ladder
    options = draw(st.sampled_from(suited))
    return Call(
        (shapes[0], shapes[1]), tuple(draw(layouts()) for _ in range(3)), dtype,
        draw(st.sampled_from(("float16", "float32"))) if dtype == "float16" else dtype, options,
        where, draw(st.booleans()), draw(st.booleans()) or gemm and more["beta"] != 0,
        draw(st.integers(0, 2**16)), **more,
    )  # fmt: skip


def refusals(call: Call, device, arrays: dict[str, Framed | None]) -> tuple[set[str], set[str]]:
    """The arguments that must be refused, and those that may be: it depends on what is computed."""
    must, may = set(), set()
    kernel, edges = call.options.get("kernel", "auto"), call.options.get("edges", "auto")
    for name, x in arrays.items():
        is_column = name == "b" or (name == "out" and len(call.shapes[1]) == 1)
        if x is not None and call.on_device and x.host.ndim and not x.is_readable(int(is_column)):
            may.add(name)
        if x is not None and name == "out" and not x.host.flags.writeable:
            must.add(name)
    single, real = call.dtype == "float32", np.dtype(call.dtype).kind == "f"
    if (
        (isinstance(kernel, int) or kernel == "narrow")
        and not single
        or kernel == "packed"
        and not (real and device.kind == "CPU")
    ):
        must.add("kernel")
    if edges in ("pad", "shift") and not single or (kernel, edges) == (12, "shift"):
        must.add("edges")
    if kernel == 13 or edges == "shift":
        may.add("edges")  # of results smaller than a tile
    return must, may


def names(error: Exception, argument: str) -> bool:
    """Whether a message begins with the argument, or says which value of it would do."""
    return str(error).startswith((f"{argument} ", f"{argument}=")) or f"{argument}='" in str(error)


def outcome(call: Call, device, queue) -> str:
    """Make a call and compare with NumPy; what came of it."""
    values = [whole(shape, call.seed + i, call.dtype) for i, shape in enumerate(call.shapes)]
    product = np.matmul(*values)
    wanted = np.asarray(product)
    a, b = values
    if call.gemm:
        a, b = APPLIED[call.ta](a), APPLIED[call.tb](b)
    third = whole(wanted.shape, call.seed + 2, call.other)
    if call.gemm:
        wanted = call.alpha * product + (call.beta * third if call.beta else 0)
        # what BLAS does not read may hold anything
        a, b = (np.full_like(x, np.nan) if call.alpha == 0 else x for x in (a, b))
        third = third if call.beta else np.full_like(third, np.nan)
    elif call.given:
        third = np.full_like(third, np.nan)
    name = "c" if call.gemm else "out"
    allocator = ImmediateAllocator(queue) if call.on_device and call.with_allocator else None
    side = (queue, allocator) if call.on_device else ()
    x, y = (Framed(z, layout, *side) for z, layout in zip((a, b), call.layouts, strict=False))
    z = Framed(third, call.layouts[2], *side) if call.given else None
    options = call.options | ({} if call.on_device else {"device": device})
    must, may = refusals(call, device, {"a": x, "b": y, name: z})
    try:
        got = _called(call, x.given, y.given, z.given if z else None, options)
    except ValueError as error:
        assert any(names(error, argument) for argument in must | may), (
            f"{error}: not among {must}, {may}"
        )
        assert x.holds() and y.holds() and (z is None or z.holds())
        return "refused"
    assert not must, f"{must} should have been refused"
    assert x.holds() and y.holds(), "an operand was modified"
    assert got.shape == wanted.shape and got.dtype == (call.other if call.given else call.dtype)
    if z is not None and got is z.given:
        assert z.holds(wanted), "wrong, or stored outside of the result's array"
    else:
        assert call.gemm or z is None, "out was not used"
        assert z is None or z.holds(), "c was modified"
        assert np.array_equal(got.get() if call.on_device else got, wanted), "wrong"
        assert got.flags.c_contiguous and (not call.on_device or got.queue == queue)
        assert allocator is None or got.allocator is allocator
    if z is not None and call.gemm:
        plain = call.layouts[2] in (Layout(), Layout(sub_buffer=True))
        assert (got is z.given) == bool(call.overwrite) or not plain or not z.host.size
        assert got is not z.given or call.overwrite
    return call.where


def _called(call: Call, a, b, third, options: dict):
    if not call.gemm:
        return gemmlab.matmul(a, b, third, **options)
    function = gemmlab.gemm if call.seed % 2 else getattr(gemmlab, NAMED[call.dtype])
    ta, tb = (SPELLED[t][(call.seed + i) % 3] for i, t in enumerate((call.ta, call.tb)))
    return function(
        call.alpha, a, b, call.beta, third, ta, tb, overwrite_c=call.overwrite, **options
    )


def test_a_call_is_exact_or_refused_by_name(device, capsys, monkeypatch):
    queue, outcomes = cl.CommandQueue(device.context), Counter()
    gpu, pinned = replace(device, kind="GPU"), []
    sizes = {"STRIP": 16, "STRIPS": 4, "PIECE": 1000, "THREADS": 2, "WORTHWHILE": 0}
    for name, value in sizes.items():
        monkeypatch.setattr(staging, name, value)
    monkeypatch.setattr(staging, "staging_for", lambda *_: pinned[-1])
    ring = staging.Staging(gpu.context, gpu)
    monkeypatch.setattr(plan, "MAX_BATCH", 2)  # products of a launch

    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
    )
    @given(calls())
    def run(call):
        if call.dtype in ("float64", "complex128") and "double" not in device.features:
            return
        pinned.append(ring if call.where == WHERE[2] else None)
        outcomes[outcome(call, gpu if call.where in WHERE[2:] else device, queue)] += 1

    run()
    with capsys.disabled():
        print(f"\ncalls on {device}: {dict(outcomes)}")
    assert min(outcomes[kind] for kind in (*WHERE, "refused")) >= EXAMPLES / 30


@pytest.mark.system
@pytest.mark.parametrize("dtype, unit", [("float64", 2), ("complex64", 1)])
@pytest.mark.parametrize("shares", [1, 3])
def test_kernels_of_warps_serve_batches_parts_and_factors(dtype, unit, shares, any_device):
    if dtype == "float64" and "double" not in any_device.features:
        pytest.skip("no double precision")
    warps = {"TSM": 16, "TSN": 16, "TSK": 8, "WPTM": 2, "WPTN": 2, "UNROLL": 8, "WIDTH": 2}
    params = {**warps, "STAGES": 3, "UNIT": unit, "SHARES": shares}
    options = {"kernel": "family", "params": params, "device": any_device}
    a, b, c = whole((37, 29), 0, dtype), whole((29, 41), 1, dtype), whole((37, 41), 2, dtype)
    pairs = np.stack([a, -a]), np.stack([b, 2 * b])
    assert np.array_equal(gemmlab.matmul(*pairs, **options), pairs[0] @ pairs[1])
    assert np.array_equal(gemmlab.matmul(a, b, edges="split", **options), a @ b)
    alpha = 2 - 3j if dtype == "complex64" else 2
    got = gemmlab.gemm(alpha, np.ascontiguousarray(a.T), b, -3, c, trans_a=1, **options)
    assert np.array_equal(got, alpha * (a @ b) - 3 * c)

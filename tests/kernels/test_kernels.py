"""The kernels on every device: right by both checks, and wrong on purpose."""

import random
import warnings

import numpy as np
import pyopencl as cl
import pyopencl.array as cla
import pytest
from conftest import NO_SKIP
from texts import OUTSIDE, SMALL, and_store, edited, intel, portable, without_barrier

import gemmlab
from gemmlab import catalog, check

#: Kernels that are wrong on purpose, by number and name. None of them leaves C's frame.
WRONG = [
    *((number, "tail dropped", "k0 < K;", f"k0 < K - {step};")
      for step, numbers in {"TS": (2, 3, 4, 12), "TSK": (*range(5, 11), 13, 15, 19), "RK": (11,)}
      .items() for number in numbers),
    *((number, "tail dropped", "left > 0;", "left > TSK;") for number in (16, 17)),
    *((name, "tail dropped", "first < K; first", "first < K - TSK; first")
      for name in ("tensor_cores", "warpgroups")),
    *((number, "tile shifted", "Btile[tn + j*RTS][k];", f"Btile[tn + j*RTS][(k + 1) % {step}];")
      for number, step in ((3, "TS"), (5, "TSK"), (12, "TS"))),
    *((number, "tile shifted", "Bf[k*TSN + tn + j*RTSN];", "Bf[k*TSN + (tn + 1)%RTSN + j*RTSN];")
      for number in range(7, 11)),
    (1, "index shifted", "A[k*M + m]", "A[k*M + (m + 1) % M]"),
    (1, "k shifted", "B[n*K + k]", "B[n*K + (k + 1) % K]"),
    (1, "tail dropped", "k < K;", "k < K - 1;"),
    (1, "head dropped", "int k = 0", "int k = 1"),
    (1, "store shifted", "C[n*M + m]", "C[n*M + (m + 1) % M]"),
    (1, "a corner unwritten", "C[n*M + m] = acc", "if (m + n > 0) C[n*M + m] = acc"),
    (1, "added to what was there", "C[n*M + m] = acc", "C[n*M + m] += acc"),
    (2, "tile shifted", "Btile[tn][k];", "Btile[tn][(k + 1) % TS];"),
    (2, "load shifted", "A[(k0 + tn)*M", "A[(k0 + (tn + 1) % TS)*M"),
    (2, "tile not filled", "        Btile[tn][tm] = B",
     "        Btile[tn][tm] = 0.5f; if (tm) Btile[tn][tm] = B"),
    (3, "columns swapped", "Btile[tn + j*RTS][k];", "Btile[tn + (WPT - 1 - j)*RTS][k];"),
    (3, "one accumulator not cleared", "acc[j] = 0.0f;", "acc[j] = j ? 0.0f : 1.0f;"),
    (3, "one product doubled", "const float a = Atile[k][tm];",
     "const float a = Atile[k][tm]*(1 + (m0 + tm + k0 + k == 0));"),
    (4, "steps shifted", "Atile[k][tm]", "Atile[(k + 1) % TS][tm]"),
    (6, "tile shifted", "Btile[tn + j*RTSN][k];", "Btile[tn + j*RTSN][(k + 1) % TSK];"),
    (12, "the last column unwritten", "n0 + tn + j*RTS < N) {", "n0 + tn + j*RTS < N - 1) {"),
    (12, "the last row taken as zero", "= m0 + tm < M &&", "= m0 + tm < M - 1 &&"),
    (13, "tile shifted", "Btile[now][k][tn + j*RTSN];", "Btile[now][k][(tn + 1) % RTSN + j*RTSN];"),
    (13, "the last row unwritten", "m >= own_m &&", "m >= own_m && m < M - 1 &&"),
    (13, "columns swapped", "= acc[j][i];", "= acc[WPTN - 1 - j][i];"),
    (11, "columns shifted", "B[k*N + (n + j)]", "B[k*N + (n + (j + 1) % RY)]"),
    (15, "vector of the neighbour", "[k][tn + j*WARPN]", "[k][(tn + 4)%TSN + j*WARPN]"),
    (15, "columns swapped", "+ j%LWIDTH;", "+ (j ^ 1)%LWIDTH;"),
    (16, "old fragment", "Btile[now][(k + 1)%TSK]", "Btile[now][k]"),
    (16, "columns swapped", "*WARPN + j%4;", "*WARPN + (j ^ 1)%4;"),
    (17, "columns swapped", "*WARPN + j%4;", "*WARPN + (j ^ 1)%4;"),
    (18, "tail dropped", "k1 < K + (STAGES - 1)*TSK", "k1 < K + (STAGES - 2)*TSK"),
    (18, "step shifted", "&Btile[now][k][tn", "&Btile[next][k][tn"),
    (18, "columns swapped", "C[(n + 4)*M + m]", "C[(n + 3)*M + m]"),
    (19, "step shifted", "(k/4*ROW + n)*4 + k%4]", "(k/4*ROW + n)*4 + (k + 1)%4]"),
    (19, "rows swapped", "(acc[0][j + h], acc[0][j + h + 2],",
     "(acc[0][j + h + 2], acc[0][j + h],"),
    ("warp_tiling", "tail dropped", "depth/TSK : count)", "depth/TSK : count - 1)"),
    ("warp_tiling", "fragment of the neighbour", "[k][tn + wn*WARPN]",
     "[k][(tn + 4) % TSN + wn*WARPN]"),
    ("warp_tiling", "old fragment", "FRAGMENT((k + 1)%TSK, (k + 1)%2)", "FRAGMENT(k, (k + 1)%2)"),
    ("warp_tiling", "components swapped", "b[of][wn + 1 - i%2];", "b[of][wn + i%2];"),
    ("warp_tiling", "columns swapped", "wn%4 + n*4)*M", "(wn%4 ^ 1) + n*4)*M"),
    ("warp_tiling", "the last row taken as zero", "m0 + ia < M && left_a >",
     "m0 + ia < M - 1 && left_a >"),
    ("warp_tiling", "the last step taken as zero", "left_b > (l)*KB)", "left_b - 1 > (l)*KB)"),
    ("warp_tiling", "the last column unwritten", "n*4 < N && m1", "n*4 < N - 1 && m1"),
    ("tensor_cores", "step shifted", "&Btile[now][k + l][n]", "&Btile[now][(k + l + 1)%TSK][n]"),
    ("tensor_cores", "columns swapped", "j%4 + 8*t + 4*h;", "j%4 + 8*t + 4 - 4*h;"),
    ("tensor_cores", "the last rows taken as zero", "LOAD(m0 + ia < M &&",
     "LOAD(m0 + ia < M - 4 &&"),
    ("warpgroups", "step shifted", "+= big*Btile[now][k/4][n][k%4]",
     "+= big*Btile[now][k/4][n][(k + 1)%4]"),
    ("warpgroups", "columns swapped", "j/2*8 + 2*t + j%2;", "j/2*8 + 2*t + 1 - j%2;"),
    ("warpgroups", "rows swapped", "(acc[0][l], acc[0][l + 2],", "(acc[0][l + 2], acc[0][l],"),
    ("warpgroups", "the last step taken as zero", "first + k < K;", "first + k < K - 1;"),
]  # fmt: skip
SIZES = (24, 16, 32), (21, 30, 43), (8, 8, 8)

TINY = catalog["warp_tiling"].complete(SMALL["warp_tiling"])
SHARED = TINY | {"GROUPS": 5}, [(67, 41, 53)]
BATCHED = TINY | {"TRANSPOSED": 0, "TSK": 16, "BATCHES": 15, "STAGES": 3}, [(64, 64, 80)]
TAILED = TINY | {"TAIL": 1, "TSK": 16}, [(64, 64, 39)]
_TAIL_FRAGMENT = "            FRAGMENT(k, 0)\n"
#: Warp tiling that is wrong only with certain parameters: these, sizes, and edits.
WRONG_WITH = [
    (*SHARED, "            cut++;\n", ""),
    (*SHARED, "step = line*group/", "step = group == 0 ? 0 : -1 + line*group/"),
    (*SHARED, "const int k0 = (int)(step%steps)*TSK;", "const int k0 = 0;"),
    (*SHARED, "int whole = count == steps;", "int whole = 1;"),
    # copies: too late for the barrier, the last one never, steps and columns mixed up
    (*BATCHED, "((l)*BATCHES/(count)", "(((l) + 1)*BATCHES/(count)"),
    (*BATCHED, "(STEP_OF(l, LPTB) == (k))", "(STEP_OF(l, LPTB) == (k) && l < LPTB - 1)"),
    (*BATCHED, "K_OF(l)*(TSN + PAD)", "(TSK - KB - K_OF(l))*(TSN + PAD)"),
    (*BATCHED, "(TSN + PAD) + N_OF(l)", "(TSN + PAD) + TSN - NB - N_OF(l)"),
    # the steps that K leaves: one too few, those of the tile before, each a step too late
    (*TAILED, "k < depth%TSK; k++", "k < depth%TSK - 1; k++"),
    (*TAILED, _TAIL_FRAGMENT + "            MULTIPLY(0)", "            MULTIPLY(0)"),
    (*TAILED, _TAIL_FRAGMENT, "            FRAGMENT((k + 1)%TSK, 0)\n"),
]


def production(number: int | str) -> list[pytest.MarkDecorator]:
    """The marks of kernels past 13, which take seconds to compile."""
    return [pytest.mark.system] if isinstance(number, str) or number > 13 else []


#: Kernels with their default (0) or one of two settings by the device; CI has more devices.
CASES = [
    pytest.param(number, nth, marks=production(number) if nth else [])
    for number in catalog
    for nth in range(2 if NO_SKIP and number not in range(6) else 3)
]

#: B as K x N, 8 floats of a column side by side, or fewer.
NOT_TRANSPOSED = [
    TINY | {"TRANSPOSED": 0, "TSK": tsk, "TSM": 16, "TSN": 64, "WARPM": 4} for tsk in (4, 8, 16, 32)
]
TALL = TINY | {"TSM": 64, "TSN": 32, "TSK": 16, "WARPM": 4}
#: Of warp tiling. One group; several that cut most tiles; as many as steps; more, so that some have
#: none.
SETTINGS = [
    *(TINY | {"GROUPS": groups} for groups in (1, 2, 3, 5, 16, 264)),
    *(
        params | {"BATCHES": batches}
        for params in (TINY, TINY | {"WIDTH": 4, "STAGES": 3}, *NOT_TRANSPOSED)
        for batches in (1, params["TSK"] - 1)
    ),
    TINY | {"WIDTH": 4, "GROUPS": 5, "TSK": 16, "STAGES": 4},
    *(
        TALL | {"TAIL": tail, "WIDTH": width, "GROUPS": groups, "TRANSPOSED": transposed}
        for tail in (0, 1)
        for width, groups, transposed in ((1, 0, 1), (4, 3, 1), (1, 5, 0))
    ),
]
UNOPTIMISED = pytest.mark.system, pytest.mark.optimised(False)
CASES += [pytest.param("warp_tiling", params, marks=UNOPTIMISED) for params in SETTINGS]


def awkward(spec, params: dict[str, int], rng: random.Random) -> list[tuple[int, ...]]:
    """Three of: ones, primes, a little less and more than tiles and steps, one and many of them."""
    tm, tn, tk = spec.tiles(params)
    every = [
        (1, tn + 1, 2 * tk - 1),
        (tm, tn, 1),
        (tm - 1, tn, tk + 1),
        (tm + 1, tn - 1, tk - 1),
        (2 * tm, 3 * tn, 3 * tk),
        (67, 41, 53),
        tuple(rng.randint(1, 2 * t + 40) for t in (tm, tn, tk)),
    ]
    least = spec.minimum_sizes(params) if spec.edges == "shift" else (1, 1, 1)
    return [tuple(map(max, sizes, least)) for sizes in rng.sample(every, 3)]


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("number", "params"), CASES)
def test_a_kernel_is_right_by_both_checks(number, params, device):
    spec, limits = catalog[number], device.limits
    if isinstance(params, int):
        some = [spec.fit(limits), *spec.sample(limits, 2, seed=f"{number} {limits.name}")]
        params = some[params % len(some)]
    for m, n, k in awkward(spec, params, random.Random(f"{number} {params}")):
        result = gemmlab.measure(number, m, n, k, params=params, device=device, repeats=1)
        assert result.ok and result.verdict == "right: every element exact", result
        assert 0 <= result.error <= result.bound and result.params == params
        assert ("fix-up" in result.passes_ms) == spec.needs_fixup(params, device.features)


def every_size_to_130(seed) -> zip:
    """Sizes among which each of M, N and K takes every value."""
    orders = [random.Random(f"{seed} {axis}").sample(range(1, 131), 130) for axis in "MNK"]
    return zip(*orders, strict=True)


@pytest.mark.parametrize("edges", ("pad", "guard", "shift", "auto"))
def test_matmul_is_right_at_every_size(edges, device):
    for m, n, k in every_size_to_130(edges):
        if edges == "shift":
            m, n = max(m, 32), max(n, 32)
        a, b = check.exact_inputs(m, n, k)
        assert check.exact(gemmlab.matmul(a, b, edges=edges, device=device), a, b).ok, (m, n, k)


@pytest.mark.system
@pytest.mark.parametrize("number", (12, 13, "warp_tiling"))
def test_every_size_from_1_to_130_is_right_and_nothing_around_c_is_touched(number, device):
    """`measure` looks at the memory around C."""
    least = catalog[number].minimum_sizes(catalog[number].complete(SMALL[number]))
    for sizes in every_size_to_130(number):
        sizes = map(max, sizes, least)
        result = gemmlab.measure(number, *sizes, params=SMALL[number], device=device, repeats=1)
        assert result.ok, result
        assert list(result.passes_ms) in (["gemm"], ["transpose", "gemm"]), "no copies"


@pytest.mark.sampled(4)
@pytest.mark.optimised(False)
@pytest.mark.parametrize(
    ("number", "params", "sizes", "old", "new"),
    [
        *(
            pytest.param(
                number, SMALL[number], SIZES, *edit, marks=production(number), id=f"{number}-{what}"
            )
            for number, what, *edit in WRONG
        ),
        *(pytest.param("warp_tiling", *case, marks=pytest.mark.system) for case in WRONG_WITH),
    ],
)
def test_a_wrong_kernel_is_caught(number, params, sizes, old, new, some_device):
    options = {"params": params, "device": portable(some_device), "repeats": 1}
    for each in sizes:
        result = gemmlab.measure(number, *each, source=edited(number, (old, new)), **options)
        assert not result.ok and result.verdict.startswith("wrong: "), f"{each}: {result}"
        assert "the first is C[" in result.verdict and "outside" not in result.verdict


SIZES_OUTSIDE = (16, 8, 24), (21, 30, 43), (1, 1, 1)
STORES = [
    pytest.param(n, {}, SIZES_OUTSIDE, and_store(n, statement), id=f"{n}-{where}")
    for n in (1, 2, 3)
    for where, statement in OUTSIDE.items()
]
#: Missing guards, which may also store into another column.
STORES += [
    pytest.param("warp_tiling", {"WIDTH": width}, [(27, 30, 40)], edit, marks=pytest.mark.system)
    for width, edit in (
        (1, ("n1 + wn/4*4*WARPN + wn%4 + n*4 < N && ", "")),
        (1, (" && m1 + m + lane < M", "")),
        (4, ("else if (n < N)", "else if (1)")),
        (4, ("if (m < M) c[0]", "c[0]")),
    )
]


@pytest.mark.sampled(4)
@pytest.mark.optimised(False)
@pytest.mark.parametrize(("number", "more", "sizes", "edit"), STORES)
def test_a_store_outside_c_is_caught(number, more, sizes, edit, some_device):
    """In a child process, lest these stores damage this one."""
    options = {"params": SMALL[number] | more, "device": some_device, "repeats": 1}
    for each in sizes:
        outcome = gemmlab.trial(number, *each, source=edited(number, edit), **options)
        assert outcome.result and not outcome.ok, f"{each}: {outcome}"
        for words in ("it writes outside C", "" if more else "inside C, right"):
            assert words in outcome.result.verdict, f"{each}: {outcome}"


@pytest.mark.optimised(False)
def test_a_store_of_the_last_element_is_inside_c(some_device):
    source = edited(1, and_store(1, "C[M*N - 1] = 0.5f;"))
    options = {"params": SMALL[1], "device": some_device, "repeats": 1}
    verdict = gemmlab.measure(1, 16, 8, 24, source=source, **options).verdict
    assert "outside" not in verdict and "C[15, 7] = 0.5" in verdict


BARRIERS = [(number, which) for number in range(2, 9) for which in ((1,), (2,), (1, 2))]
BARRIERS += [(number, (1,)) for number in (9, 10, 12, 13, 15, "warp_tiling", "tensor_cores")]
BARRIERS += [(number, (2,)) for number in (12, 16, 17, "warp_tiling")]
# those of its last store, where elements change hands
BARRIERS += [("warp_tiling", (7,)), ("warp_tiling", (8,))]
# its third is for copies that nobody waits for: here they are there at once
BARRIERS += [("warpgroups", (4,))]


@pytest.mark.parametrize(("number", "which"), BARRIERS)
def test_a_missing_barrier_is_caught(number, which):
    device, source = intel(), without_barrier(number, *which)
    # with as many groups as steps nobody waits for a second tile
    few = {"GROUPS": 0} if number == 17 else {}
    # the others take seconds to compile
    larger = [] if production(number) else [catalog[number].defaults]
    for params in (SMALL[number] | few, *larger):
        result = gemmlab.measure(
            number, 200, 170, 133, params=params, device=device, repeats=1, source=source
        )
        assert not result.ok, result


# A kernel to take away


@pytest.mark.sampled(3)
@pytest.mark.optimised(False)
@pytest.mark.parametrize("number", catalog)
def test_a_kernel_to_take_away(number, some_device):
    # it leaves no partial tiles
    one_launch = {"GROUPS": 0} if "GROUPS" in catalog[number].defaults else {}
    settings = {**SMALL.get(number, {}), **one_launch}
    if "warpgroups" in some_device.features and "TENSOR" in catalog[number].defaults:
        settings["TENSOR"] = 0  # PyOpenCL alone does not reveal hidden instructions
    kernel = gemmlab.kernel(number, settings, some_device)
    tile = kernel.spec.tiles(kernel.params)
    m, n, k = (2 * tile[0], tile[1], 3 * tile[2])
    a, b = check.exact_inputs(m, n, k)
    queue = some_device.queue
    da = cla.to_device(queue, np.ascontiguousarray(a.T))  # column-major in memory
    db = cla.to_device(queue, np.ascontiguousarray(b if kernel.b_transposed else b.T))
    dc = cla.empty(queue, (n, m), np.float32)
    # with nothing but PyOpenCL and what the object says
    with warnings.catch_warnings():
        # some compilers talk even when all is well
        warnings.simplefilter("ignore", cl.CompilerWarning)
        program = cl.Program(some_device.context, kernel.source).build(list(kernel.options))
    dc.fill(np.float32(np.nan))
    args = [np.int32(size) for size in (m, n, k)] + [x.data for x in (da, db, dc)]
    # the pieces of Stream-K: there are none with GROUPS = 0
    args += [None] * (kernel.opencl.num_args - len(args))
    program.gemm(queue, kernel.global_size(m, n, k), kernel.local_size, *args).wait()
    assert check.exact(dc.get().T, a, b).ok

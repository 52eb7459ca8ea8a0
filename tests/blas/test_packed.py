"""Products on CPUs with A in panels: exact for every block and layout, nothing outside of C."""

import itertools
import os
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyopencl as cl
import pytest
from configurations import FRAME_BYTES, on_device
from conftest import FULL, lacking
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from layouts import whole

import gemmlab
from gemmlab import check, matmul, simt
from gemmlab.blas import packed
from gemmlab.blas.plan import Builder, Matrix, Product
from gemmlab.blas.problem import Layout, Operand, Problem
from gemmlab.catalog import Limits, sources

TEXT = sources.read(packed.FILE)
#: What follows the loop over adjacent rows of whole panels.
END = "\n            }\n        }\n    } else {"
#: Texts that are wrong on purpose: what each of them says instead.
WRONG = {
    "a row too few in a panel": ("i < height; i++) {\n                for (int k",
                                 "i < height - 1; i++) {\n                for (int k"),
    "adjacent rows shifted": (f"A[k*step_a + i];{END}", f"A[k*step_a + (i + 1) % MR];{END}"),
    "panels apart": ("panels += k0*(long)PADDED(M) + m*depth",
                     "panels += k0*(long)PADDED(M) + m*KC"),
    "a step of k dropped": ("k < depth; k++) {\n                    const VECTOR",
                            "k < depth - 1; k++) {\n                    const VECTOR"),
    "a column read twice": ("min(n + J, N - 1)", "min(n + J, max(0, N - 2))"),
    "the sum so far forgotten": ("first && k0 == 0", "k0 == 0"),
    "the second vector first": ("{c0_0, c0_1}", "{c0_1, c0_0}"),
    "stored behind C": ("j < min(NR, N - n)", "j < NR"),
    "a column not stored": ("j < min(NR, N - n)", "j < min(NR, N - n) - 1"),
    "rows behind C": ("const int height = min(MR, M - m);\n                for",
                      "const int height = MR;\n                for"),
    "beta alone": ("beta*C0[", "1*C0["),
    "half shifted": ("halves_of(vload8(0, x + i))", "halves_of(vload8(0, x + max(0, i - 1)))"),
    "half columns misplaced": ("y += get_group_id(0)*(long)length", "y += get_group_id(0)*8L"),
}  # fmt: skip


@pytest.fixture
def cpu(device):
    return device if device.kind == "CPU" else lacking(f"a CPU: {device} is none")


def strided(
    x: np.ndarray, by_rows: bool, gap: int, frame: int, around: float
) -> tuple[np.ndarray, int, int, int]:
    """Memory with a matrix in it; its offset, and the distances of its rows and columns."""
    y = x if by_rows else x.T
    memory = np.full(2 * frame + y.shape[0] * (y.shape[1] + gap), around, x.dtype)
    ld = y.shape[1] + gap
    memory[frame : frame + y.shape[0] * ld].reshape(y.shape[0], ld)[:, : y.shape[1]] = y
    return memory, frame, *((ld, 1) if by_rows else (1, ld))


def is_right(  # noqa: PLR0913
    device, blocks: packed.Blocks, sizes, alpha, beta, seed: int, monkeypatch, types=None
) -> bool:
    """Whether a product is exact and changes nothing around C.

    `seed` draws values and layouts. NaN is around the operands and in C's memory. `types` are those
    of the operands and of C, if they are not that of the sums.
    """
    (m, n, k), rng = sizes, np.random.default_rng(seed)
    operand, dtype = map(np.dtype, types or 2 * (blocks.dtype,))
    a, b, c0 = (
        whole((m, k), seed, operand),
        whole((k, n), seed + 1, operand),
        whole((m, n), seed + 2, dtype),
    )
    frame = FRAME_BYTES // dtype.itemsize
    places = [
        strided(x, bool(rng.integers(2)), int(rng.integers(3)), int(rng.integers(1, 9)), np.nan)
        for x in (a, b, c0)
    ]
    # C has no gaps, between two frames
    out = np.full(2 * frame + m * n, 7, dtype)
    view = out[frame : frame + m * n].reshape(n, m).T
    in_place = bool(beta) and bool(rng.integers(2))
    view[...] = c0 if in_place else np.nan
    memory = on_device(device, out)
    target = memory.get_sub_region(FRAME_BYTES, m * n * dtype.itemsize)
    operands = [(on_device(device, values), *place) for values, *place in places]
    product = Product(
        Problem(m, n, k, placed_at("a", (m, k), operands[0]), placed_at("b", (k, n), operands[1])),
        operands[0][0],
        operands[1][0],
        alpha,
        beta,
        None,
        Matrix(target, Layout.compact(m, n)),
    )
    if beta:
        where = (target, 0, 1, m) if in_place else operands[2]
        product = product._replace(before=(where[0], placed_at("c", (m, n), where)))
    builder = Builder(device.queue, device, operand, dtype)
    with monkeypatch.context() as patch:
        patch.setattr(packed.Blocks, "of", classmethod(lambda *_: blocks))
        packed.gemm(builder, product)
    builder.plan()(device.queue)
    expected = out.copy()
    a, b = a.astype(blocks.dtype), b.astype(blocks.dtype)
    expected[frame : frame + m * n].reshape(n, m).T[...] = alpha * (a @ b) + beta * c0
    cl.enqueue_copy(device.queue, out, memory)
    return np.array_equal(out, expected)


def placed_at(name: str, shape: tuple[int, int], place: tuple) -> Operand:
    """A matrix as an operand: with adjacent rows or adjacent columns."""
    (rows, cols), (_, offset, down, across) = shape, place
    if down == 1:
        return Operand(name, Layout(rows, cols, across, offset, 0), None)
    return Operand(name, None, Layout(cols, rows, down, offset, 0))


@st.composite
def products(draw):
    dtype, width = (
        np.dtype(draw(st.sampled_from(("f4", "f8")))),
        draw(st.sampled_from((2, 4, 8, 16))),
    )
    blocks = packed.Blocks(dtype, width, draw(st.sampled_from((4, 16, 256))))
    side = st.one_of(st.integers(1, 7), st.sampled_from((15, 16, 17, 31, 33, 64, 65)))
    m, n, k = (draw(side) for _ in range(3))
    k = draw(st.sampled_from((k, k, 255, 300)))
    factors = draw(st.sampled_from((1, -2))), draw(st.sampled_from((0, 0, 1, -3)))
    halves = (None, ("f2", "f2"), ("f2", "f4")) if dtype == "f4" else (None,)
    return (
        blocks,
        (m, n, k),
        *factors,
        draw(st.integers(0, 2**16)),
        draw(st.sampled_from((1, 5000, 2**23))),
        draw(st.sampled_from(halves)),
    )


def test_any_product_is_exact_whatever_its_blocks(cpu, monkeypatch):
    """Widths of vectors, depths, gaps, alpha and beta, C0 in C's place, and sums in parts."""

    @settings(
        max_examples=600 if FULL else 150,
        deadline=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
    )
    @given(products())
    def run(product):
        *given_, panel_bytes, types = product
        if given_[0].dtype == "f8" and "double" not in cpu.features:
            return
        monkeypatch.setattr(packed, "PANEL_BYTES", panel_bytes)
        assert is_right(cpu, *given_, monkeypatch, types)

    run()


def test_large_products_with_the_blocks_of_the_device(cpu, monkeypatch):
    for turn, (dtype, sizes) in enumerate(itertools.product(
        ("f4", "f8"),
        ((1203, 1, 310), (1, 1203, 3), (1, 47, 8005), (131, 145, 1100), (70_000, 5, 1),
         (99, 370, 21)),
    )):  # fmt: skip
        if dtype == "f4" or "double" in cpu.features:
            blocks = packed.Blocks.of(cpu, np.dtype(dtype))
            monkeypatch.setattr(packed, "PANEL_BYTES", (2**23, 20_000)[turn % 2])
            assert is_right(cpu, blocks, sizes, -3, turn % 3, turn, monkeypatch), (dtype, sizes)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("mistake", WRONG)
def test_a_wrong_packed_text_is_caught(mistake, cpu, monkeypatch):
    old, new = WRONG[mistake]
    texts = {file: sources.read(file) for file in (packed.FILE, packed.HALF_FILE)}
    wrong = {file: text.replace(old, new) for file, text in texts.items()}
    assert sum(text.count(old) for text in texts.values()) == 1, old
    blocks = packed.Blocks(np.dtype("f4"), 4, 16)
    monkeypatch.setattr(packed, "PANEL_BYTES", 1)

    types = ("f2", "f2") if "half" in mistake else None

    def all_right() -> bool:
        return all(
            is_right(cpu, blocks, (19, 16, 37), 2, beta, seed, monkeypatch, types)
            for beta in (0, 3)
            for seed in range(8)
        )

    assert all_right()
    monkeypatch.setattr(packed, "sources", SimpleNamespace(read=wrong.get))  # for this module alone
    assert not all_right()


def test_float16_is_rounded_as_numpy_rounds(cpu):
    """Every number of float16 by several factors: exact, tied, subnormal, infinite, NaN."""
    x = np.arange(2**16, dtype=np.uint16).view(np.float16).reshape(-1, 1)
    one = np.ones((1, 1), np.float16)
    for alpha in (1.0, 1 / 3, 1.5, 2.0**-9, 3.0 * 2**-12, 1.0005):
        with np.errstate(over="ignore", invalid="ignore"):
            expected = (np.float32(alpha) * x.astype(np.float32)).astype(np.float16)
        found = gemmlab.hgemm(alpha, x, one, device=cpu)
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("which", ["right", "rows behind C", "stored behind C", "panels apart"])
def test_packed_in_the_microscope(which):
    """Each load and store of the text is inside its array, and what it reads has been written."""
    text = TEXT.replace(*WRONG[which]) if which != "right" else TEXT
    m, n, k, blocks = 9, 7, 11, packed.Blocks(np.dtype("f4"), 2, 8)
    macros = blocks.macros(beta=False)
    a, b = check.exact_inputs(m, n, k)
    height, depth = -(-m // blocks.rows) * blocks.rows, -(-k // blocks.depth)
    arguments = [m, k, np.ravel(a, "F"), 0, 1, m, simt.Empty(height * k)]
    pack = simt.run(text, "pack", (height // blocks.rows, depth), (1, 1), arguments, macros)
    operands = pack.arrays["panels"], np.ravel(b, "F"), 0, k, 1
    arguments = [m, n, k, height, 12, 1.0, *operands, 1, simt.Empty(m * n)]
    run = simt.run(text, "gemm", (1, 1), (1, 1), arguments, macros)
    right = np.array_equal(run.arrays["C"].reshape(n, m).T, a @ b)
    assert (pack.ok and run.ok and right) == (which == "right"), (pack.verdict, run.verdict)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_blocks_fit_the_registers_and_the_caches(dtype, cpu):
    dtype = np.dtype(dtype)
    blocks, limits = packed.Blocks.of(cpu, dtype), cpu.limits
    assert isinstance(limits, Limits) and 2 <= blocks.width <= max(
        2, 4 * limits.vector // dtype.itemsize
    )
    assert packed.COLUMNS * blocks.depth * dtype.itemsize <= 16 * 1024, "half of an L1 cache"
    for m, n in ((1, 1), (64, 2048), (512, 512), (5000, 7), (17, 10_000)):
        rows, columns = blocks.shares(m, n, 2)
        assert rows % blocks.rows == columns % packed.COLUMNS == 0
        assert rows * blocks.depth * dtype.itemsize <= 256 * 1024, "half of an L2 cache"
        assert -(-m // rows) * -(-n // columns) <= max(16, 2 * -(-m // rows)), (
            "eight work-items per unit, if there are"
        )
    for height, k in ((1024, 1000), (16 * 2**16, 1000), (2048, 4000), (2048, 100_000)):
        steps = blocks.steps_per_part(height, k)
        assert steps == k or steps % blocks.depth == 0
        assert steps * height * dtype.itemsize <= packed.PANEL_BYTES or steps == blocks.depth


def test_two_thousand_small_products_leave_nothing_behind(cpu):
    """What is made for a call goes with it: 64 bytes kept of each call would be found."""
    if not sys.platform.startswith("linux"):
        lacking("the size of a process, which this test reads from Linux's /proc")
    a, b = (np.ones((8, 8), np.float32) for _ in "ab")

    def grown(calls: int) -> int:
        pages = [0, 0]
        for turn in (0, 1):
            for _ in range(turn * calls):
                matmul(a, b, device=cpu)
            pages[turn] = int(Path("/proc/self/statm").read_text().split()[1])
        return (pages[1] - pages[0]) * os.sysconf("SC_PAGE_SIZE")

    grown(2000)  # what is kept once
    # the least of several, as threads of other tests may allocate meanwhile
    assert min(grown(2000) for _ in range(8)) < 2000 * 64

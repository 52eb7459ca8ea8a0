"""Products on CPUs with A in panels: exact for every block and layout, nothing outside of C."""

from types import SimpleNamespace

import numpy as np
import pytest
from conftest import lacking
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from layouts import Framed, Layout, whole

import clscope
import gemmlab
from gemmlab import check
from gemmlab.blas import packed, plan, run
from gemmlab.ladder import sources

TEXT = sources.read(packed.FILE)
#: Texts that are wrong on purpose: what each of them says instead.
WRONG = {
    "a row too few in a panel": ("i < height; i++) {\n                for (int k",
                                 "i < height - 1; i++) {\n                for (int k"),
    "panels apart": ("panels += k0*(long)PADDED(M) + m*depth",
                     "panels += k0*(long)PADDED(M) + m*KC"),
    "a column read twice": ("min(n + J, N - 1)", "min(n + J, max(0, N - 2))"),
    "the sum so far forgotten": ("first && k0 == 0", "k0 == 0"),
    "stored behind C": ("j < min(NR, N - n)", "j < NR"),
    "rows behind C": ("const int height = min(MR, M - m);\n                for",
                      "const int height = MR;\n                for"),
    "beta alone": ("beta*C0[", "1*C0["),
    "half shifted": ("halves_of(vload8(0, x + i))", "halves_of(vload8(0, x + max(0L, i - 1)))"),
    "half columns misplaced": ("y += get_group_id(0)*(long)length", "y += get_group_id(0)*8L"),
}  # fmt: skip


@pytest.fixture
def cpu(device):
    return device if device.kind == "CPU" else lacking(f"a CPU: {device} is none")


def is_right(device, dtype, sizes, factors, seed: int, separate: bool = False) -> bool:
    """Whether a product is exact and changes nothing around C; `seed` draws values and layouts.
    With `separate`, C0 is another array of any layout.
    """
    (m, n, k), (alpha, beta), rng = sizes, factors, np.random.default_rng(seed)
    dtype, result = map(np.dtype, dtype)
    a, b = whole((m, k), seed, dtype), whole((k, n), seed + 1, dtype)
    c = whole((m, n), seed + 2, result)
    drawn = [Layout(bool(rng.integers(2)), int(rng.integers(3))) for _ in "abc"]
    if not separate:
        drawn[2] = Layout(sub_buffer=True)
    before = c if beta else np.full_like(c, np.nan)
    operands = zip((a, b, before), drawn, strict=True)
    x, y, z = (Framed(each, layout, device.queue) for each, layout in operands)
    run.session_of.cache_clear()  # the blocks of a plan differ from test to test
    got = gemmlab.gemm(
        alpha, x.given, y.given, beta, z.given, overwrite_c=not separate, kernel="packed"
    )
    sums = np.result_type(dtype, np.float32)
    expected = alpha * (a.astype(sums) @ b.astype(sums)) + (beta * c if beta else 0)
    if separate:
        return z.holds() and np.array_equal(got.get(), expected.astype(result))
    assert got is z.given
    return z.holds(expected)


#: The types of A and B, and of C.
TYPES = ("f4", "f4"), ("f8", "f8"), ("f2", "f2"), ("f2", "f4")


def test_any_product_is_exact_whatever_its_blocks(cpu, monkeypatch):
    """Widths of vectors, depths, gaps, alpha and beta, C0 in C's place, and sums in parts."""
    side = st.one_of(st.integers(1, 7), st.sampled_from((15, 16, 17, 31, 33, 64, 65)))

    @settings(
        max_examples=150,
        deadline=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
    )
    @given(
        types=st.sampled_from(TYPES),
        blocks=st.tuples(st.sampled_from((2, 4, 8, 16)), st.sampled_from((4, 16, 256))),
        sizes=st.tuples(side, side, st.one_of(side, st.sampled_from((255, 300)))),
        factors=st.tuples(st.sampled_from((1, -2)), st.sampled_from((0, 0, 1, -3))),
        panel_bytes=st.sampled_from((1, 5000, 2**23)),
        seed=st.integers(0, 2**16),
        separate=st.booleans(),
    )
    def run(types, blocks, sizes, factors, panel_bytes, seed, separate):
        sums = np.result_type(*types, np.float32)
        if sums == "f8" and "double" not in cpu.features:
            return
        own = packed.Blocks(sums, *blocks)
        monkeypatch.setattr(packed.Blocks, "of", classmethod(lambda *_: own))
        monkeypatch.setattr(packed, "PANEL_BYTES", panel_bytes)
        assert is_right(cpu, types, sizes, factors, seed, separate)

    run()


@pytest.mark.sampled(3)
@pytest.mark.parametrize("mistake", WRONG)
def test_a_wrong_packed_text_is_caught(mistake, cpu, monkeypatch):
    old, new = WRONG[mistake]
    texts = {file: sources.read(file) for file in (packed.FILE, packed.HALF_FILE)}
    wrong = {file: text.replace(old, new) for file, text in texts.items()}
    assert sum(text.count(old) for text in texts.values()) == 1, old
    blocks = packed.Blocks(np.dtype("f4"), 4, 16)
    monkeypatch.setattr(packed.Blocks, "of", classmethod(lambda *_: blocks))
    monkeypatch.setattr(packed, "PANEL_BYTES", 1)
    types = ("f2", "f2") if "half" in mistake else ("f4", "f4")

    def all_right() -> bool:
        return all(
            is_right(cpu, types, (16, 19, 37), (2, beta), seed)
            for beta in (0, 3)
            for seed in range(8)
        )

    assert all_right()
    monkeypatch.setattr(plan, "sources", SimpleNamespace(read=wrong.get))  # for this module alone
    assert not all_right()


def test_float16_is_rounded_as_numpy_rounds(cpu):
    """Every number of float16 by several factors: exact, tied, subnormal, infinite, NaN."""
    x = np.arange(2**16, dtype=np.uint16).view(np.float16).reshape(-1, 1)
    one = np.ones((1, 1), np.float16)
    for alpha in (1.0, 1 / 3, 2.0**-9, 3.0 * 2**-12, 1.0005):
        with np.errstate(over="ignore", invalid="ignore"):
            expected = (np.float32(alpha) * x.astype(np.float32)).astype(np.float16)
        np.testing.assert_array_equal(gemmlab.hgemm(alpha, x, one, device=cpu), expected)


@pytest.mark.parametrize("which", ["right", "rows behind C", "stored behind C", "panels apart"])
def test_packed_in_the_microscope(which):
    """Each load and store of the text is inside its array, and what it reads has been written."""
    text = TEXT.replace(*WRONG[which]) if which != "right" else TEXT
    m, n, k, blocks = 9, 7, 11, packed.Blocks(np.dtype("f4"), 2, 8)
    macros = blocks.macros(beta=False)
    a, b = check.exact_inputs(m, n, k)
    height, depth = -(-m // blocks.rows) * blocks.rows, -(-k // blocks.depth)
    arguments = [m, k, np.ravel(a, "F"), 0, 1, m, clscope.Empty(height * k)]
    pack = clscope.run(text, "pack", (height // blocks.rows, depth), (1, 1), arguments, macros)
    operands = pack.arrays["panels"], np.ravel(b, "F"), 0, k, 1
    arguments = [m, n, k, height, 12, 1.0, *operands, 1, clscope.Empty(m * n)]
    run = clscope.run(text, "gemm", (1, 1), (1, 1), arguments, macros)
    right = np.array_equal(run.arrays["C"].reshape(n, m).T, a @ b)
    assert (pack.ok and run.ok and right) == (which == "right"), (pack.verdict, run.verdict)

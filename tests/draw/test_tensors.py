"""Chapter 18: the numbers of TF32 in NumPy, and the pictures of fragments."""

from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from matplotlib.colors import same_color

from gemmlab import check, model
from gemmlab.bench import records
from gemmlab.draw import tensors
from gemmlab.draw.picture import MAGENTA
from gemmlab.model import tf32

FLOATS = st.floats(2.0**-100, 2.0**126, width=32).flatmap(lambda x: st.sampled_from([x, -x]))


def words(picture) -> list[str]:
    """Every text of a picture, by axes."""
    return [t.get_text() for ax in picture.axes for t in ax.texts]


def side() -> dict:
    return next(file for file in records.recorded() if file.get("errors"))


@pytest.fixture(scope="module")
def binade() -> np.ndarray:
    """Every float32 from 1 to 2."""
    return (np.arange(2**23, dtype=np.uint32) + np.float32(1).view(np.uint32)).view(np.float32)


# The numbers


def test_nearest_is_nearest_for_every_fraction(binade):
    """On a grid of steps of 2^-10; of two that are equally near, the larger."""
    big = tf32.nearest(binade)
    assert not (big.view(np.uint32) & 0x1FFF).any()
    assert (big == np.floor(binade.astype(np.float64) * 1024 + 0.5) / 1024).all()
    assert np.array_equal(tf32.nearest(-binade), -big)
    assert (tf32.cut(binade) == np.floor(binade.astype(np.float64) * 1024) / 1024).all()


def test_two_parts_hold_all_but_a_float_s_last_bit(binade):
    big, small = tf32.parts(binade)
    lost = binade.astype(np.float64) - big - small
    assert not ((big.view(np.uint32) | small.view(np.uint32)) & 0x1FFF).any()
    assert set(np.unique(np.abs(lost))) == {0, 2.0**-23}
    assert np.mean(lost == 0) == pytest.approx(0.75, abs=0.001)
    assert np.array_equal((binade - big).astype(np.float64), binade.astype(np.float64) - big), "the rest is a float"


@settings(max_examples=300, deadline=None)
@given(FLOATS)
def test_parts_of_any_number_that_can_be_split(x):
    x = np.float32([x])
    big, small = tf32.parts(x)
    assert not ((big.view(np.uint32) | small.view(np.uint32)) & 0x1FFF).any()
    assert abs(float(x[0]) - float(big[0]) - float(small[0])) <= 2.0**-22 * abs(float(x[0]))
    assert abs(small[0]) <= 2.0**-11 * abs(big[0])


@settings(max_examples=300, deadline=None)
@given(st.floats(-(2.0**100), 2.0**100))
def test_cutting_goes_toward_zero(x):
    assume(abs(x) > 2.0**-120)
    down = float(tf32.toward_zero(np.float64([x]))[0])
    assert abs(down) <= abs(x) and abs(x - down) < 2.0**-23 * abs(x) and down * x > 0
    assert abs(x) < abs(float(np.nextafter(np.float32(down), np.float32(np.copysign(np.inf, x)))))


def test_numbers_that_cannot_be_split():
    """Why `range.cl` looks for them."""
    with np.errstate(invalid="ignore"):
        big, small = tf32.parts(np.float32([np.inf, 3.4028e38]))
        assert np.isinf(big).all() and np.isnan(small[0]) and np.isinf(small[1])
    x = np.float32(np.float32(1.2345678) * 2.0 ** np.arange(-130, -99))
    big, small = tf32.parts(x)
    lost = np.abs(x - big.astype(np.float64) - small) / x
    assert lost[-1] <= 2.0**-22 and lost[0] > 2.0**-14


@pytest.mark.parametrize("kind", ("normal", "uniform"))
@pytest.mark.parametrize("k", (8, 64, 500, 1023))
def test_products_are_within_their_bounds(kind, k):
    """Truncated sums of three instructions for 8 steps, each off by less than 2^-23 of what it holds."""
    a, b = check.random_inputs(20, 30, k, seed=k, kind=kind)
    exact, size = (x.astype(np.float64) @ y for x, y in ((a, b.astype(np.float64)), (np.abs(a), np.abs(b))))
    steps = -(-k // tf32.STEP)
    for parts, loss in ((1, 2.0**-10 + 2.0**-22), (2, 2.0**-20)):
        for every in (0, 1, 2, 8):
            c = tf32.product(a, b, parts, every)
            assert (np.abs(c - exact) <= (loss + 6 * steps * 2.0**-23) * size).all(), (parts, every)
    assert check.accuracy(tf32.product(a, b), a, b).ok and check.accuracy(tf32.chain(a, b), a, b).ok


def test_exact_inputs_are_exact_in_one_part_and_two():
    a, b = check.exact_inputs(16, 24, 400)
    for parts in (1, 2):
        for every in (0, 1, 3):
            for truncating in (True, False):
                assert check.exact(tf32.product(a, b, parts, every, truncating), a, b).ok
    assert check.exact(tf32.chain(a, b), a, b).ok


def test_errors_are_in_the_order_that_the_chapter_says():
    found = {}
    for k in (1024, 4096):
        a, b = check.random_inputs(32, 32, k, kind="normal")
        ways = {"one": tf32.product(a, b, 1), "stay": tf32.product(a, b, 2, 0), "chain": tf32.chain(a, b),
                "moved": tf32.product(a, b, 2, 1), "rounded": tf32.product(a, b, 2, 0, truncating=False)}  # fmt: skip
        found[k] = {name: tf32.relative_error(c, a, b) for name, c in ways.items()}
    low, high = found.values()
    assert high["moved"] < high["rounded"] < high["chain"] < high["stay"] < high["one"]
    growth = {name: high[name] / low[name] for name in high}
    assert growth["one"] == pytest.approx(1, rel=0.1) and growth["stay"] == pytest.approx(4, rel=0.15)
    assert growth["chain"] == pytest.approx(2, rel=0.2) and growth["moved"] == pytest.approx(2, rel=0.2)


def test_the_model_is_near_what_was_recorded():
    """At K = 4096, standard normal: within a third of the H200's."""
    row = next(e for e in side()["errors"] if e["inputs"] == "normal" and e["m"] == e["k"] == 4096)
    a, b = check.random_inputs(48, 48, 4096, kind="normal")
    assert tf32.relative_error(tf32.product(a, b, 1), a, b) == pytest.approx(row["tf32"], rel=1 / 3)
    assert tf32.relative_error(tf32.chain(a, b), a, b) == pytest.approx(row["cublas"], rel=1 / 3)
    best = [tf32.relative_error(tf32.product(a, b, 2, every), a, b) for every in (1, 2, 8)]
    assert min(best) / 2 < row["tf32x3"] < 2 * max(best)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((3,), "parts_of must be 1 or 2, not 3"),
        ((0,), "parts_of must be 1 or 2, not 0"),
        ((2, -1), "every must be a non-negative whole number, not -1"),
    ],
)
def test_bad_arguments_are_refused(arguments, said):
    a = np.ones((8, 8), np.float32)
    with pytest.raises(ValueError, match=said):
        tf32.product(a, a, *arguments)


# The instruction


def test_lanes_hold_each_element_once():
    for name, rows, cols in (("a", 16, 8), ("b", 8, 8), ("sum", 16, 8)):
        spots = [spot for lane in range(32) for spot in tensors.held(lane)[name]]
        assert sorted(spots) == [(r, c) for r in range(rows) for c in range(cols)]


def test_eight_instructions_fill_a_lane_s_patch():
    """Rows 4g to 4g + 3, columns 8t to 8t + 7: the table in the kernel's header."""
    for lane in range(32):
        g, t = divmod(lane, 4)
        mine = sorted(spot for number in range(8) for spot in tensors.ours(lane, number))
        assert mine == [(m, n) for m in range(4 * g, 4 * g + 4) for n in range(8 * t, 8 * t + 8)]
        for number in range(8):
            j, i = divmod(number, 2)
            m, n = 4 * g + 2 * i, 8 * t + j
            assert tensors.ours(lane, number) == [(m, n), (m, n + 4), (m + 1, n), (m + 1, n + 4)]


def test_instructions_with_our_numbers_multiply():
    """Lanes fetch 4 neighbours of step t or t + 4; what they give to the instruction is the product's block."""
    a, b = check.exact_inputs(32, 32, 8)
    c = np.full((32, 32), np.nan)
    for number in range(8):
        j, i = divmod(number, 2)
        left, right = np.full((16, 8), np.nan), np.full((8, 8), np.nan)
        for lane in range(32):
            g, t = divmod(lane, 4)
            mine = tensors.held(lane)
            fetched_a = [a[4 * g : 4 * g + 4, t + 4 * h] for h in (0, 1)]
            fetched_b = [b[t + 4 * h, 4 * g : 4 * g + 4] for h in (0, 1)]
            for register, spot in enumerate(mine["a"]):
                left[spot] = fetched_a[register // 2][2 * i + register % 2]
            for register, spot in enumerate(mine["b"]):
                right[spot] = fetched_b[register][j]
        for row, col in np.ndindex(16, 8):
            c[tensors.place(row, col, number)] = left[row] @ right[:, col]
    assert (c == a @ b).all()


@pytest.mark.parametrize(("pad", "turns"), [(0, 16), (4, 8), (8, 4), (16, 8), (32, 16), (12, 8), (24, 4)])
def test_a_pad_of_eight_needs_the_fewest_turns(pad, turns):
    assert tensors.turns(pad) == tensors.turns(pad, 32) == turns
    for quarter in range(4):
        text = tensors.banks(pad, quarter)
        assert len(text.splitlines()) == 5 and text.startswith("bank     0   4")
        lanes = [word for line in text.splitlines()[1:] for word in line.split()[3:] if word != "."]
        assert sorted(map(int, lanes)) == list(range(8 * quarter, 8 * quarter + 8))
        columns = zip(*(line.split()[3:] for line in text.splitlines()[1:]), strict=True)
        floats = [first + i for first in tensors.asked(pad, quarter).values() for i in range(4)]
        assert max(sum(word != "." for word in column) for column in columns) == model.turns(floats)


# The pictures


def test_fragments_are_drawn_where_they_lie():
    picture = tensors.fragments(5, 3)
    assert picture.alt.endswith("With instruction 3 it computes these elements of C: (6, 9); (6, 13); (7, 9); (7, 13)")
    assert [w for w in words(picture) if w.isdigit()] == list("0123010123")
    block = picture.axes[1].images[0].get_array()
    shown = {(m, n) for m, n in np.ndindex(32, 32) if same_color(block[m, n], MAGENTA)}
    assert shown == {(6, 9), (6, 13), (7, 9), (7, 13)}
    assert int((block[..., 3] == 1).sum()) == 128
    ElementTree.fromstring(picture.svg())
    assert len(picture.svg()) < 60_000 and len(picture.png()) < 15_000


@pytest.mark.parametrize("x", [*tensors.NUMBERS, -2.5, 1e-20, 1.9997559])
def test_bits_are_those_of_the_parts(x):
    value = np.float32(tensors.NUMBERS.get(x, x))
    picture = tensors.bits(x)
    big, small = (float(part) for part in tf32.parts(value))
    digits = [t for t in picture.axes[0].texts if t.get_text() in "01"]
    top = int(np.frexp(value)[1]) - 1
    drawn = [0.0] * 4
    for t in digits:
        left, height = t.get_position()
        drawn[int(-height)] += int(t.get_text()) * 2.0 ** (top - int(np.floor(left)))
    assert drawn == [abs(float(value)), abs(big), abs(small), abs(float(value) - big - small)]
    assert ("nothing is lost" in picture.alt) == (drawn[3] == 0)
    assert ("-small" in words(picture)) == (small < 0)
    for name, row in (("big", 1), ("small", 2)):
        assert sum(int(-t.get_position()[1]) == row for t in digits) <= 11, name
    ElementTree.fromstring(picture.svg())
    assert len(picture.png()) < 12_000


def test_errors_draw_a_line_for_a_model_and_points_for_a_measurement():
    modelled = {"one": {8: 1e-3, 64: 1e-3}, "two": {8: 1e-7, 64: 4e-7}}
    picture = tensors.errors(modelled, {"two": {64: 5e-7}, "theirs": {64: 1e-6}})
    assert picture.alt.startswith("Error by K. one, modelled: 8 1.0e-03, 64 1.0e-03; two, modelled: 8 1.0e-07")
    assert "two, measured: 64 5.0e-07; theirs, measured: 64 1.0e-06" in picture.alt
    one, two, point, theirs = picture.axes[0].lines
    assert two.get_color() == point.get_color() != one.get_color()
    assert (two.get_marker(), point.get_linestyle()) == ("None", "None") and list(point.get_ydata()) == [5e-7]
    assert [t.get_text() for t in picture.axes[0].get_legend().get_texts()] == ["one", "two", "theirs"]
    assert theirs.get_label() == "theirs"
    ElementTree.fromstring(picture.svg())


def test_rates_show_the_record():
    file = side()
    rows = [row for row in file["side_by_side"] if "tf32x3" in row]
    picture = tensors.rates(file["side_by_side"], file["errors"], file["title"])
    assert file["title"] in picture.alt
    shown = {line.get_label().split(",")[0]: line for line in picture.axes[0].lines}
    for name, who in (("float32", "auto"), ("tf32x3", "tf32x3"), ("tf32", "tf32")):
        percent = [100 * np.median(row[who]) / np.median(row["cublas"]) for row in rows]
        assert list(shown[name].get_xdata()) == pytest.approx(percent)
        assert all(f"{name} {p:.0f}%" in picture.alt for p in percent)
    normal = [e for e in file["errors"] if e["inputs"] == "normal"]
    largest = max(normal, key=lambda e: e["m"] * e["n"] * e["k"])
    legend = [t.get_text() for t in picture.axes[0].get_legend().get_texts()]
    for name, key in (("float32", "float32"), ("tf32x3", "tf32x3"), ("tf32", "tf32"), ("cuBLAS", "cublas")):
        assert f"{name}, error {largest[key]:.1e}" in legend
    assert len(picture.axes[0].get_yticklabels()) == len(rows)
    plain = tensors.rates([row for row in file["side_by_side"]][:1])
    assert [t.get_text() for t in plain.axes[0].get_legend().get_texts()] == ["float32", "tf32x3", "tf32", "cuBLAS"]
    ElementTree.fromstring(picture.svg())
    assert len(picture.png()) < 30_000

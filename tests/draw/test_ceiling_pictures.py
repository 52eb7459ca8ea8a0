"""Pictures of ceilings and of a scheduler: what they draw and say is what the model computed. No device needed."""

from functools import cache

import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import LineCollection
from matplotlib.colors import same_color
from matplotlib.text import Text

from gemmlab import catalog, model, simulate
from gemmlab.draw import ceilings, issue_line
from gemmlab.draw.picture import GREEN
from gemmlab.model.issue import instructions, issue


@cache
def rungs():
    rates = {1: 6_300, 2: 7_000, 3: 12_600, 6: 35_000}
    return [model.explain(number, None, model.H200, rate) for number, rate in rates.items()]


def smallest_text(picture) -> float:
    """In pixels, if the picture is 800 pixels wide."""
    points = [text.get_fontsize() for text in picture.findobj(Text) if text.get_text()]
    return min(points) / 72 * 800 / picture.get_size_inches()[0]


def test_the_bars_are_the_ceilings():
    rung = rungs()[2]
    picture = ceilings.bars(rung.ceilings, rung.share, "kernel 3 on an H200")
    ax = picture.axes[0]
    widths = {round(patch.get_width(), 6) for patch in ax.patches}
    assert {round(100 * c.share, 6) for c in rung.ceilings} <= widths
    assert {round(100 * c.low, 6) for c in rung.ceilings} <= widths
    (line,) = [line for line in ax.lines if same_color(line.get_color(), GREEN)]
    assert line.get_xdata()[0] == pytest.approx(100 * rung.share)
    assert [label.get_text() for label in ax.get_yticklabels()] == [c.resource for c in rung.ceilings]
    said = dict(zip([c.resource for c in rung.ceilings], picture.alt.split(": ", 1)[1].split("; "), strict=True))
    for c in rung.ceilings:
        assert c.resource in said[c.resource]
        assert model.percent(c.low) in said[c.resource] and model.percent(c.share) in said[c.resource]
    assert "Measured" in picture.alt and "Measured" not in ceilings.bars(rung.ceilings).alt


def test_no_line_of_a_library_goes_through_a_number_of_the_strip():
    for last in (80, 170):  # the scale ends at 100 %, or above that
        rates = {number: 669.1 * number for number in [*range(50, 80), last]}
        picture = ceilings.strip(rates, 70, {"a library": 51_000})
        FigureCanvasAgg(picture).draw()
        (ax,) = picture.axes
        (lines,) = [lines for lines in ax.collections if isinstance(lines, LineCollection)]
        boxes = [text.get_window_extent() for text in ax.texts]
        for begin, end in map(ax.transData.transform, lines.get_segments()):
            assert not any(b.y0 < begin[1] < b.y1 and begin[0] < b.x1 and b.x0 < end[0] for b in boxes)


def test_the_ladder_has_a_bar_and_its_roofs_for_every_kernel():
    picture = ceilings.ladder(rungs(), {"a library": 51_000})
    ax = picture.axes[0]
    assert [label.get_text() for label in ax.get_yticklabels()] == [f"kernel {r.kernel}" for r in rungs()]
    bars = [patch.get_width() for patch in ax.patches]
    assert bars == pytest.approx([100 * r.share for r in rungs()])
    marks = [line.get_xdata()[0] for line in ax.lines]
    for r in rungs():
        assert any(mark == pytest.approx(100 * r.roof.share) for mark in marks)
    assert any(mark == pytest.approx(100 * 51_000 / model.H200.gflops) for mark in marks)
    assert any("a library" in text.get_text() for text in ax.texts)


@pytest.mark.parametrize("number", (2, 3, 6, "warp_tiling"))
def test_an_issue_line_says_how_busy_the_units_are(number):
    small = {"TS": 16} if number in (2, 3) else {"TSM": 32, "TSN": 32, "TSK": 8, "WPTM": 4, "WPTN": 4}
    spec = catalog[number]
    params = spec.validate(small | ({"GROUPS": 0} if number == "warp_tiling" else {}))
    run = simulate(number, 32, 32, 32, params, groups=[(0, 0)])
    picture = issue_line.issue_line(run, warps=4, cycles=100)
    until = issue_line.SETTLED + issue_line.MEASURED
    slots = [s for s in issue(instructions(run), 4, until) if s.cycle >= issue_line.SETTLED]
    multiplied = sum(s.what == "multiply-add" for s in slots)
    assert f"multiply-add units busy {model.percent(multiplied / issue_line.MEASURED)}" in picture.alt
    rows = [label.get_text() for label in picture.axes[0].get_yticklabels()]
    assert rows == [*(f"warp {w}" for w in range(4)), "multiply-adds", "local memory"]


def test_only_some_warps_have_rows():
    run = simulate(2, 16, 16, 16, {"TS": 8})
    rows = issue_line.issue_line(run, warps=12, shown=3).axes[0].get_yticklabels()
    assert len(rows) == 5


def test_pictures_are_legible_and_small():
    r = rungs()[0]
    for picture in (ceilings.bars(r.ceilings, r.share, "a title"), ceilings.ladder(rungs()),
                    issue_line.issue_line(simulate(2, 16, 16, 16, {"TS": 8}), 4)):  # fmt: skip
        assert smallest_text(picture) >= 9
        assert picture.png()[:4] == b"\x89PNG" and len(picture.svg()) < 200_000

"""The pictures: what they draw and say is what was counted, and they can be shown. No device needed."""

import io
import itertools
import re
from functools import cache
from xml.etree import ElementTree

import numpy as np
import pytest
from conftest import in_part
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import same_color, to_rgba
from matplotlib.patches import Circle, PathPatch, Rectangle
from matplotlib.text import Text
from matplotlib.transforms import Bbox
from PIL import Image

from gemmlab import model, simulate
from gemmlab.bench import sweeps
from gemmlab.catalog import catalog, in_order, sources
from gemmlab.draw import diagram, hardware, plot, replay
from gemmlab.draw.picture import BLUE, GREEN, INK, ORANGE, RED, Picture, count, short
from gemmlab.draw.waterfall import waterfall
from gemmlab.simt import views

BLOCKS = {"TSM": 8, "TSN": 8, "TSK": 4, "WPTM": 2, "WPTN": 4, "UNROLL": 1}
SVG = "{http://www.w3.org/2000/svg}"
#: Of every kernel small parameters, and M, N, K: several groups, two or three tiles along K.
SMALL = {
    1: ({"TS": 4}, (8, 4, 3)),
    2: ({"TS": 4}, (8, 4, 12)),
    3: ({"TS": 4, "WPT": 2}, (4, 8, 12)),
    4: ({"TS": 4, "WIDTH": 2}, (8, 4, 12)),
    5: ({"TS": 4, "TSK": 2, "WPT": 2, "PAD": 1}, (8, 4, 6)),
    6: (BLOCKS | {"PAD": 2}, (8, 16, 12)),
    7: (BLOCKS | {"WIDTH": 2}, (16, 8, 12)),
    8: (BLOCKS | {"WIDTH": 4}, (16, 8, 12)),
    9: (BLOCKS | {"WIDTH": 4}, (8, 16, 12)),
    10: (BLOCKS | {"TSN": 16, "WIDTH": 2}, (8, 16, 12)),
    11: ({"RX": 4, "RY": 2, "RK": 1, "WIDTH": 2, "GX": 2, "GY": 1}, (8, 4, 3)),
}


EXCHANGED = sources.read("01_naive.cl").replace("m = get_global_id(0)", "m = get_global_id(1)")
EXCHANGED = EXCHANGED.replace("n = get_global_id(1)", "n = get_global_id(0)")


@cache
def ran(kernel):
    params, sizes = SMALL[kernel]
    return simulate(kernel, *sizes, params)


def touched(r, array, store=False, **where):
    """The floats that some events touch, with repetitions: one by one, apart from the package's own counting."""
    events = r.events()
    found = []
    for event in (dict(zip(events.dtype.names, e, strict=True)) for e in events.tolist()):
        if (event["array"], event["store"]) == (array, store) and all(event[name] == where[name] for name in where):
            found += range(event["index"], event["index"] + event["width"])
    return found


def boxes(ax):
    """(left, top, face) of every square that is drawn as part of a path; a wider or higher box is several squares."""
    for patch in ax.patches:
        if isinstance(patch, PathPatch):
            corners = patch.get_path().vertices
            assert len(corners) % 5 == 0
            for box in corners.reshape(-1, 5, 2):
                (left, bottom), (right, top) = box.min(axis=0), box.max(axis=0)
                for x, y in itertools.product(range(round(right - left)), range(max(1, round(top - bottom)))):
                    yield round(float(left) + x, 6), round(float(top) - y, 6), patch.get_facecolor()


def matrices(ax):
    """What is drawn in each matrix, by its name: {name: {face: {(row, column)}}}; no place is drawn twice."""
    found = {}
    for frame in (patch for patch in ax.patches if isinstance(patch, Rectangle)):
        left, top = frame.get_x(), frame.get_y() + frame.get_height()
        (name,) = {t.get_text().split()[0] for t in ax.texts if t.get_position() == (left + 0.1, top + 0.3)}
        inside = [
            (to_rgba(face), (round(top - y), round(x - left)))
            for x, y, face in boxes(ax)
            if left <= x < left + frame.get_width() and top - frame.get_height() < y <= top
        ]
        assert len({place for _, place in inside}) == len(inside)
        faces = found[name.rstrip(":")] = {}
        for face, place in inside:
            faces.setdefault(face, set()).add(place)
    assert sum(len(places) for faces in found.values() for places in faces.values()) == len(list(boxes(ax)))
    return found


# A run, step by step


@pytest.mark.parametrize("kernel", in_part(SMALL, 3))
def test_a_replay_draws_and_says_what_the_run_did(kernel):
    """All its steps together touch what the table of events says, and every step's colours are what it touches."""
    r = ran(kernel)
    group, item = int(r.events()["group"].max()), 1
    film = replay.Replay(r, group)
    seen = {name: set() for name in ["A", "B", "C", *r.shapes]}
    mine = {name: set() for name in seen}
    for number, step in enumerate(film.steps, 1):
        picture = film.picture(number, item)
        assert picture.alt == film.words(number, item) and f"line {step.line}." in picture.alt
        for name, faces in drawn_now(film, picture.axes[0]).items():
            now, of_item = (set(views.places(step.entries, name, who)) for who in (None, item))
            assert faces.get(replay.GROUP, set()) == now - of_item and faces.get(replay.ITEM, set()) == of_item
            seen[name] |= now
            mine[name] |= of_item
    for name in seen:
        for found, where in ((seen, {"group": group}), (mine, {"group": group, "item": item})):
            assert found[name] == {i for store in (False, True) for i in touched(r, name, store, **where)}, name


def drawn_now(film, ax):
    """What is coloured in each array, by its strength: {name: {strength: {index}}}."""
    squares = list(boxes(ax))
    found = {}
    for name, (x, y, rows, cols, sides) in film._places.items():
        faces = found[name] = {}
        for left, top, face in squares:
            col, row = round(left - x), round(-top - y)
            if 0 <= col < cols and 0 <= row < rows and same_color(face[:3], diagram.COLOURS[name]):
                faces.setdefault(round(face[3], 2), set()).add(col * rows + row if sides else row * cols + col)
    return found


@pytest.mark.parametrize("name", ("2", "2 of many", "7, narrow", "12, tiny", "11", "17"))
def test_words_of_a_replay_are_whole_and_beside_the_matrices(name):
    """Whatever the sizes: nothing is cut, nothing is written over something else."""
    run = {
        "2": lambda: ran(2),
        "2 of many": lambda: simulate(2, 48, 32, 32, {"TS": 16}),
        "7, narrow": lambda: simulate(7, 32, 32, 8, {**SMALL[7][0], "TSM": 32, "TSN": 32, "TSK": 8, "WPTM": 4}),
        "12, tiny": lambda: simulate(12, 3, 2, 3, {"TS": 2, "WPT": 1}),
        "11": lambda: ran(11),
        "17": lambda: simulate(17, 64, 64, 16, {"TSM": 64, "TSN": 64, "ORDER": 1, "GROUPS": 2}),
    }[name]()
    film = replay.Replay(run)
    picture = film.picture(2)
    picture.png()  # it lays the words out
    (ax,) = picture.axes
    words = [text.get_window_extent() for text in ax.texts if text.get_text()]
    corners = [ax.transData.transform([(x, -y - rows), (x + cols, -y)])
               for x, y, rows, cols, _ in film._places.values()]  # fmt: skip
    matrices = [Bbox(corner) for corner in corners]
    for number, box in enumerate(words):
        assert picture.bbox.x0 <= box.x0 and box.x1 <= picture.bbox.x1
        assert picture.bbox.y0 <= box.y0 and box.y1 <= picture.bbox.y1
        assert not any(box.overlaps(other) for other in [*words[:number], *matrices]), ax.texts[number]


@pytest.mark.parametrize("kernel", (2, 6))
def test_a_panel_shows_what_the_picture_shows_whatever_was_shown_before(kernel):
    film = replay.Replay(ran(kernel))
    for number, item in ((4, 1), (9, 0), (len(film.steps), 3), (9, 0)):
        svg, picture = ElementTree.fromstring(film.svg(number, item)), film.picture(number, item)
        (ax,) = picture.axes
        assert written_now(film, svg) == drawn_now(film, ax) and svg.get("aria-label") == picture.alt
        said = [t.get_text() for t in ax.texts if t.get_text()]
        assert sorted(text.text for text in svg.iter(f"{SVG}text")) == sorted(said)
        own = [patch for patch in ax.patches if isinstance(patch, Circle)]
        assert len(list(svg.iter(f"{SVG}circle"))) == len(own) - 1  # Matplotlib writes the one in the key as a path
        assert film.svg(number, item) == replay.Replay(ran(kernel)).svg(number, item)


def written_now(film, svg):
    """The same as `drawn_now` in an SVG for a panel."""
    found = {name: {} for name in film._places}
    for path in svg.iter(f"{SVG}path"):
        for left, top, high in re.findall(r"M(\S+) (\S+)h1v(\d+)h-1z", path.get("d")):
            for name, (x, y, rows, cols, sides) in film._places.items():
                col, first = round(float(left) - x), round(float(top) - y)
                if 0 <= col < cols and 0 <= first < rows and path.get("fill") == diagram.COLOURS[name]:
                    indices = {col * rows + r if sides else r * cols + col for r in range(first, first + int(high))}
                    found[name].setdefault(float(path.get("fill-opacity")), set()).update(indices)
    return found


def test_the_element_of_a_race_is_crossed_out():
    source = sources.read("02_tiled.cl").replace("barrier(CLK_LOCAL_MEM_FENCE);", "", 1)
    r = simulate(2, 8, 8, 8, {"TS": 4}, source)
    (race,) = (f for f in r.findings if f.kind == "race" and f.array == "Atile")
    film = replay.Replay(r)
    for number, step in enumerate(film.steps, 1):
        (ax,) = film.picture(number).axes
        red = any(same_color(line.get_color(), RED) for line in ax.lines)
        touched = {name for name in r.shapes if race.element in views.places(step.entries, name)}
        assert red == bool(touched) == (RED in film.svg(number)), step


def test_parts_of_tiles_are_drawn_in_the_blocks_of_their_work_group():
    """Those of group 1 in the second column of blocks, its second part below its first."""
    r = simulate(17, 64, 128, 16, {"TSM": 64, "TSN": 64, "ORDER": 1, "GROUPS": 3})
    film, (high, wide) = replay.Replay(r, 1), r.tile
    seen = set()
    for number in range(1, len(film.steps) + 1):
        faces = film._coloured("pieces", number, 5)
        places = {(col, row + i) for strength in (replay.GROUP, replay.ITEM)
                  for col, row, many in faces.get(strength, ()) for i in range(many)}  # fmt: skip
        seen |= places
        assert ("pieces" in film.words(number)) == bool(places)
    indices = set(touched(r, "pieces", True, group=1))
    assert {index // (high * wide) for index in indices} == {2}, "it has one part to store"
    assert seen == {film._cell("pieces", index) for index in indices} and len(seen) == len(indices)
    assert {(col // wide, row // high) for col, row in seen} == {(1, 0)}


def test_a_replay_ends_where_the_kernel_had_to_stop():
    source = sources.read("02_tiled.cl").replace("Atile[k][tm]", "Atile[k + 1][tm]")
    r = simulate(2, 8, 8, 8, {"TS": 4}, source)
    film = replay.Replay(r)
    assert r.stop and film.steps[-1].line == r.stop.line
    assert r.stop.message in film.words(len(film.steps)) and film.picture(len(film.steps)).svg()


# A warp's accesses

WARPS = [
    (simulate(1, 64, 32, 3, {"TS": 32}), {}),
    (simulate(1, 32, 32, 3, {"TS": 32}, EXCHANGED), {}),
    (simulate(2, 16, 32, 16, {"TS": 16}), {"warp": 5}),
    (simulate(4, 16, 32, 16, {"TS": 16, "WIDTH": 4}), {"warp": 1, "size": 128}),
    (simulate(5, 32, 64, 8, {"TS": 32, "TSK": 8, "WPT": 8, "PAD": 1}), {"step": 1}),
    (simulate(11, 32, 16, 4, {"RX": 4, "RY": 2, "RK": 1, "WIDTH": 4, "GX": 8, "GY": 8}), {"step": 3}),
]


def of_a_warp(r, name, step=0, warp=0, size=32, store=False):
    """The elements that a warp touches by its `step`-th instruction, and their segments, lane by lane."""
    found = set()
    events = r.events(group=0)[["item", "array", "store", "index", "width"]].tolist()
    for lane in range(32 * warp, 32 * warp + 32):
        mine = [e for e in events if e[0] == lane and e[1:3] == (name, store)]
        found |= set(range(mine[step][3], mine[step][3] + mine[step][4]))
    return found, {4 * i // size for i in found}


@pytest.mark.parametrize(("r", "options"), WARPS, ids=["1", "1-swapped", "2", "4", "5", "11"])
def test_an_access_draws_and_says_what_a_warp_touches(r, options):
    step, size = options.get("step", 0), options.get("size", 32)
    a, b = (of_a_warp(r, name, **options) for name in "AB")
    counts = diagram.access_counts(r, step, options.get("warp", 0), size)
    assert counts == {"A": (len(a[0]), len(a[1])), "B": (len(b[0]), len(b[1]))}
    picture = diagram.access(r, **{"step": step, **options})
    words = [
        f"{name}: {len(t)} element{'s'[: len(t) > 1]} in {len(s)} segment{'s'[: len(s) > 1]} of {size} bytes"
        for name, (t, s) in (("A", a), ("B", b))
    ]
    assert picture.alt == f"A warp at step {step}. {words[0]}; {words[1]}"
    drawn = matrices(picture.axes[0])
    c = of_a_warp(r, "C", warp=options.get("warp", 0), store=True)[0]
    for name, indices, rows in (("A", a[0], r.m), ("B", b[0], r.n if r.transposed else r.k), ("C", c, r.m)):
        assert drawn[name] == {to_rgba(diagram.COLOURS[name]): {(i % rows, i // rows) for i in indices}}
    # on the right the memory from the first segment on, as far as it is drawn
    texts = [t.get_text() for t in picture.axes[1].texts]
    beyond = []
    for (indices, _), line, colour in ((a, words[0], BLUE), (b, words[1], ORANGE)):
        first = min(indices) // (size // 4) * (size // 4)
        near = {i - first for i in indices if i - first < 128}
        at = {(left, top) for left, top, face in boxes(picture.axes[1]) if same_color(face, colour)}
        top = max(y for _, y in at)
        assert {(x + 32 * round((top - y) / 0.5)) for x, y in at} == near
        assert line in texts
        if len(near) < len(indices):
            beyond.append(f"and {len(indices) - len(near)} more elements further on in memory")
    assert [text for text in texts if text.startswith("and ")] == beyond


def test_the_lesson_on_coalescing_in_numbers():
    """Kernel 1: 32 neighbours of A and one element of B; with the dimensions exchanged the other way round."""
    plain, swapped = (r for r, _ in WARPS[:2])
    assert diagram.access_counts(plain, 0) == {"A": (32, 4), "B": (1, 1)}
    assert diagram.access_counts(swapped, 0) == {"A": (1, 1), "B": (32, 12)}  # 3 floats apart: all of 96
    assert diagram.access_counts(plain, 2, size=128) == {"A": (32, 1), "B": (1, 1)}


@pytest.mark.parametrize("tile", (16, 32))
@pytest.mark.parametrize("coalesced", (True, False))
def test_transposing_draws_and_says_what_a_warp_touches(tile, coalesced):
    r = diagram.transposed(32, 64, tile, coalesced)
    picture = diagram.transposing(r, warp=2)
    stores = 4 if coalesced else tile
    words = f"a warp's loads fall into 4 segments, its stores into {stores} segments"
    assert picture.alt == f"Transposing {'through a tile in local memory' if coalesced else 'directly'}: {words}"
    drawn = matrices(picture.axes[0])
    for name, rows, columns, segments in (("in", 32, 64, 4), ("out", 64, 32, stores)):
        indices, found = of_a_warp(r, name, warp=2, store=name == "out")
        assert len(found) == segments
        assert drawn[name] == {to_rgba(diagram.COLOURS[name]): {(i % rows, i // rows) for i in indices}}
        assert f"{name}  {rows} x {columns}: {segments} segments" in [t.get_text() for t in picture.axes[0].texts]


# How often an element is fetched


@pytest.mark.parametrize("kernel", SMALL)
def test_fetches_are_those_of_the_run_and_of_the_model(kernel):
    r = ran(kernel)
    for name, shape in (("A", (r.m, r.k)), ("B", r.b_shape)):
        counts = np.zeros(shape, int)
        for i in touched(r, name):
            counts[i % shape[0], i // shape[0]] += 1
        assert np.array_equal(diagram.fetch_counts(r, name), counts)
    a, b = (diagram.fetch_counts(r, name) for name in "AB")
    loads = model.loads(kernel, r.params)["global"]
    assert a.sum() + b.sum() == round(loads * r.m * r.n * r.k)
    if kernel >= 6 and kernel < 11:  # a tile of g x h: an element of A serves h columns of C, one of B g rows
        g, h = r.params["TSM"], r.params["TSN"]
        assert np.all(a == r.n // h) and np.all(b == r.m // g)
        assert a.sum() + b.sum() == (r.m / g) * (r.n / h) * (g + h) * r.k


@pytest.mark.parametrize("kernel", SMALL)
def test_fetches_draw_and_say_the_counts(kernel):
    r = ran(kernel)
    picture = diagram.fetches(r)
    a, b = (diagram.fetch_counts(r, name) for name in "AB")
    assert a.min() == a.max() and b.min() == b.max()  # in these kernels all are alike
    each = "; ".join(f"each element of {x} {n} time{'s' if n > 1 else ''}" for x, n in (("A", a.max()), ("B", b.max())))
    assert picture.alt == f"Kernel {kernel}, {r.m} x {r.n} x {r.k}: loaded from global memory, {each}"
    drawn = matrices(picture.axes[0])
    for name, counts, uses in (("A", a, r.n), ("B", b, r.m)):
        ((face, places),) = drawn[name].items()  # one colour, as strong as the share of its uses that are loads
        assert places == set(itertools.product(*map(range, counts.shape)))
        assert face[3] == pytest.approx(counts.max() / uses)
    numbers = [t.get_text() for t in picture.axes[0].texts if t.get_text().isdigit()]
    want = [str(i) for counts in (a, b) if counts.size <= 64 for i in counts.ravel()]
    assert sorted(numbers) == sorted(want)


def test_fetches_of_some_groups_differ_from_element_to_element():
    r = simulate(2, 8, 8, 8, {"TS": 4}, groups=[(0, 0), (0, 1)])
    picture = diagram.fetches(r)
    assert picture.alt.endswith("loaded from global memory, elements of A 0 to 2 times; each element of B 1 time")
    numbers = {(round(t.get_position()[0] - 0.5), round(-t.get_position()[1] - 0.5)): t.get_text()
               for t in picture.axes[0].texts if t.get_text().isdigit()}  # fmt: skip
    for row, column in itertools.product(range(8), range(8)):
        assert numbers[column, row] == ("2" if row < 4 else "0")


def test_a_layout_numbers_the_elements_in_their_order():
    rows, columns = 3, 5
    picture = diagram.layout(rows, columns)
    assert f"A matrix of {rows} rows and {columns} columns" in picture.alt
    numbers = {(round(x - 0.5), round(-y - 0.5)): int(t.get_text())
               for t in picture.axes[0].texts if t.get_text().isdigit() for x, y in [t.get_position()]}  # fmt: skip
    by_row, by_column = (np.arange(rows * columns).reshape(rows, columns, order=order) for order in "CF")
    for row, column in itertools.product(range(rows), range(columns)):
        assert numbers.pop((column, row)) == by_row[row, column]
        assert numbers.pop((column + columns + 3, row)) == by_column[row, column]
    assert not numbers


# The machine


@pytest.mark.parametrize("bank_bytes", (4, 8))
@pytest.mark.parametrize("indices", [range(32), range(0, 64, 2), range(0, 17 * 32, 17), range(0, 512, 16), [7] * 32])
def test_banks_draw_each_lane_in_its_bank_and_turn(indices, bank_bytes):
    picture = hardware.banks(indices, bank_bytes, "Kernel 5: ")
    (ax,) = picture.axes
    needed = model.turns(indices, bank_bytes)
    turns = "1 turn" if needed == 1 else f"{needed} turns"
    assert picture.alt.startswith(f"Kernel 5: 32 lanes take {turns}: ")
    assert ("no conflict" in picture.alt) == (needed == 1)
    assert needed == 1 or f"{needed}-way conflict" in picture.alt
    assert [t.get_text() for t in ax.texts] == [str(lane) for lane in range(32)]
    words = {}
    for lane, i in enumerate(indices):
        box, text = ax.patches[lane], ax.texts[lane].get_position()
        bank, turn = int(box.get_x()), round(-box.get_y())
        assert bank == 4 * i // bank_bytes % 32 and 1 <= turn <= needed
        assert box.get_x() < text[0] < box.get_x() + box.get_width() and box.get_y() < text[1] < box.get_y() + 0.9
        assert words.setdefault((bank, turn), 4 * i // bank_bytes) == 4 * i // bank_bytes  # a word a turn
        colour = GREEN if needed == 1 else ORANGE if turn > 1 else BLUE
        assert same_color(box.get_facecolor(), colour)
    assert len(ax.patches) == 32 and max(turn for _, turn in words) == needed
    assert len(words) == len({4 * i // bank_bytes for i in indices})


@pytest.mark.parametrize("chip", (model.K40M, model.H200), ids=lambda chip: chip.name)
@pytest.mark.parametrize("of_a_group", [(256, 117, 17408), (1024, 30, 8192), (64, 255, 0), (1024, 200, 0), (32, 8, 1)])
def test_occupancy_draws_the_groups_that_fit(chip, of_a_group):
    picture = hardware.occupancy(chip, *of_a_group)
    (ax,) = picture.axes
    fits = model.occupancy(chip, *of_a_group)
    least = min(fits.values())
    said = re.fullmatch(r"(.*): (\d+) work-groups? at once, (\d+) of 64 warps; limited by (.*)", picture.alt)
    assert said[1] == chip.name and int(said[2]) == least and int(said[3]) == least * of_a_group[0] // 32
    assert set(said[4].split(" and ")) == {name for name, most in fits.items() if most == least}
    assert [t.get_text() for t in ax.get_yticklabels()] == list(fits)
    texts = [t.get_text() for t in ax.texts]
    assert [text for text in texts if text.startswith("room")] == [f"room for {most}" for most in fits.values()]
    assert texts.count("not even one fits") == list(fits.values()).count(0)
    for row, most in enumerate(fits.values()):
        boxes = [p for p in ax.patches if p.get_fill() and round(p.get_y() + row + 0.8, 6) == 0]
        assert len(boxes) == least
        assert all(same_color(p.get_facecolor(), ORANGE if most == least else BLUE) for p in boxes)
        assert all(p.get_x() + p.get_width() <= 1 for p in boxes)
    assert len(ax.patches) == 4 * (least + 1)  # a frame each


@pytest.mark.parametrize(
    ("schedule", "end", "busy"),
    [
        ((4, 3, 2), 20, 40),
        ((4, 3, 2, 2), 14, 57),
        ((4, 3, 2, 1, 3), 27, 89),
        ((3, 1, 1, 2, 2), 7, 86),
        ((1, 1, 3), 4, 75),
    ],
)
def test_a_time_line_draws_each_tile(schedule, end, busy):
    picture = hardware.timeline(*schedule)
    (ax,) = picture.axes
    spans = model.timeline(*schedule)
    buffers, groups = (*schedule, 1, 1)[3:5] if len(schedule) < 5 else schedule[3:]
    who = f"{groups} work-group{'s'[: groups > 1]}, {buffers} buffer{'s'[: buffers > 1]}"
    assert picture.alt == f"{who}: done after {end}, computing {busy}% of the time"
    assert max(span.end for span in spans) == end
    drawn = {(p.get_x(), round(-p.get_y() - 0.9), p.get_width(), same_color(p.get_facecolor()[:3], GREEN))
             for p in ax.patches}  # fmt: skip
    want = {(s.start, 2 * s.group + (s.what == "compute"), s.end - s.start, s.what == "compute") for s in spans}
    assert drawn == want and len(ax.patches) == len(spans)
    assert sorted(int(t.get_text()) for t in ax.texts) == sorted(span.tile for span in spans)
    labels = [t.get_text() for t in ax.get_yticklabels()]
    assert len(labels) == 2 * groups and labels[0].startswith("load") and labels[-1].startswith("compute")


# Charts


def test_lines_draw_and_say_their_values():
    series = {"here": {8: 1234.4, 4: 56.78, 32: 99.94}, "NVIDIA H200": {4: 1366.6, 16: 100.0}}
    picture = plot.lines(series, "TS", title="a sweep")
    said = "here: 8 1,234, 4 56.8, 32 99.9; NVIDIA H200: 4 1,367, 16 100"
    assert picture.alt == f"GFLOPS by TS. {said}"
    (ax,) = picture.axes
    places = {4: 0, 8: 1, 16: 2, 32: 3}  # evenly spaced, in order
    for line, (name, values) in zip(ax.lines, series.items(), strict=True):
        assert line.get_label() == name
        assert list(line.get_xdata()) == [places[x] for x in values]
        assert list(line.get_ydata()) == list(values.values())
    assert [t.get_text() for t in ax.get_xticklabels()] == ["4", "8", "16", "32"]
    assert [t.get_text() for t in ax.texts] == ["1,234", "56.8", "99.9", "1,367", "100"]
    assert ax.get_xlabel().startswith("TS") and ax.get_ylabel() == "GFLOPS"
    assert "a sweep" in ax.get_xlabel() + ax.get_title()
    assert plot.lines({"a": {1: 2.0}}, "x", "GB/s").alt == "GB/s by x. a: 1 2.0"


def test_many_sizes_lie_on_a_scale_so_that_two_records_can_be_compared():
    """Evenly spaced, a rate at 1021 looked as if it were one at 1020."""
    ours, theirs = ({s: 1.0 for s in range(1000, 1100, step)} for step in (7, 8))
    line, other = plot.lines({"ours": ours, "theirs": theirs}, "size").axes[0].lines
    assert list(line.get_xdata()) == list(ours) and list(other.get_xdata()) == list(theirs)


def test_curves_that_differ_much_have_axes_of_their_own():
    """The learner's first; a device looks the same in every chart, however many others there are."""
    series = {"here": {4: 3.0, 8: 30.0}, "NVIDIA H200 at 4096": {4: 1000.0, 8: 7000.0}, "twice": {4: 5.0, 8: 20.0}}
    mine, theirs = plot.lines(series, "TS").axes
    assert [line.get_label() for line in mine.lines] == ["here", "twice"]
    assert [line.get_label() for line in theirs.lines] == ["NVIDIA H200 at 4096"]
    assert mine.get_ylim()[0] == theirs.get_ylim()[0] == 0
    alone, (ladder,) = plot.lines({"NVIDIA H200": {1: 2.0}}, "x").axes[0].lines[0], plot.ladder(BOTH).axes
    assert alone.get_color() == theirs.lines[0].get_color() == ladder.lines[1].get_color() == BLUE
    assert mine.lines[0].get_color() == ladder.lines[0].get_color() == GREEN != mine.lines[1].get_color()
    two = plot.lines({"kernel 7, H200": {8: 1.0}, "kernel 9, H200": {8: 2.0}}, "TSK").axes[0].lines
    assert two[0].get_color() != two[1].get_color()


@pytest.mark.parametrize("title", sweeps.CURVES)
def test_the_recorded_sweeps_can_be_drawn(title):
    picture = plot.lines(sweeps.curve(title), sweeps.CURVES[title][1])
    values = sweeps.recorded()["curves"][title]
    assert "NVIDIA H200" in picture.alt
    assert picture.alt.endswith(": " + ", ".join(f"{x} {short(y)}" for x, y in values.items()))
    (line,) = picture.axes[0].lines
    assert list(line.get_ydata()) == list(values.values())


def extents(picture: Picture, texts) -> list[Bbox]:
    """Where words stand in a picture, in its pixels; words of nothing but space are left out."""
    FigureCanvasAgg(picture).draw()
    return [text.get_window_extent() for text in texts if text.get_text().strip()]


def overlapping(found: list[Bbox]) -> list[tuple[Bbox, Bbox]]:
    """Pairs of which one covers a part of the other."""
    return [(a, b) for a, b in itertools.combinations(found, 2) if a.overlaps(b)]


def test_the_label_of_the_lowest_point_stands_above_the_axis():
    points = {"kernel 1": (0.25, 1.4), "kernel 2": (40, 1.4)}
    picture = plot.roofline(model.Peaks(200, 20), points, "a slow device")
    (ax,) = picture.axes
    labels = [box for box in extents(picture, ax.texts) if box.x1 < ax.bbox.x1]
    assert len(labels) >= 2 and all(box.y0 > ax.bbox.y0 for box in labels)


def test_a_ladder_of_all_kernels_goes_from_left_to_right():
    """In the order of the kernels, whatever the order of the rates; no word stands on another."""
    rates = {kernel: 100.0 + place for place, kernel in enumerate(reversed(in_order(catalog)))}
    picture = plot.ladder({"NVIDIA H200": rates, "K40m": {1: 3.0, 2: 4.0}})
    (ax,) = picture.axes
    places = list(ax.lines[0].get_xdata())
    assert places == sorted(places) and len(places) == len(rates)
    assert overlapping(extents(picture, [*ax.texts, *ax.get_xticklabels()])) == []


def test_the_numbers_of_a_ladder_keep_clear_of_the_marks_of_other_devices():
    mine = {1: 1.5, 3: 9.5, 6: 12.8, 9: 16.4}
    others = {"Intel": {1: 11.0, 3: 167.0, 6: 8.0, 9: 21.0}, "PoCL": {1: 2.6, 3: 19.0, 6: 5.0}}
    picture = plot.ladder({"here": mine, "NVIDIA H200": {1: 6332.0, 3: 12_600.0}, **others})
    (ax,) = picture.axes
    numbers = extents(picture, ax.texts)
    marks = [ax.transData.transform(point) for line in ax.lines for point in line.get_xydata()]
    assert len(numbers) == 6 and not any(box.contains(x, y) for box in numbers for x, y in marks)


def test_the_ways_of_treating_edges_look_the_same_in_every_chart():
    few = {way: {1: 1.0} for way in ("pad", "guard", "shift")}
    first, second = (plot.lines(series, "size").axes[0].lines for series in (few, {"AutoGEMM": {1: 1.0}, **few}))
    assert [line.get_color() for line in first] == [line.get_color() for line in second[1:]]
    assert second[0].get_color() not in {line.get_color() for line in first}


def crossed(picture) -> list[str]:
    """The numbers in the first axes through which a curve runs."""
    ax, found = picture.axes[0], []
    boxes = extents(picture, ax.texts)
    for text, box in zip(ax.texts, boxes, strict=True):
        for line in ax.lines:
            points = ax.transData.transform(line.get_xydata())
            way = np.concatenate([np.linspace(a, b, 200) for a, b in itertools.pairwise(points)])
            inside = (way[:, 0] > box.x0) & (way[:, 0] < box.x1) & (way[:, 1] > box.y0) & (way[:, 1] < box.y1)
            found += [text.get_text()] * bool(inside.any())
    return found


def test_no_curve_runs_through_its_numbers():
    """Not where it falls to a pit, nor where it rises steeply beside another one."""
    pits = {112: 6.8, 127: 8.5, 128: 11.6, 129: 3.9, 144: 4.7, 191: 9.2, 192: 11.7, 193: 5.7}
    assert crossed(plot.lines({"here": pits}, "size")) == []
    slow = {3: 12_633.0, 4: 12_500.0, 5: 12_335.0, 6: 35_893.0, 7: 36_184.0}
    fast = {3: 20_528.0, 4: 20_000.0, 5: 19_717.0, 6: 35_058.0, 7: 36_091.0}
    assert crossed(plot.lines({"one": slow, "another": fast}, "kernel")) == []


def test_the_names_below_the_kernels_of_a_chart_stand_apart():
    for kernel in (3, "warp_tiling"):
        picture = plot.tries(TRIES, {1: 12.0, kernel: 9.0}, kernel)
        found = extents(picture, [*picture.axes[1].get_xticklabels(), *picture.axes[1].texts])
        assert overlapping(found) == [] and all(box.x0 >= 0 and box.x1 <= picture.bbox.width for box in found)


def test_a_number_of_the_waterfall_is_not_crossed_by_a_line():
    rates = {"one": 44_000.0, "two": 64_600.0, "three": 110_000.0}
    picture = waterfall(rates, yardsticks={"a library": 50_700.0})
    numbers = extents(picture, [text for text in picture.axes[0].texts if text.get_text()[:1].isdigit()])
    dashed = [line.get_window_extent().x0 for line in picture.axes[0].lines if line.get_linestyle() == "--"]
    assert len(numbers) == 3 and len(dashed) == 2
    assert not any(box.x0 < x < box.x1 for box in numbers for x in dashed)


RUNS = {
    "1000": {"transpose": 1.0, "pad": 2.0, "gemm": 6.0, "unpad": 1.0},
    "1024": {"transpose": 1.0, "gemm": 19.0},
}


def bars(picture):
    """The bars of each row, as (left, width, colour)."""
    rows = {}
    for bar in picture.axes[0].patches:
        row = round(-(bar.get_y() + bar.get_height() / 2))
        rows.setdefault(row, []).append((bar.get_x(), bar.get_width(), bar.get_facecolor()))
    return [rows[i] for i in range(len(rows))]


def test_shares_draw_and_say_the_percentages():
    picture = plot.shares(RUNS)
    assert picture.alt == "Shares of the time by pass. 1000: gemm 60%; 1024: gemm 95%"
    first, second = bars(picture)
    assert [round(width, 6) for _, width, _ in first] == [10, 20, 60, 10]
    assert [round(width, 6) for _, width, _ in second] == [5, 95]
    for row in (first, second):  # one after the other, and all of it
        assert np.allclose(np.cumsum([width for _, width, _ in row])[:-1], [left for left, _, _ in row][1:])
        assert row[0][0] == 0 and sum(width for _, width, _ in row) == pytest.approx(100)
    assert first[0][2] == second[0][2] and first[2][2] == second[1][2]  # a pass keeps its colour
    assert len({face for _, _, face in first}) == 4
    (ax,) = picture.axes
    assert [t.get_text() for t in ax.texts] == ["10 %", "20 %", "60 %", "10 %", "95 %"]  # 5 % have no room
    assert [t.get_text() for t in ax.get_yticklabels()] == ["1000", "1024"]
    assert [t.get_text() for t in ax.get_legend().get_texts()] == list(RUNS["1000"])


def test_the_legend_of_shares_names_every_pass():
    """Also those that the first run does not have."""
    picture = plot.shares(dict(reversed(RUNS.items())))
    assert {t.get_text() for t in picture.axes[0].get_legend().get_texts()} == set(RUNS["1000"])


def test_every_try_is_a_group_that_can_be_clicked():
    """Also a refused one, and only the last twenty; the axis begins at 0."""
    history = [plot.Try({"TS": 8}, None if i % 7 == 3 else 5.0 + i, i % 7 != 3) for i in range(30)]
    picture = plot.tries(history, {3: 20.0, 4: 8.0}, 3)
    assert all(ax.get_ylim()[0] == 0 for ax in picture.axes)
    svg = picture.svg()
    assert [i for i in range(30) if f'id="try-{i}"' in svg] == list(range(10, 30))


def test_the_number_of_the_last_try_is_not_crossed_by_a_line():
    """The best rate, or the original's, may be a little above it."""
    for rate, original in ((8.7, None), (9.9, None), (15.8, 17.0), (10.0, 10.5)):
        history = [plot.Try({"TS": 8}, 10.0, True), plot.Try({"TS": 16}, rate, True)]
        picture = plot.tries(history, {}, 3, original)
        ax = picture.axes[0]
        (number,) = extents(picture, [text for text in ax.texts if text.get_text() == short(rate)])
        lines = [rate for rate in (max(10.0, rate), original) if rate]
        heights = [ax.transData.transform((1, line))[1] for line in lines]
        assert not any(number.y0 < y < number.y1 for y in heights), (rate, original)
        assert number.y0 > ax.get_window_extent().y0, "above the axis"


# Any picture

BOTH = {"here": {1: 10.0, 2: 25.0, 3: 150.0}, "NVIDIA H200": {1: 6399.8, 2: 7102.8}}


def test_a_wrong_try_is_shown_but_sets_no_scale():
    history = [plot.Try({"TS": 8}, 5000.0, False), plot.Try({"TS": 8}, 4.0, True)]
    for shown, highest in ((history, 4.0), (history[:1], 6.0)):
        ax = plot.tries(shown, {}, 1, original=None if len(shown) > 1 else 6.0).axes[0]
        assert ax.get_ylim()[1] == pytest.approx(1.25 * highest)
        assert all(0 < y <= ax.get_ylim()[1] for line in ax.lines for y in line.get_ydata())


def slow_and_fast(rate: float) -> Picture:
    """Two tries at about a rate, beside the original's: the numbers at the axis are as wide as they can be."""
    return plot.tries([plot.Try({"TS": 8}, rate, True), plot.Try({"TS": 8}, 0.7 * rate, True)],
                      {1: rate, 2: 0.9 * rate}, 1, original=0.6 * rate)  # fmt: skip


TRIES = [plot.Try({"TS": 8, "M": 64}, *found) for found in ((10.0, True), (12.0, False), (None, False))]
#: GFLOPS of the slowest and the fastest machines that one can think of.
RATES = (1e-5, 3e-4, 0.0123, 9999, 123456, 3e6)
#: One of each kind, with the largest that the chapters might ask for.
PICTURES = {
    "layout": lambda: diagram.layout(),
    "layout of many": lambda: diagram.layout(8, 10),
    "access": lambda: diagram.access(WARPS[0][0]),
    "fetches": lambda: diagram.fetches(ran(10)),
    "fetches of many": lambda: diagram.fetches(simulate(2, 24, 24, 24, {"TS": 8})),
    "transposing": lambda: diagram.transposing(diagram.transposed(32, 64, 32)),
    "transposing straight": lambda: diagram.transposing(diagram.transposed(64, 64, 16, False)),
    "banks": lambda: hardware.banks(range(0, 32 * 16, 16)),
    "banks of 8 bytes": lambda: hardware.banks(range(0, 32 * 17, 17), 8, "Kernel 5: "),
    "occupancy": lambda: hardware.occupancy(model.H200, 256, 117, 17408),
    "occupancy of none": lambda: hardware.occupancy(model.K40M, 256, 300, 0),
    "occupancy of many": lambda: hardware.occupancy(model.H200, 32, 16, 0),
    "timeline": lambda: hardware.timeline(8, 3, 2, 2, 4),
    "timeline of many": lambda: hardware.timeline(32, 3, 2, 1, 4),
    "roofline": lambda: plot.roofline(model.Peaks(60000, 4000), {"kernel 1": (0.25, 900), "7": (32, 3e4)}, "a GPU"),
    "ladder": lambda: plot.ladder(BOTH),
    "tries": lambda: plot.tries(TRIES, {1: 12.0}, 1, original=5.0),
    **{f"tries at {rate} GFLOPS": lambda rate=rate: slow_and_fast(rate) for rate in RATES},
    "no tries": lambda: plot.tries([], {}, 1),
    "lines": lambda: plot.lines(BOTH, "WPT"),
    "ranges": lambda: plot.ranges({"on": (900.0, 850.0, 920.0), "off": (70.0, 60.0, 75.0)}, 1000.0, ["on"]),
    "lines of many": lambda: plot.lines({"a": {x: x + 1.0 for x in range(300)}}, "size"),
    "shares": lambda: plot.shares(RUNS),
    **{f"replay {n}": lambda n=n: replay.Replay(ran(n)).picture(4, 1) for n in SMALL},
    "replay of many": lambda: replay.Replay(simulate(2, 32, 32, 32, {"TS": 16})).picture(1, 5),
}


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_can_be_shown(name):
    """As an SVG for widgets: small, in the page's own colour, with its words; and as a PNG for notebooks."""
    picture = PICTURES[name]()
    assert isinstance(picture, Picture) and len(picture.alt) > 20
    svg = picture.svg()
    assert len(svg.encode()) < 150_000
    root = ElementTree.fromstring(svg)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert root.get("role") == "img" and root.get("aria-label") == picture.alt
    assert INK not in svg and "var(--jp-content-font-color1" in svg
    assert "<style" not in svg and "<metadata" not in svg and "\ufffd" not in svg
    assert len(list(root.iter("{http://www.w3.org/2000/svg}path"))) > 1
    png = picture.png()
    assert png.startswith(b"\x89PNG\r\n\x1a\n") and len(png) < 150_000
    image = Image.open(io.BytesIO(png)).convert("RGBA")
    assert image.size == tuple(int(inches * 130) for inches in picture.get_size_inches())
    low, high = image.getchannel("A").getextrema()
    assert low == 0 and high > 200  # on any ground, and something is on it


@pytest.mark.parametrize("name", PICTURES)
def test_no_word_leaves_a_picture(name):
    picture = PICTURES[name]()
    canvas = FigureCanvasAgg(picture)
    canvas.draw()
    width = picture.bbox.width
    spans = {
        text.get_text(): text.get_window_extent(canvas.get_renderer()).intervalx
        for text in picture.findobj(Text)
        if text.get_text() and text.get_visible()
    }  # with marks of an axis beyond its ends, which are not drawn
    drawn = {words: span for words, span in spans.items() if span[0] < width and span[1] > 0}
    assert drawn and {words: span for words, span in drawn.items() if span[0] < -1 or span[1] > width + 1} == {}


@pytest.mark.parametrize("name", ("banks", "replay 6", "lines"))
def test_a_picture_is_the_same_each_time(name):
    """Or a stored notebook would change whenever it is run."""
    assert PICTURES[name]().svg() == PICTURES[name]().svg()
    assert PICTURES[name]().png() == PICTURES[name]().png()


def test_words_for_the_blind_may_hold_any_sign():
    alt = 'a < b & "c" > d, 3 × 4'
    assert ElementTree.fromstring(Picture(2, 1, alt).svg()).get("aria-label") == alt


def test_a_notebook_gets_a_png_and_the_words():
    picture = PICTURES["banks"]()
    data, size = picture._repr_mimebundle_()
    assert data["image/png"].startswith(b"\x89PNG") and data["text/plain"] == f"[picture: {picture.alt}]"
    width, height = picture.get_size_inches()
    assert size == {"image/png": {"width": round(92 * width), "height": round(92 * height), "alt": picture.alt}}


def test_numbers_in_words():
    assert [count(n, "turn") for n in (0, 1, 2)] == ["0 turns", "1 turn", "2 turns"]
    assert [short(x) for x in (0.04, 9.96, 99.94, 100, 12345.6)] == ["0.04", "10.0", "99.9", "100", "12,346"]


@pytest.mark.parametrize("rates", [(3.0,) * 7 + (4.0,), (4.0,) + (3.0,) * 15, tuple(range(1, 17))])
def test_the_name_of_the_best_try_and_the_number_of_the_latest_stand_apart(rates):
    picture = plot.tries([plot.Try({"TS": 8}, float(rate), True) for rate in rates], {3: max(rates)}, 3)
    picture.canvas.draw()
    places = [text.get_window_extent() for text in picture.axes[0].texts if "." in text.get_text()]
    assert len(places) == 2 and not places[0].overlaps(places[1])

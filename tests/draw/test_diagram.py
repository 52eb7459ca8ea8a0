"""Pictures of simulated runs: what they say is what the run did, in the colours of its arrays."""

from collections import Counter
from functools import cache

import pytest
from conftest import in_part
from matplotlib.colors import to_hex
from matplotlib.patches import PathPatch
from texts import SMALL

from clscope import views
from gemmlab import catalog, simulate
from gemmlab.draw import diagram, replay
from gemmlab.draw.picture import INK, RED
from gemmlab.ladder import sources
from pictures import assert_can_be_shown


@cache
def ran(kernel):
    """A product of several tiles: two groups, and two tiles along K."""
    spec, params = catalog[kernel], catalog[kernel].complete(SMALL[kernel])
    rows, cols, depth = spec.tiles(params)
    return simulate(kernel, 2 * rows, cols, 2 * depth, params)


# A run, step by step


def coloured(picture) -> Counter:
    """How many squares have the colour of a present access, by colour."""
    found: Counter = Counter()
    for patch in picture.axes[0].patches:
        *colour, opacity = patch.get_facecolor()
        if isinstance(patch, PathPatch) and opacity >= replay.GROUP and to_hex(colour) != INK:
            corners = patch.get_path().vertices.reshape(-1, 5, 2)
            found[to_hex(colour)] += round(sum(corners[:, 2, 1] - corners[:, 1, 1]))
    return found


@pytest.mark.parametrize("kernel", in_part(range(1, 12), 3))
def test_a_replay_colours_what_a_step_touches(kernel):
    r = ran(kernel)
    film = replay.Replay(r, group=int(r.table["group"].max()))
    for number, step in list(enumerate(film.steps, 1))[::3]:
        wanted: Counter = Counter()
        for name in ("A", "B", "C", *r.shapes):
            wanted[diagram.COLOURS[name]] += len(views.places(step.entries, name))
        assert coloured(film.picture(number, 1)) == +wanted, step
        assert f"Step {number} of {len(film.steps)}" in film.words(number, 1)


def test_the_element_of_a_race_is_crossed_out():
    source = sources.read("02_tiled.cl").replace("barrier(CLK_LOCAL_MEM_FENCE);", "", 1)
    r = simulate(2, 8, 8, 8, {"TS": 4}, source)
    (race,) = (f for f in r.findings if f.kind == "race" and f.array == "Atile")
    film = replay.Replay(r)
    for number, step in enumerate(film.steps, 1):
        found = any(race.element in views.places(step.entries, name) for name in r.shapes)
        crosses = [line for line in film.picture(number).axes[0].lines if line.get_color() == RED]
        assert found == bool(crosses), step


def test_a_replay_ends_where_the_kernel_had_to_stop():
    source = sources.read("02_tiled.cl").replace("Atile[k][tm]", "Atile[k + 1][tm]")
    r = simulate(2, 8, 8, 8, {"TS": 4}, source)
    film = replay.Replay(r)
    assert r.stop and film.steps[-1].line == r.stop.line
    assert r.stop.message in film.words(len(film.steps))
    assert film.picture(len(film.steps)).svg()


# Accesses and fetches


def test_the_lesson_on_coalescing_in_numbers():
    """Kernel 1: 32 neighbours of A and one element of B; with exchanged dimensions the reverse."""
    plain = simulate(1, 64, 32, 3, {"TS": 32})
    text = sources.read("01_naive.cl").replace("m = get_global_id(0)", "m = get_global_id(1)")
    text = text.replace("n = get_global_id(1)", "n = get_global_id(0)")
    exchanged = simulate(1, 32, 32, 3, {"TS": 32}, text)
    assert diagram.access_counts(plain, 0) == {"A": (32, 4), "B": (1, 1)}
    assert diagram.access_counts(exchanged, 0) == {"A": (1, 1), "B": (32, 12)}
    said = "A: 32 elements in 4 segments of 32 bytes; B: 1 element in 1 segment of 32 bytes"
    assert diagram.access(plain).alt == f"A warp at step 0. {said}"


# Each can be shown


def stream_k():
    params = {"TSM": 64, "TSN": 64, "ORDER": 1, "GROUPS": 2}
    return replay.Replay(simulate(17, 64, 64, 16, params)).picture(2)


PICTURES = {
    "layout": lambda: diagram.layout(),
    "access": lambda: diagram.access(simulate(1, 64, 32, 3, {"TS": 32})),
    "replay": lambda: replay.Replay(ran(6)).picture(4, 1),
    "replay of many": lambda: replay.Replay(simulate(2, 32, 32, 32, {"TS": 16})).picture(1, 5),
    "replay of Stream-K": stream_k,
}


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_can_be_shown(name):
    assert_can_be_shown(PICTURES[name]())

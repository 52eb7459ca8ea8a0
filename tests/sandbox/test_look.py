"""The simulator beside the device: races that a CPU hides, mistakes, and what it cannot know."""

import pytest
from texts import SMALL, edited, without_barrier

import gemmlab
from clscope.machine import Machine
from gemmlab import catalog
from gemmlab.draw.replay import Replay
from gemmlab.ladder import sources
from gemmlab.sandbox import look as module
from gemmlab.sandbox.client import simulate_small as simulate_there
from gemmlab.sandbox.look import Case, Seen, explain, look, simulate_small

RACE = without_barrier(2, 1)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("number", catalog)
def test_the_kernels_own_texts_are_clean(number):
    text = sources.read(catalog[number].file)
    assert look(Case.of(number, 100, params=SMALL.get(number), source=text), seconds=60) is None


@pytest.mark.parametrize(
    "number", [n for n in catalog if n not in (1, 11) and isinstance(n, int) and n < 15]
)
def test_every_missing_barrier_is_seen(number):
    """With the reader's own parameters, and the line of the text."""
    for which in (1,) if number in (9, 10, 13) else (1, 2):
        source = without_barrier(number, which)
        seen = look(Case.of(number, 64, params=SMALL[number], source=source))
        assert seen is not None and "no barrier between" in seen.why, number
        assert "[" in source.splitlines()[int(seen.why.split("line ")[1].split(":")[0]) - 1]


def test_of_a_text_that_cannot_be_read_that_is_said(monkeypatch):
    """Or not in time, or because of an error of the simulator's own."""

    def broken(*args, **options):
        raise KeyError("on purpose")

    calls = "__kernel void gemm(int a) { a.b(); }"
    for source in ("float f(float x) { return x; }", "__kernel void gemm(", "", "%%", calls):
        assert look(Case.of(1, 64, source=source)).unread
    whole = sources.read("production/warp_tiling.cl")
    assert look(Case.of("warp_tiling", 1024, source=whole), seconds=0.02).unread  # not even parsed
    assert look(Case.of(1, 64, 64, 1 << 16, source=edited(1))).unfinished  # of memory, or of time
    monkeypatch.setattr(module, "simulate", broken)
    assert "KeyError" in str(look(Case.of(2, 64, source=RACE)))


def test_a_text_is_blamed_only_where_its_size_shows_a_mistake():
    """A guard matters between multiples of the tile, a second barrier with two tiles along k."""
    unguarded = edited(12, ("m0 + tm < M && n0 + tn + j*RTS < N", "n0 + tn + j*RTS < N"))
    for size, found in ((64, False), (61, True)):
        seen = look(Case.of(12, size, params={"TS": 8, "WPT": 4}, source=unguarded))
        assert (seen is not None) == found
    for k, found in ((8, False), (5, False), (16, True)):
        seen = look(Case.of(2, 64, 64, k, {"TS": 8}, without_barrier(2, 2)))
        assert (seen is not None) == found


def test_a_trial_tells_a_race(any_device):
    """On PoCL the product is right, by luck; another runtime may show what the race does."""
    outcome = gemmlab.trial(2, 64, params={"TS": 8}, source=RACE, repeats=1)
    assert not outcome.ok and "no barrier between" in outcome.verdict and outcome.seen
    assert outcome.state == ("luck" if outcome.result.ok else "wrong")
    if outcome.result.ok:
        assert outcome.verdict.startswith("wrong, but right here by luck: line ")
    assert outcome.verdict in str(outcome)


OTHER_ROW = ("m0 = get_group_id(0)", "m0 = get_group_id(1)")
OTHER_COLUMN = ("n0 = get_group_id(1)", "n0 = get_group_id(0)")


@pytest.mark.parametrize(
    ("edits", "sizes", "words"),
    [
        ((("k < TS; k++", "k <= TS; k++"),), (64, 64, 64), "must be 0 to 7"),
        # one tile of C does not show it, and a square of them not that groups are exchanged
        ((OTHER_ROW,), (64, 32, 32), ""),
        ((OTHER_ROW, OTHER_COLUMN), (64, 32, 32), ""),
    ],
)
def test_a_wrong_kernel_is_explained(edits, sizes, words, any_device):
    options = {"params": {"TS": 8}, "repeats": 1}
    outcome = gemmlab.trial(2, *sizes, **options, source=edited(2, *edits))
    assert not outcome.ok and outcome.seen and not outcome.seen.unread, outcome.verdict
    assert words in outcome.verdict and (not words or "line " in outcome.verdict)
    outcome = gemmlab.trial(2, *sizes, **options, source=edited(2))
    assert outcome.ok and outcome.seen is None and outcome.verdict == "right: every element exact"


#: Valid, unknown to the simulator, and in a text with a race.
UNREAD = "int unread = 0; switch (unread) { case 5: if (unread) { case 1: unread = 2; } }"


def test_what_the_simulator_could_not_read_is_never_called_free_of_races(any_device):
    source = RACE.replace("    for (int", f"    {UNREAD}\n    for (int", 1)
    assert source != RACE
    outcome = gemmlab.trial(2, 64, params={"TS": 8}, source=source, repeats=1)
    assert outcome.seen.unread and outcome.state != "luck"
    assert "not known to this simulator" in outcome.verdict


def test_a_run_of_the_child_is_the_same_run(any_device):
    here, there = simulate_small(9), simulate_there(9, {})
    assert there.verdict == here.verdict and there.counts == here.counts
    assert (there.table == here.table).all() and (there.c == here.c).all()
    one, other = Replay(here), Replay(there)
    assert [step.counts for step in other.steps] == [step.counts for step in one.steps]
    assert other.words(len(one.steps), 1) == one.words(len(one.steps), 1)


def test_no_text_of_the_reader_is_simulated_in_this_process(any_device, monkeypatch):
    """Not for a cell's stepper, and not for what is said of a text that hangs the device."""

    def here(*args, **options):
        raise AssertionError("simulated in the notebook's own process")

    monkeypatch.setattr(Machine, "run", here)
    assert "no barrier between" in simulate_there(2, {"TS": 8}, RACE).verdict
    with pytest.raises(RuntimeError, match="expected ';'"):
        simulate_there(2, {"TS": 8}, RACE.replace("float acc = 0.0f;", "float acc = 0.0f"))
    endless = edited(1, ("k < K; k++", "k < K && M; k += (M < 0)"))
    outcome = gemmlab.trial(1, 64, source=endless)
    assert outcome.kind == "Refused" and "line " in outcome.verdict


def test_a_wrong_product_of_a_right_kernel_points_to_the_compiler():
    """Unless a smaller product shows a mistake, or one was seen before."""
    right = Case.of(2, 64, params={"TS": 8}, source=edited(2))
    explanation = explain(right, None, (3, 5))
    assert explanation.right == "C(3, 5)" and "compiler" in str(explanation)
    race = explain(Case.of(2, 64, params={"TS": 8}, source=RACE), None, (3, 5))
    assert "no barrier between" in str(race) and not race.right
    before = Seen(why="line 3: a mistake", count=1)
    assert explain(right, before, (3, 5)) is before
    assert explain(right, None, None) is None

"""What an explorer does with each message, and what it then shows: nothing is compiled or drawn."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from gemmlab import catalog, model
from gemmlab.ladder import sources
from gemmlab.measurement.comparison import BUDGET, Comparison
from gemmlab.measurement.landscape import landscapes
from gemmlab.measurement.records import Result
from gemmlab.measurement.rungs import Allowed
from gemmlab.sandbox.client import Outcome
from gemmlab.sandbox.look import Seen
from gemmlab.widgets import state as states
from gemmlab.widgets import tries, view
from gemmlab.widgets.browser import Browser
from gemmlab.widgets.state import (
    Answered,
    DeviceChosen,
    Learn,
    Learned,
    Measure,
    Moved,
    Neared,
    Placed,
    Prolonged,
    Released,
    Save,
    Settled,
    State,
    Stepped,
    Topic,
    TryOpened,
    Wait,
    reduce,
)

TEXT = sources.read("03_work_per_thread.cl")
START = {"TS": 32, "WPT": 8, "M": 64, "N": 64, "K": 64}
WHY = "WPT moved from 8 to 4, because TS=20 is not a multiple of WPT=8"


class Play:
    """A state, the messages sent to it, and the effects that they had."""

    def __init__(self, device, source=None, edited=False, start=START):
        found = None if source else next(one for one in landscapes() if one.rows(3))
        topic = Topic(catalog[3], source, TEXT, edited, source or "", found)
        self.state = State.begin(topic, device, start, start)
        self.effects = []

    def send(self, *messages):
        for message in messages:
            self.state, effects = reduce(self.state, message)
            self.effects += effects
        return self

    def did(self, kind) -> list:
        return [effect for effect in self.effects if isinstance(effect, kind)]

    @property
    def request(self) -> dict:
        return self.did(Measure)[-1].request

    def settle(self):
        return self.send(Settled(self.state.moves))

    def measure(self, gflops=2.0, ratio=None, **settings):
        return self.send(Placed(START | settings)).answer(gflops, ratio=ratio)

    def answer(self, gflops=2.0, ok=True, ratio=None, spread=0.0, request=None, problem=""):
        """Answer with a rate, and how it compares with the reference; or with a problem."""
        request = request or self.request
        if problem:
            return self.send(Answered(Outcome(request, problem=problem, kind="hang")))
        sizes = {size: request[size] for size in "mnk"}
        ms = (2 * request["m"] * request["n"] * request["k"] / gflops * 1e-6,) * 3
        result = Result(
            kernel=3, params=request["params"], **sizes, ok=ok, error=0.0, bound=0.0,
            verdict="right: every element exact" if ok else "wrong: one element",
            kernel_ms=ms, pipeline_ms=ms, passes_ms={}, repeats=11, build_seconds=0.1,
            path="plain", device={"device": "made up", "kind": "CPU"},
        )  # fmt: skip
        rate = (0.9 * gflops, gflops, 1.1 * gflops)
        beside = tuple(x / ratio[1] for x in rate) if ratio else None
        compared = Comparison(rate, spread, ratio, beside) if ok else None
        return self.send(Answered(Outcome(request, result, compared=compared)))

    @property
    def view(self) -> SimpleNamespace:
        """What is shown, and whether it is dim."""
        shown = view.render(self.state)
        unclear = bool(shown["buttons"]["rate"])
        stale = view.status(self.state)["stale"]
        return SimpleNamespace(**shown["parts"], stale=stale, unclear=unclear)


@pytest.fixture
def play(any_device):
    return Play(any_device).measure()


def requested(play) -> dict[str, int]:
    request = play.request
    return {**request["params"], **{size: request[size.lower()] for size in "MNK"}}


def test_a_move_is_measured_once_it_has_settled_and_is_not_held(play):
    play.send(Moved("TS", 16))
    assert play.state.stale and isinstance(play.effects[-1], Wait)
    play.send(Settled(play.state.moves - 1))
    assert len(play.did(Measure)) == 1, "another move has come since"
    play.send(Moved("TS", 16, held=True)).settle()
    assert len(play.did(Measure)) == 1
    play.send(Released()).settle()
    assert requested(play) == START | {"TS": 16}
    play.settle()
    assert len(play.did(Measure)) == 2, "measured once"


def test_an_answer_to_older_settings_leaves_the_panel_dim(play):
    first = play.send(Moved("TS", 16)).settle().request
    play.send(Moved("TS", 24)).settle()
    play.answer(request=first)
    assert 'data-key="TS=16' in play.view.answer and play.view.stale
    play.answer(3.0, ratio=(1.4, 1.5, 1.6))
    assert 'data-key="TS=24' in play.view.answer and not play.view.stale
    assert "2.70–3.30" in play.view.answer and "1.50 × your start (1.40–1.60)" in play.view.answer
    assert view.status(play.state)["words"] == "" and "24 x 3 = 72" in play.view.details


def test_a_step_changes_the_status_alone(play):
    play.send(Placed(START | {"TS": 16}))
    before = play.view
    play.send(Stepped("compile", play.request))
    assert view.status(play.state)["words"] == "compiling" and play.view == before
    play.send(Stepped("predict", play.request))
    assert "compile" in view.status(play.state)["words"], "PoCL compiles at the first launch"
    play.send(Stepped("compile", play.request), Stepped("check", {}))
    assert view.status(play.state)["words"] == "compiling", "the step of another request"


def test_the_verdict_is_shown_before_the_rate(play):
    """As soon as the check has passed; not where the simulator has seen a mistake."""
    play.send(Placed(START | {"TS": 16}), Stepped("check", play.request))
    older = play.view.answer
    assert "gemmlab-judged" not in older
    play.send(Stepped("time", play.request))
    assert "✔" in play.view.answer.partition("data-key")[0] and play.view.stale
    play.answer(3.0)
    assert "gemmlab-judged" not in play.view.answer and "3.00" in play.view.answer
    play.send(
        Placed(START), Stepped(Seen("a race", 1), play.request), Stepped("time", play.request)
    )
    assert "gemmlab-judged" not in play.view.answer


def test_what_gave_way_is_named_until_the_next_move(play):
    """Also after a drag over several stops: the reasons are those between its start and its end."""
    for value in (24, 20, 16, 20):
        play.send(Moved("TS", value))
    assert play.state.values["WPT"] == 4 and WHY in play.view.note
    play.send(Moved("TS", 24))
    assert play.state.values["WPT"] == 8 and play.state.notes == (), "legal again where it was"
    play.send(Moved("TS", 20)).settle().answer()
    assert requested(play) == START | {"TS": 20, "WPT": 4} and WHY in play.view.note
    play.send(Moved("M", 100))
    assert play.state.notes == () and play.state.values["N"] == 100, "N and K follow M"
    play.send(Moved("K", 32), Moved("M", 64))
    assert [play.state.values[size] for size in "MNK"] == [64, 100, 32], "no longer equal"


def test_nothing_is_compared_with_itself_or_with_what_never_was_right(any_device):
    play = Play(any_device).send(Placed(START))
    assert play.request["reference"] is None
    play.answer(ok=False).send(Placed(START | {"TS": 16}))
    assert play.request["reference"] is None
    play.measure().send(Placed(START | {"TS": 16}))
    assert "This is your start" in play.view.answer
    assert play.request["reference"]["params"] == {"TS": 32, "WPT": 8}


@pytest.mark.parametrize("ratio", [(0.5, 1.5, 3.0), (0.99, 1.0, 1.01), (1.01, 1.5, 2.0)])
def test_where_no_difference_was_shown_there_is_no_ratio(play, ratio):
    play.measure(3.0, ratio, TS=16)
    assert "×" not in play.view.answer and play.view.unclear
    assert ("within 2 %" in play.view.answer) == (ratio[2] < 1.02)


def test_map_and_verdict_do_not_contradict_each_other(play):
    """The start took 2 GFLOPS at a busy moment; beside the new try it is twice as fast as that."""
    play.measure(3.0, (0.4, 0.5, 0.6), TS=16)
    rates = {one.settings["TS"]: one.rate[1] for one in play.state.tries}
    assert rates == {START["TS"]: pytest.approx(6.0), 16: 3.0}
    assert tries.best(play.state.tries).settings["TS"] == START["TS"]


def test_a_busy_machine_is_named_and_can_be_measured_longer(play):
    play.send(Placed(START | {"TS": 16})).answer(3.0, ratio=(0.5, 1.5, 3.0), spread=0.5)
    rate = play.view.answer.partition("GFLOPS")[2].partition("</div>")[0]
    assert "runs differ by 50 %" in rate and "busy" in rate, "beside the rate"
    assert play.view.note.count("busy") == 0 and play.view.unclear
    assert "difference" not in play.view.answer, "noise shows neither equality nor difference"
    play.send(Prolonged())
    assert requested(play)["TS"] == 16
    assert play.request["budget"] == states.LONGER * BUDGET and not play.view.unclear


def test_the_last_right_result_of_the_same_product_is_a_ghost(play):
    """Not a wrong one, nor one of another size, nor one in the same way."""
    assert "before" not in play.view.answer
    play.measure(3.0, TS=16)
    assert "before 2.00" in play.view.answer and "<em " in play.view.answer
    play.send(Placed(START)).answer(ok=False).measure(5.0, M=32).measure(4.0, TS=16)
    assert "before 2.00" in play.view.answer


def test_the_peak_and_the_ceiling_arrive_after_the_answer(play):
    """Each is looked for once, and what cannot be found out is missing."""
    (question,) = play.did(Learn)
    assert question.request["texts"][0]["gflops"] > 1000
    assert "of the peak" not in play.view.answer and "allows" not in play.view.recorded
    play.send(Learned(question, 8.0, [Allowed(26_800.0, "local memory")]))
    assert "25 % of the peak, 8.00" in play.view.answer
    assert "local memory allows 40 %" in play.view.recorded
    play.measure(9.0)
    assert len(play.did(Learn)) == 1
    assert "above the measured peak" in play.view.answer, "no share above all there is"
    play.measure(9.0, TS=16).send(Learned(play.did(Learn)[-1], None, [None]))
    assert "% of the peak" in play.view.recorded and "allows" not in play.view.recorded


def test_an_edited_text_is_compared_with_the_original_here_and_on_an_h200(any_device):
    play = Play(any_device, TEXT.replace("acc[j] +=", "acc[j] = acc[j] +"), edited=True)
    play.send(Placed(START))
    assert play.request["reference"]["source"] is None
    play.answer(3.0, ratio=(1.1, 1.2, 1.3))
    assert "1.20 × the original (1.10–1.30)" in play.view.answer and view.ceiling(play.state) == ""
    (question,) = play.did(Learn)
    assert [text["source"] == TEXT for text in question.request["texts"]] == [False, True]
    ceilings = [Allowed(rate, "local memory") for rate in (20_000.0, 26_800.0)]
    play.send(Learned(question, None, ceilings))
    for words in ("the original at most 40 %", "kernel 1", "cuBLAS"):
        assert words in play.view.recorded
    assert "at most: local memory allows" in view.ceiling(play.state)
    play.send(Moved("WPT", 4))
    assert "the original at most 40 %" in play.view.recorded and "older" in play.view.recorded, (
        "dim"
    )
    play.send(Placed(START | {"WPT": 4})).answer()
    assert "gemmlab-older" in play.view.recorded, "answered, but not by the model"
    play.send(Placed(START)).answer(9.0, ok=False)
    assert 'data-state="wrong"' in play.view.answer and play.view.recorded == "", "no such promise"


def test_an_open_hole_is_an_invitation_and_no_try(any_device):
    play = Play(any_device, "// your lines", edited=True).send(Placed(START)).answer(ok=False)
    assert "Wrong" not in play.view.answer and "A hole" in play.view.answer
    assert play.state.tries == () and not play.did(Save)


def test_another_device_begins_anew_and_older_answers_are_dropped(play):
    old, page = play.send(Placed(START | {"TS": 16})).request, Browser(lambda: None)
    play.send(DeviceChosen(page, START, ()))
    assert play.state.device is page and play.state.outcome is None and play.state.tries == ()
    play.answer(request=old)
    assert play.state.outcome is None
    assert play.request["device"] is None and view.machine(page) == "this browser"


def test_the_code_of_a_try_is_compared_with_that_of_now(any_device):
    play = Play(any_device, "int now;\nint same;", edited=True)
    other = replace(tries.Try(START, (1.0, 1.0, 1.0), True), code="int then;\nint same;")
    play.send(TryOpened(other))
    assert "-int now;" in play.view.other and "+int then;" in play.view.other
    play.send(Placed(START))
    assert play.view.other == ""


def test_settings_as_code_measure_the_same(play):
    play.send(Placed(START | {"TS": 16, "N": 32}))
    code = view.as_code(play.state)
    calls = []
    gemmlab = SimpleNamespace(measure=lambda **arguments: calls.append(arguments))
    eval(code["Copy as Python"], {"gemmlab": gemmlab})
    assert calls == [{"kernel": 3, "m": 64, "n": 32, "k": 64, "params": {"TS": 16, "WPT": 8}}]
    assert code["Copy as %%gemm"] == "%%gemm 3 TS=16 WPT=8 M=64 N=32 K=64"
    assert "part='load: the next'" in view.as_code(play.state, "load: the next")["Copy as %%gemm"]


def test_tries_as_a_table_have_a_line_for_each(play):
    play.measure(3.0, TS=16).send(Placed(START)).answer(ok=False)
    names, *rows = tries.csv(play.state.tries).splitlines()
    first = dict(zip(names.split(","), rows[0].split(","), strict=True))
    assert len(rows) == 3 and first["TS"] == "32" and float(first["gflops"]) == 2.0
    assert tries.csv([]) == "\r\n"


def ceilings(ts: int) -> list[Allowed]:
    found = tuple(model.ceilings(3, {"TS": ts, "WPT": 4}, fewest=True))
    return [Allowed(20_000.0, found[0].resource, found)]


def test_the_pipes_follow_a_slider_that_is_held(play):
    """The model answers for each setting once; until then the pipes of the last one are dim."""
    (question,) = play.did(Learn)
    assert play.view.pipes == ""
    play.send(Learned(question, None, ceilings(32)))
    before = play.view.pipes
    assert "gemmlab-pipe" in before and "local memory is scarce" in before and "older" not in before
    play.send(Moved("TS", 16, held=True))
    assert before != play.view.pipes and "older" in play.view.pipes
    play.send(Moved("TS", 8, held=True), Moved("TS", 64, held=True))
    assert len(play.did(Learn)) == 2, "one question at a time"
    question = play.did(Learn)[-1]
    assert question.request["device"] is None and question.request["texts"][0]["params"]["TS"] == 16
    play.send(Learned(question, None, ceilings(16)))
    assert play.did(Learn)[-1].request["texts"][0]["params"]["TS"] == 64, "then the newest"
    play.send(Moved("TS", 16, held=True))
    assert "older" not in play.view.pipes and play.view.stale
    play.send(Moved("TS", 32, held=True))
    assert play.view.pipes == before and len(play.did(Learn)) == 3


def test_a_hand_near_a_slider_lets_the_model_answer_for_its_positions(play):
    """The nearest first, and none while something is measured."""
    play.send(Learned(play.did(Learn)[-1], 8.0, ceilings(32)))
    play.send(Neared("TS"))
    asked = []
    while play.did(Learn)[-1] is play.state.question:
        question = play.state.question
        asked.append(question.request["texts"][0]["params"]["TS"])
        play.send(Learned(question, None, ceilings(asked[-1])))
    assert {*asked[:2]} == {24, 64} and sorted([*asked, 32]) == [*play.state.options["TS"]]
    play.send(Neared("WPT"), Placed(START | {"TS": 16}))
    count = len(play.did(Learn))
    play.send(Learned(play.state.question, None, ceilings(32)))
    assert len(play.did(Learn)) == count

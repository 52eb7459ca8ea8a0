"""An explorer's logic, with a worker that answers when it is told to: no page, and nothing is
compiled.
"""

import re
import threading
import time

import pytest

from gemmlab import Result
from gemmlab.catalog import sources
from gemmlab.widgets import beside, panel
from gemmlab.widgets import explorer as explorer_module
from gemmlab.widgets.settings import in_view
from gemmlab.worker import client
from gemmlab.worker.client import LIMITS, Outcome

TEXT = sources.read("03_work_per_thread.cl")
START = {"TS": 32, "WPT": 8, "M": 64, "N": 64, "K": 64}


class Plans:
    """Keeps what is planned for the time in which nobody waits."""

    def __init__(self):
        self.plans = {}

    def plan(self, name, jobs):
        self.plans[name] = jobs

    def hold(self, reason):
        pass

    release = hold


class Desk:
    """Stands for the worker."""

    def __init__(self):
        self.limits, self.idle = LIMITS, Plans()
        self.asked, self.stopped = [], []

    def submit(self, name, arguments, done, step):
        self.asked.append((arguments, done, step))

    def stop(self, name):
        self.stopped.append(name)
        self.answer(kind="stopped", problem="stopped while running, as you asked")

    def warm(self):
        pass

    def limit(self, step, arguments):
        return self.limits[step]

    def answer(self, gflops=2.0, ok=True, which=-1, least=1.0, **problem) -> None:
        """A result with this rate, whose fastest run took `least` times as long as the median one;
        or a problem.
        """
        arguments, done, _ = self.asked[which]
        if problem:
            done(Outcome(arguments, **problem))
            return
        m, n, k = (arguments[size] for size in "mnk")
        ms = 2 * m * n * k / gflops * 1e-6
        done(
            Outcome(
                arguments,
                Result(
                    kernel=arguments["kernel"],
                    params=arguments["params"],
                    m=m,
                    n=n,
                    k=k,
                    ok=ok,
                    verdict="right: every element exact" if ok else "wrong: one element",
                    error=0.0,
                    bound=1.0,
                    kernel_ms=(ms, least * ms, ms),
                    pipeline_ms=(2 * ms,) * 3,
                    passes_ms={"gemm": ms, "pad A": ms},
                    repeats=3,
                    build_seconds=0.5,
                    path="plain",
                    device={},
                ),
            )
        )


@pytest.fixture
def desk(monkeypatch, any_device):
    made = Desk()
    monkeypatch.setattr(client, "worker", lambda: made)
    monkeypatch.setattr(explorer_module, "_memories", {})
    for known in ("_best", "_peaks", "_originals", "_allowed"):
        monkeypatch.setattr(beside, known, {})
    return made


@pytest.fixture
def explorer(desk):
    made = explorer_module.Explorer(3, m=64)
    made.set(START)
    desk.answer(2.0)
    assert soon(lambda: state(made) == "ok")
    yield made
    if made._timer:
        made._timer.cancel()


def soon(true, seconds=30) -> bool:
    end = time.monotonic() + seconds
    while not true() and time.monotonic() < end:
        time.sleep(0.005)
    return true()


def shown(explorer, what: str) -> str:
    return explorer.panel.value.partition(f'data-{what}="')[2].partition('"')[0]


def state(explorer) -> str:
    return shown(explorer, "state")


def stale(explorer) -> bool:
    return "gemmlab-stale" in explorer.answer._dom_classes


def move(explorer, name: str, value: int) -> None:
    """As a person moves a control."""
    explorer.settings.controls[name].widget.value = value


def asked(desk) -> dict[str, int]:
    """The settings of the newest request."""
    arguments = desk.asked[-1][0]
    return {**arguments["params"], **{size: arguments[size.lower()] for size in "MNK"}}


def test_a_move_dims_the_panel_at_once_and_is_measured_when_it_has_settled(explorer, desk):
    with explorer._lock:  # meanwhile nothing settles, however long this takes
        move(explorer, "TS", 24)
        assert stale(explorer) and len(desk.asked) == 1, (
            "nothing is asked before the move has settled"
        )
    assert (
        "24 x 3 = 72" in explorer._status.value and "local memory 4,608" in explorer._status.value
    )
    assert soon(lambda: len(desk.asked) == 2) and asked(desk) == START | {"TS": 24}
    assert shown(explorer, "key").startswith("TS=32 "), (
        "the old answer is still headed by its own settings"
    )
    desk.answer(3.0)
    assert soon(lambda: not stale(explorer)) and shown(explorer, "key").startswith("TS=24 ")
    assert "3.0" in explorer.panel.value and "1.5 x your start" in explorer.panel.value
    assert "24" not in explorer._status.value and "gemmlab-clock" not in explorer._status.value, (
        "nothing is pending"
    )


def test_a_wrong_result_has_no_rate_in_large_figures(explorer, desk):
    move(explorer, "TS", 24)
    assert soon(lambda: len(desk.asked) == 2)
    desk.answer(5000.0, ok=False)
    assert (
        soon(lambda: shown(explorer, "state") == "wrong")
        and "gemmlab-rate" not in explorer.panel.value
    )


def test_the_answer_is_said_before_its_chart_is_drawn(explorer, desk, monkeypatch):
    drawn = threading.Event()
    monkeypatch.setattr(panel, "chart", lambda *given: drawn.wait(30) and "the chart")
    move(explorer, "TS", 24)
    assert soon(lambda: len(desk.asked) == 2)
    desk.answer(3.0)
    assert (
        shown(explorer, "key").startswith("TS=24 ")
        and not stale(explorer)
        and explorer._chart.value != "the chart"
    )
    drawn.set()
    assert soon(lambda: explorer._chart.value == "the chart")


def test_a_chart_is_drawn_again_only_if_it_is_another_one(explorer, desk):
    """The peak is said in words only; the rate of another kernel is a new bar."""
    asked_for = []
    explorer._draw = asked_for.append
    (peak,), chart = desk.idle.plans["peaks"], desk.idle.plans["chart"]
    peak.done(Outcome({}, {"gflops": 8.0}))
    assert "25 % of this device" in explorer.panel.value and asked_for == []
    other = next(job for job in chart if job.job == "measure")
    desk.asked.append(
        (other.arguments | {"params": {}, "m": 64, "n": 64, "k": 64}, other.done, None)
    )
    desk.answer(5.0)
    ((_, best, _),) = asked_for
    assert best[other.arguments["kernel"]] == pytest.approx(5.0)


def test_the_whole_call_is_divided_into_its_passes(explorer):
    """As a bar, so that it can be said which of them takes most time."""
    assert (
        "gemm 0.26 ms (50%)" in explorer.panel.value
        and "pad A 0.26 ms (50%)" in explorer.panel.value
    )
    assert (
        explorer.panel.value.count("width:50.0%") == 2
        and "whole call 1.0 GFLOPS" in explorer.panel.value
    )


@pytest.mark.parametrize("gflops", [1e-4, 0.002, 0.04, 6.0, 5e6])
def test_every_rate_and_time_is_a_number_one_can_read(explorer, desk, gflops):
    """However slow or fast the device is: none is 0.0, and only one with many zeros has a power of
    ten.
    """
    move(explorer, "TS", 24)
    assert soon(lambda: len(desk.asked) == 2)
    desk.answer(gflops)
    assert soon(lambda: shown(explorer, "key").startswith("TS=24 "))
    said = re.sub(r"<svg.*?</svg>", "", explorer.panel.value, flags=re.S)
    numbers = re.findall(r"([\d.,e+-]+) (?:GFLOPS|ms|x your start)", said)
    assert len(numbers) >= 5 and all(float(number.replace(",", "")) > 0 for number in numbers), (
        numbers
    )
    assert not any("e+" in number for number in numbers), numbers


def test_nothing_is_measured_while_a_slider_is_held(explorer, desk):
    """Only where it is let go, and not the stops on the way."""
    explorer.bridge.held = True
    for value in (24, 20, 16, 12):
        move(explorer, "TS", value)
    time.sleep(4 * explorer_module.SETTLE)
    assert len(desk.asked) == 1
    explorer.bridge.held = False
    assert soon(lambda: len(desk.asked) == 2) and asked(desk)["TS"] == 12
    time.sleep(4 * explorer_module.SETTLE)
    assert len(desk.asked) == 2


def test_an_answer_to_older_settings_stays_dim(explorer, desk):
    move(explorer, "TS", 24)
    assert soon(lambda: len(desk.asked) == 2)
    move(explorer, "TS", 16)
    assert soon(lambda: len(desk.asked) == 3)
    desk.answer(which=-2)
    assert soon(lambda: shown(explorer, "key").startswith("TS=24 ")) and stale(explorer)
    desk.answer()
    assert soon(lambda: shown(explorer, "key").startswith("TS=16 ") and not stale(explorer))


def test_the_slider_that_gave_way_is_marked_with_the_reason_until_the_next_move(explorer, desk):
    """Also after a drag over several stops: the reasons are those between its start and its end."""
    explorer.bridge.held = True
    for value in (24, 20, 16, 20):
        move(explorer, "TS", value)
    wpt = explorer.settings.controls["WPT"]
    assert wpt.value == 4 and "gemmlab-gave-way" in wpt.box._dom_classes
    assert "WPT moved from 8 to 4, because TS=20 is not a multiple of WPT=8" in wpt._words.value
    move(explorer, "TS", 24)
    assert wpt.value == 8 and "gemmlab-gave-way" not in wpt.box._dom_classes, (
        "where it had been is legal again"
    )
    move(explorer, "TS", 20)
    explorer.bridge.held = False
    assert soon(lambda: len(desk.asked) == 2) and asked(desk) == START | {"TS": 20, "WPT": 4}
    desk.answer()
    assert soon(lambda: "WPT moved from 8 to 4" in explorer.panel.value)
    assert "gemmlab-gave-way" in wpt.box._dom_classes
    move(explorer, "M", 100)
    assert "gemmlab-gave-way" not in wpt.box._dom_classes


def test_refused_settings_are_a_try_without_a_rate(explorer, desk):
    explorer.settings.illegal.value = True
    move(explorer, "TS", 20)
    assert "TS=20 is not a multiple of WPT=8" in explorer._status.value, "at once, without asking"
    assert soon(lambda: len(desk.asked) == 2) and asked(desk) == START | {"TS": 20}
    desk.answer(kind="ParameterError", problem="kernel 3: TS=20 is not a multiple of WPT=8")
    assert soon(lambda: state(explorer) == "ParameterError")
    assert explorer.panel.value.count("is not a multiple") == explorer.panel.value.count(
        "TS=20 is not"
    ), "once each"
    assert shown(explorer, "count") == "1" and [t.gflops for t in explorer._history] == [
        pytest.approx(2.0),
        None,
    ]
    assert (
        soon(lambda: 'id="try-1"' in explorer._chart.value) and "refused" in explorer._chart.value
    )


def test_reset_returns_the_boxes_too(explorer, desk):
    explorer.settings.illegal.value = True
    explorer.settings.square.value = False
    move(explorer, "K", 128)
    assert soon(lambda: len(desk.asked) == 2)
    explorer._reset.click()
    assert asked(desk) == START and explorer.values == START
    assert explorer.settings.square.value and not explorer.settings.illegal.value


def test_a_try_is_returned_to_by_a_click_and_by_the_list(explorer, desk):
    for value in (24, 16):
        move(explorer, "TS", value)
        assert soon(lambda value=value: asked(desk)["TS"] == value)
        desk.answer(5.0 if value == 24 else 1.0)
    assert soon(lambda: len(explorer._again.options) == 4)
    explorer.said({"again": 0})
    assert asked(desk) == START
    explorer._again.value = 2
    assert asked(desk)["TS"] == 16
    explorer._to_best.click()
    assert asked(desk)["TS"] == 24
    explorer.said({"again": 99})
    assert len(desk.asked) == 6, "there is no such try"


@pytest.mark.parametrize(
    ("name", "text", "value"), [("TS", "16", 16), ("M", "300", 300), ("M", "128", 128)]
)
def test_a_typed_value_is_taken(explorer, desk, name, text, value):
    explorer.said({"typed": name, "text": text})
    assert explorer.values[name] == value and soon(lambda: asked(desk)[name] == value)


@pytest.mark.parametrize(
    ("name", "text"), [("TS", "17"), ("TS", ""), ("M", "-3"), ("M", "0"), ("K", "a lot")]
)
def test_a_typed_value_that_cannot_be_is_refused_in_words(explorer, desk, monkeypatch, name, text):
    said = []
    monkeypatch.setattr(explorer.bridge, "send", said.append)
    explorer.said({"typed": name, "text": text})
    assert explorer.values == START and len(said) == 1
    assert said[0]["refused"] == name and repr(text) in said[0]["words"]
    assert ("32" if name == "TS" else "from 1 to") in said[0]["words"]


def test_interrupting_the_first_run_is_one_sentence(desk, monkeypatch):
    made = explorer_module.Explorer(3, m=64)
    waits = iter([KeyboardInterrupt, None])

    def wait(seconds):
        if (error := next(waits)) is not None:
            raise error

    monkeypatch.setattr(made._arrived, "wait", wait)
    made.ready()
    assert desk.stopped == [made._client] and soon(lambda: state(made) == "stopped")
    assert "Stopped" in made.panel.value and "as you asked" in made.panel.value


def test_stop_is_offered_while_something_runs(explorer, desk):
    assert explorer._stop.disabled
    move(explorer, "TS", 24)
    assert soon(lambda: len(desk.asked) == 2) and not explorer._stop.disabled
    desk.asked[-1][2]("check")
    assert (
        "gemmlab-clock" in explorer._status.value
        and f'data-limit="{LIMITS["check"]:g}"' in explorer._status.value
    )
    explorer._stop.click()
    assert soon(lambda: state(explorer) == "stopped" and explorer._stop.disabled)


@pytest.mark.parametrize("kept", [True, None])
def test_the_next_moves_are_compiled_while_nobody_waits(explorer, desk, monkeypatch, kept):
    """One step of each slider, as it would settle, and nothing that was tried already; where the
    runtime keeps it.
    """
    monkeypatch.setattr(explorer_module, "has_src_build_cache", lambda device: kept)
    explorer._plan()
    plans = f"{explorer._client}, later", "peaks", explorer._client
    assert [name for name in desk.idle.plans if name in plans] == list(plans), (
        "the last comes first"
    )
    plan = [job for name in plans for job in desk.idle.plans[name] if job.job == "compile"]
    if not kept:
        assert plan == []
        return
    settings = [job.arguments["params"] for job in plan]
    assert {"TS": 24, "WPT": 8} in settings
    assert {"TS": 32, "WPT": 4} in settings and {"TS": 32, "WPT": 16} in settings
    assert {"TS": 32, "WPT": 8} not in settings


def test_where_the_slider_that_moved_last_leads_comes_first(explorer, desk):
    def near() -> list[dict[str, int]]:
        return [explorer.settings.params(values) for values in explorer.settings.neighbours()][:2]

    assert {params["TS"] for params in near()} == {24, 64}
    move(explorer, "WPT", 4)
    assert soon(lambda: len(desk.asked) == 2)
    assert near() == [{"TS": 32, "WPT": 2}, {"TS": 32, "WPT": 8}]


def test_the_share_of_the_peak_and_the_other_kernels_arrive_later(explorer, desk):
    (peak,), chart = desk.idle.plans["peaks"], desk.idle.plans["chart"]
    assert peak.job == "peaks" and 3 not in [
        job.arguments["kernel"] for job in chart if job.job == "measure"
    ]
    peak.done(Outcome({}, {"gflops": 8.0}))
    assert (
        soon(lambda: "25 % of this device" in explorer.panel.value)
        and shown(explorer, "count") == "1"
    )
    peak.done(Outcome({}, {"gflops": 1.0}))
    assert soon(lambda: "measured too low" in explorer.panel.value), "no share above all there is"


def test_ceilings_are_worked_out_while_nobody_waits(explorer, desk):
    """For the recorded device with the next moves, for the reader's own once its peaks are
    known.
    """
    (there,) = [job for job in desk.idle.plans[explorer._client] if job.job == "ceiling"]
    (peak,), here = desk.idle.plans["peaks"], desk.idle.plans["chart"][0]
    assert [peak.job, here.job] == ["peaks", "ceiling"]
    assert (
        there.arguments["chip"] == explorer._recorded.landscape.title
        and there.arguments["m"] == 4096
    )
    assert here.arguments["m"] == 64 and here.arguments["gflops"] == pytest.approx(2.0)
    assert "dashed" not in explorer._recorded._needles.value
    peak.done(Outcome({}, {"gflops": 8.0}))
    there.done(Outcome({}, {"gflops": 20_000.0, "resource": "local memory"}))
    here.done(Outcome({}, {"gflops": 4.0, "resource": "nearest cache"}))
    assert soon(lambda: explorer._recorded._needles.value.count("dashed line") == 2)
    assert "set by the nearest cache, 50 %" in explorer._recorded._needles.value
    explorer._plan()
    assert "ceiling" not in [job.job for plan in desk.idle.plans.values() for job in plan], (
        "they are known"
    )


def test_where_the_model_knows_nothing_there_is_no_ceiling(explorer, desk):
    (there,) = [job for job in desk.idle.plans[explorer._client] if job.job == "ceiling"]
    there.done(Outcome({}, problem="kernel 16 multiplies on tensor cores", kind="ValueError"))
    explorer._plan()
    assert "ceiling" not in [job.job for job in desk.idle.plans[explorer._client]]
    assert "dashed" not in explorer._recorded._needles.value


def test_a_text_of_the_readers_own_keeps_its_tries_and_is_compared_with_the_original(desk):
    for gflops, count in ((2.0, 1), (3.0, 2)):
        made = explorer_module.Explorer(3, m=64, source=TEXT.replace("float acc", "float  acc"))
        made.set(START)
        desk.answer(gflops)
        assert soon(lambda made=made: state(made) == "ok") and len(made._history) == count
    job = desk.idle.plans[made._client][0]
    assert (
        job.job == "measure"
        and job.arguments["source"] is None
        and job.arguments["params"] == {"TS": 32, "WPT": 8}
    )
    desk.asked.append((job.arguments, job.done, None))
    desk.answer(2.5)
    assert (
        soon(lambda: "1.2 x the original (2.5)" in made.panel.value)
        and panel.WITHIN_SPREAD not in made.panel.value
    )
    assert soon(lambda: "original 2.5" in made._chart.value), "and a line in the chart"


def test_a_difference_within_the_spread_is_called_none(explorer, desk):
    """The start has a rate of 2; what counts is the fastest run of the slower one."""
    for gflops, least, measurable in ((1.6, 1.0, True), (1.6, 0.7, False), (3.0, 0.5, True)):
        explorer.set(START | {"TS": 16})
        desk.answer(gflops, least=least)
        assert soon(lambda gflops=gflops: f"{gflops / 2:.2g} x your start" in explorer.panel.value)
        assert (panel.WITHIN_SPREAD not in explorer.panel.value) == measurable


def test_many_parameters_are_four_and_the_rest_on_request(desk):
    made = explorer_module.Explorer("warp_tiling", m=64)
    visible = [
        name
        for name in made.spec.defaults
        if made.settings.controls[name].box.layout.display != "none"
    ]
    assert len(visible) == 4 and set(visible) == {"TSM", "TSN", "WPTM", "WPTN"}
    made.settings.more.value = True
    assert all(
        made.settings.controls[name].box.layout.display != "none" for name in made.spec.defaults
    )
    assert (
        isinstance(made.settings.controls["TRANSPOSED"].widget.value, bool)
        and made.values["TRANSPOSED"] == 1
    )
    made.settings.controls["TRANSPOSED"].widget.value = False
    assert soon(lambda: desk.asked) and asked(desk)["TRANSPOSED"] == 0


def test_what_a_kernel_brings_is_in_view(desk):
    made = explorer_module.Explorer(7, m=64)
    assert in_view(made.spec) == {"TSM", "TSN", "WPTM", "WPTN", "WIDTH"}


def test_what_the_device_cannot_take_is_not_offered(desk):
    made = explorer_module.Explorer(9, m=64)
    control, most = made.settings.controls["UNROLL"], made.device.limits.unroll
    offered = [value for _, value in control.widget.options]
    assert max(offered) <= most
    assert ("not on this device" in control._words.value) == (
        max(made.spec.params[-1].choices) > most
    )


@pytest.mark.parametrize(
    ("given", "kind", "words"),
    [
        ({"m": 0}, ValueError, "m must be a positive whole number, not 0"),
        ({"n": 1.5}, ValueError, "n must be a positive whole number, not 1.5"),
        ({"k": "64"}, ValueError, "k must be a positive whole number, not '64'"),
        ({"source": 3}, TypeError, "source must be OpenCL C text, not int: 3"),
    ],
)
def test_what_cannot_be_explored_is_refused_by_name(given, kind, words, desk):
    with pytest.raises(kind, match=words):
        explorer_module.Explorer(3, **given)

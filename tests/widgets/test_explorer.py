"""An explorer's logic, with a worker that the test answers for: nothing is compiled."""

import time
from dataclasses import replace

import pytest

from gemmlab import catalog
from gemmlab.ladder import sources
from gemmlab.measurement.comparison import Comparison
from gemmlab.measurement.rungs import Allowed
from gemmlab.widgets import browser, tries
from gemmlab.widgets import explorer as explorer_module
from gemmlab.widgets.settings import Settings, ranked
from gemmlab.worker import client
from gemmlab.worker.client import LIMITS, Outcome
from gemmlab.worker.look import Seen

TEXT = sources.read("03_work_per_thread.cl")
#: What a page answers.
RIGHT = {"ok": True, "verdict": "right: every element exact", "ms": 1.0, "build": 0.1,
         "all": [1e-3] * 11, "other": [], "gpu": "large"}  # fmt: skip
START = {"TS": 32, "WPT": 8, "M": 64, "N": 64, "K": 64}


class Desk:
    """Stands for the worker."""

    def __init__(self):
        self.limits = LIMITS
        self.asked, self.context, self.looked, self.stopped = [], [], [], []

    def submit(self, name, arguments, done, step=None, job="measure"):
        kept = {"measure": self.asked, "context": self.context, "look": self.looked}
        kept[job].append((arguments, done))

    def stop(self, name):
        self.stopped.append(name)
        if self.asked:
            self.answer(kind="stopped", problem="stopped while running, as requested")

    def limit(self, step, arguments):
        return self.limits[step]

    def tell(self, peak=None, *ceilings) -> None:
        """What the newest rate is compared with: a peak, and ceilings set by local memory."""
        allowed = [one and Allowed(one, "local memory") for one in ceilings]
        self.context[-1][1](Outcome({}, (peak, allowed)))

    def answer(self, gflops=2.0, ok=True, which=-1, ratio=None, spread=0.0, **problem) -> None:
        """A result with this rate, and how it compares with the reference; or a problem."""
        arguments, done = self.asked[which]
        if problem:
            done(Outcome(arguments, **problem))
            return
        m, n, k = (arguments[size] for size in "mnk")
        found = {**RIGHT, "ms": 2 * m * n * k / gflops * 1e-6, "all": [], "ok": False}
        verdict = RIGHT["verdict"] if ok else "wrong: one element"
        result = replace(browser.outcome(arguments, found).result, ok=ok, verdict=verdict)
        rate = (0.9 * gflops, gflops, 1.1 * gflops)
        low, middle, high = (x / ratio[1] for x in rate) if ratio else rate
        beside = (low, middle, high) if ratio else None
        compared = Comparison(rate, spread, ratio, beside)
        done(Outcome(arguments, result, compared=compared))


@pytest.fixture
def desk(monkeypatch, any_device, tmp_path):
    monkeypatch.setenv("GEMMLAB_DATA", str(tmp_path))
    made = Desk()
    monkeypatch.setattr(client, "worker", lambda: made)
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
    return "gemmlab-stale" in explorer.panel._dom_classes


def move(explorer, name: str, value: int) -> None:
    """As a person moves a control."""
    explorer.settings.controls[name].value = value


def asked(desk) -> dict[str, int]:
    """The settings of the newest request."""
    arguments = desk.asked[-1][0]
    return {**arguments["params"], **{size: arguments[size.lower()] for size in "MNK"}}


def test_a_move_dims_the_panel_at_once_and_is_measured_when_it_has_settled(explorer, desk):
    """An answer to older settings leaves it dim."""
    with explorer._lock:  # meanwhile nothing settles, however long this takes
        move(explorer, "TS", 16)
        assert stale(explorer) and len(desk.asked) == 1, (
            "nothing is asked before the move has settled"
        )
    assert soon(lambda: len(desk.asked) == 2)
    move(explorer, "TS", 24)
    assert soon(lambda: len(desk.asked) == 3) and asked(desk) == START | {"TS": 24}
    desk.answer(which=-2)
    assert soon(lambda: shown(explorer, "key").startswith("TS=16 ")) and stale(explorer)
    desk.answer(3.0, ratio=(1.4, 1.5, 1.6))
    assert soon(lambda: not stale(explorer)) and shown(explorer, "key").startswith("TS=24 ")
    assert "2.70–3.30" in explorer.panel.value
    assert "1.40–1.60 × your start" in explorer.panel.value
    assert explorer._status.value == "", "nothing is pending"
    assert "24 x 3 = 72" in explorer._details.value


def test_the_slider_that_gave_way_is_marked_with_the_reason_until_the_next_move(explorer, desk):
    """Also after a drag over several stops: the reasons are those between its start and its end."""
    explorer.bridge.held = True
    for value in (24, 20, 16, 20):
        move(explorer, "TS", value)
    marks = explorer.settings.boxes["WPT"]
    why = "WPT moved from 8 to 4, because TS=20 is not a multiple of WPT=8"
    assert explorer.values["WPT"] == 4 and "gemmlab-gave-way" in marks._dom_classes
    assert why in explorer._note.value
    move(explorer, "TS", 24)
    assert explorer.values["WPT"] == 8, "where it had been is legal again"
    assert "gemmlab-gave-way" not in marks._dom_classes
    move(explorer, "TS", 20)
    explorer.bridge.held = False
    assert soon(lambda: len(desk.asked) == 2) and asked(desk) == START | {"TS": 20, "WPT": 4}
    desk.answer()
    assert soon(lambda: why in explorer._note.value) and "gemmlab-gave-way" in marks._dom_classes
    move(explorer, "M", 100)
    assert "gemmlab-gave-way" not in marks._dom_classes


def test_tries_and_the_start_are_returned_to_by_a_click(explorer, desk):
    for value in (24, 16):
        move(explorer, "TS", value)
        assert soon(lambda value=value: asked(desk)["TS"] == value)
        desk.answer(5.0 if value == 24 else 1.0)
    explorer._chosen({"again": 0})
    assert asked(desk) == START
    explorer._to_best.click()
    assert asked(desk)["TS"] == 24
    explorer._chosen({"again": 99})
    assert len(desk.asked) == 5, "there is no such try"
    explorer._reset.click()
    assert asked(desk) == START and explorer.values == START


def test_nothing_is_compared_with_itself(explorer, desk):
    """The start has no reference; what differs from it has, and so has the way back none."""
    assert desk.asked[0][0]["reference"] is None and "This is your start" in explorer.panel.value
    explorer.set(START | {"TS": 16})
    assert desk.asked[-1][0]["reference"]["params"] == {"TS": 32, "WPT": 8}
    explorer.set(START)
    assert desk.asked[-1][0]["reference"] is None


@pytest.mark.parametrize(
    "source", ["// mine\n" + TEXT.replace("float acc", "float  acc"), sources.code(TEXT)]
)
def test_an_untouched_text_is_not_compared_with_the_original(desk, source):
    """Comments, blanks, parameters and rules are no difference."""
    made = explorer_module.Explorer(3, m=64, source=source)
    made.set(START)
    assert desk.asked[-1][0]["reference"] is None
    desk.answer()
    assert soon(lambda: "the original text" in made.panel.value)


@pytest.mark.parametrize("ratio", [(0.5, 1.5, 3.0), (0.99, 1.0, 1.01), (1.01, 1.5, 2.0)])
def test_where_no_difference_was_shown_there_is_no_ratio(explorer, desk, ratio):
    explorer.set(START | {"TS": 16})
    desk.answer(3.0, ratio=ratio)
    assert soon(lambda: shown(explorer, "key").startswith("TS=16 "))
    assert "×" not in explorer.panel.value
    assert ("within 2 %" in explorer.panel.value) == (ratio[2] < 1.02)
    assert explorer._longer.layout.display != "none"


def test_map_and_verdict_do_not_contradict_each_other(explorer, desk):
    """The start took 2 GFLOPS at a busy moment; beside the new try it is twice as fast as that."""
    explorer.set(START | {"TS": 16})
    desk.answer(3.0, ratio=(0.4, 0.5, 0.6))
    assert soon(lambda: "Slower" in explorer.panel.value)
    rates = {one.settings["TS"]: one.rate[1] for one in explorer._history}
    assert rates == {START["TS"]: pytest.approx(6.0), 16: 3.0}
    assert tries.best(explorer._history).settings["TS"] == START["TS"]


def test_a_busy_machine_is_named_and_can_be_measured_longer(explorer, desk):
    explorer.set(START | {"TS": 16})
    desk.answer(3.0, ratio=(0.5, 1.5, 3.0), spread=0.5)
    assert soon(lambda: "busy" in explorer._note.value and "50 %" in explorer._note.value)
    assert "difference" not in explorer.panel.value, "noise shows neither equality nor difference"
    explorer._longer.click()
    longer = desk.asked[-1][0]
    assert asked(desk)["TS"] == 16 and longer["budget"] == explorer_module.LONGER * 0.6


def test_any_value_can_be_typed_or_is_refused_in_words(explorer, desk, monkeypatch):
    """Also one that the slider lacks; what depends on it gives way."""
    said = []
    monkeypatch.setattr(explorer.bridge, "send", said.append)
    for name, text in (("TS", "99999"), ("M", "0"), ("K", "a lot")):
        explorer.received({"typed": name, "text": text})
        assert explorer.values == START and said[-1]["refused"] == name
        assert repr(text) in said[-1]["words"] and "32" in said[-1]["words"]
    explorer.received({"typed": "TS", "text": "17"})
    assert soon(lambda: len(desk.asked) == 2) and asked(desk) == START | {"TS": 17, "WPT": 1}
    explorer.received({"typed": "M", "text": "70"})
    assert soon(lambda: len(desk.asked) == 3) and asked(desk)["N"] == 70


def test_interrupting_the_first_run_is_one_sentence(desk, monkeypatch):
    made = explorer_module.Explorer(3, m=64)
    waits = iter([KeyboardInterrupt, None])

    def wait(seconds):
        if (error := next(waits)) is not None:
            raise error

    monkeypatch.setattr(made._arrived, "wait", wait)
    made.ready()
    assert desk.stopped == [made._client] and soon(lambda: state(made) == "stopped")
    assert "Stopped" in made.panel.value and "as requested" in made.panel.value


def test_the_peak_and_the_ceiling_arrive_after_the_answer(explorer, desk):
    """Each request is sent once, and what cannot be found out is missing."""
    ((asked, _),) = desk.context
    assert asked["device"] == explorer.device.index and asked["texts"][0]["gflops"] > 1000
    assert "<s " in explorer.panel.value and "allows" not in explorer._recorded.value
    desk.tell(8.0, 26_800.0)
    assert "25 % of the peak, 8.00" in explorer.panel.value and shown(explorer, "count") == "1"
    assert "local memory allows 40 %" in explorer._recorded.value
    explorer.set(START)
    desk.answer(9.0)
    assert desk.context[-1][0] == {"device": None, "texts": []}
    assert "above the measured peak" in explorer.panel.value, "no share above all there is"
    explorer.set(START | {"TS": 16})
    desk.answer(9.0)
    desk.context[-1][1](Outcome({}, problem="no", kind="ValueError"))
    assert "% of the peak" in explorer._recorded.value and "allows" not in explorer._recorded.value


def test_an_edited_text_is_compared_with_the_original_here_and_on_an_h200(desk):
    made = explorer_module.Explorer(3, m=64, source=TEXT.replace("acc[j] +=", "acc[j] = acc[j] +"))
    made.set(START)
    reference = desk.asked[-1][0]["reference"]
    assert reference["source"] is None and reference["params"] == {"TS": 32, "WPT": 8}
    desk.answer(3.0, ratio=(1.1, 1.2, 1.3))
    assert soon(lambda: state(made) == "ok")
    assert "1.10–1.30 × the original" in made.panel.value and made.words() == ""
    texts = desk.context[-1][0]["texts"]
    assert [text["source"] == TEXT for text in texts] == [False, True]
    desk.tell(None, 20_000.0, 26_800.0)
    assert soon(lambda: "the original 40 %" in made._recorded.value)
    assert "kernel 1" in made._recorded.value and "cuBLAS" in made._recorded.value
    assert "at most: local memory allows" in made.words()
    made.set(START)
    desk.answer(9.0, ok=False)
    assert soon(lambda: state(made) == "wrong" and made._recorded.value == ""), "no such promise"


def test_an_open_hole_is_an_invitation(desk):
    made = explorer_module.Explorer(3, m=64, source="// your lines")
    made.set(START)
    desk.answer(ok=False)
    assert soon(lambda: "A hole: write the lines" in made.panel.value)
    assert "Wrong" not in made.panel.value


def test_many_parameters_are_four_and_the_rest_on_request(desk):
    """What a kernel brings is in view."""
    assert ranked(catalog[7])[0] == "WIDTH"
    made = explorer_module.Explorer("warp_tiling", m=64)
    first = [made.settings.boxes[name] for name in ("TSM", "TSN", "WPTM", "WPTN", "M")]
    assert made.settings.first == first
    assert len(made.settings.others) == len(made.spec.defaults) - 4 + 2
    with pytest.raises(ValueError, match="m must be a positive whole number, not 0"):
        explorer_module.Explorer(3, m=0)
    with pytest.raises(TypeError, match="source must be OpenCL C text, not int: 3"):
        explorer_module.Explorer(3, source=3)


LARGE = {
    "maxComputeInvocationsPerWorkgroup": 1024,
    "maxComputeWorkgroupSizeX": 1024,
    "maxComputeWorkgroupSizeY": 1024,
    "maxComputeWorkgroupStorageSize": 49152,
}


def test_the_browsers_gpu_is_a_device_like_any_other(desk):
    """Its limits, answers and map; and from its list, a device of this machine, and back."""
    made = explorer_module.Explorer(3, m=64, device="browser")
    made.set(START)
    page = made.device
    assert page.request["id"] == 1 and not desk.asked
    assert made.settings.limits.work_group == 256
    page.gpu = {"name": "large", "limits": LARGE}
    assert made.settings.limits.work_group == 1024
    page.result = {"id": 1, **RIGHT}
    assert state(made) == "ok" and "this browser" in made.panel.value
    assert "large, with a browser's bounds checks" in made.panel.value.replace("&#x27;", "'")
    assert made._maps.maps[-1]["title"].startswith("this browser")

    made._devices.value = made._devices.options[0][1]
    assert soon(lambda: desk.asked) and made._gpu.children == ()
    desk.answer(2.0)
    assert soon(lambda: "this machine" in made.panel.value)
    assert made._maps.maps[-1]["title"].startswith("this machine")
    made._devices.value = "browser"
    assert made.device is not page and made.device.request["id"] == 1
    made.device.result = {"id": 1, "error": "the browser offers no GPU"}
    assert state(made) == "page" and "offers no GPU" in made.panel.value


def test_without_a_device_an_explorer_uses_the_browsers_gpu(desk, monkeypatch):
    """And without that, the simulator judges a text."""
    monkeypatch.setattr(explorer_module, "devices", list)
    made = explorer_module.Explorer(3, m=64, source=TEXT)
    assert made._devices.value == "browser"
    made.set(START)
    desk.looked[-1][1](Outcome(desk.looked[-1][0]))
    made.device.result = {"id": 1, "error": "the browser offers no GPU"}
    text = made.panel.value
    assert "offers no GPU" in text and "simulator finds nothing wrong" in text
    with pytest.raises(RuntimeError, match="no such thing"):
        explorer_module.Explorer(3, m=64, device="no such thing")


class Page:
    """The browser's GPU as a device, and what it has answered."""

    def __init__(self):
        self.outcomes, self.steps = [], []
        self.gpu = browser.Browser(lambda: None)

    @property
    def request(self) -> dict:
        return self.gpu.request

    def ask(self, size=128, source=None, reference=None, **params):
        arguments = {
            **{"kernel": 3, "params": {"TS": 32, "WPT": 8} | params, "source": source},
            **dict.fromkeys("mnk", size),
            **{"reference": reference, "budget": 0.6, "most_seconds": 2.0},
        }
        self.gpu.submit("me", arguments, self.outcomes.append, self.steps.append)
        return arguments

    def answer(self, **found):
        self.gpu.result = {"id": self.request["id"], **RIGHT, **found}


def test_a_product_of_the_page_becomes_an_outcome_compared_with_its_reference(desk):
    """A size that does not fit runs as the next that does."""
    page = Page()
    first = page.ask(size=100)
    assert page.steps == ["page"] and not desk.looked
    job = page.request["job"]
    assert set(job["shaders"]) == {"even", "laid out"} and job["m"] == 128
    page.ask(size=100, TS=16, WPT=4, reference=first)
    assert page.request["reference"]["params"] == {"TS": 32, "WPT": 8}
    page.answer(all=[0.002] * 11, other=[0.004] * 11)
    (outcome,) = page.outcomes
    assert outcome.ok and outcome.result.gflops == pytest.approx(2 * 100**3 / 0.002 / 1e9)
    assert outcome.compared.rate[1] == pytest.approx(outcome.result.gflops)
    assert outcome.compared.ratio[1] == pytest.approx(2)


@pytest.mark.parametrize(
    "outcome, words",
    [
        ({"seen": Seen("line 67: this loop never ends", 1)}, "line 67: this loop"),
        ({"seen": Seen(unread="that takes too long")}, "the page does not: that takes too long"),
        ({"problem": "the process that was looking at the kernel died"}, "died"),
    ],
)
def test_what_the_simulator_refuses_never_reaches_the_page(desk, outcome, words):
    page = Page()
    arguments = page.ask(source=TEXT)
    desk.looked[0][1](Outcome(arguments, **outcome))
    assert words in page.outcomes[0].problem and not page.request


def test_a_text_with_a_mistake_is_answered_at_once(desk):
    page = Page()
    page.ask(source=TEXT.replace("acc[j] += a", "acc[j] += aa"))
    line = next(n for n, row in enumerate(TEXT.split("\n"), 1) if "acc[j] += a" in row)
    assert page.outcomes[0].problem.startswith(f"line {line}:")
    assert "'aa' is not declared" in page.outcomes[0].problem
    assert not desk.looked and not page.request


def test_the_newest_request_of_a_page_wins_and_a_stopped_one_is_forgotten(desk):
    page = Page()
    page.ask()
    page.ask(size=64)
    page.gpu.result = {"id": 1, "error": "old"}
    assert not page.outcomes
    page.gpu.stop("me")
    assert page.outcomes[0].kind == "stopped"
    page.answer()
    assert len(page.outcomes) == 1


def test_a_control_that_cannot_be_moved_leaves_the_others_alive(any_device):
    spec, moves = catalog[2], []
    start = {**spec.validate(None), "M": 64, "N": 64, "K": 64}
    settings = Settings(spec, any_device.limits, start, lambda: moves.append(settings.values))
    with pytest.raises(TypeError):
        settings.place({"TS": "no number"})
    settings.controls["M"].value = 128
    assert [one["M"] for one in moves] == [128]

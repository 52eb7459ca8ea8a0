"""An explorer's logic, with a sandbox that the test answers for: nothing is compiled."""

import time
from dataclasses import replace

import ipywidgets
import pytest

from gemmlab import catalog
from gemmlab.ladder import sources
from gemmlab.measurement.comparison import Comparison
from gemmlab.sandbox import client
from gemmlab.sandbox.client import LIMITS, Outcome
from gemmlab.sandbox.look import Seen
from gemmlab.widgets import browser
from gemmlab.widgets import explorer as explorer_module
from gemmlab.widgets.cells import Cell
from gemmlab.widgets.maps import Maps
from gemmlab.widgets.settings import Settings, ranked
from gemmlab.widgets.shell import inside

TEXT = sources.read("03_work_per_thread.cl")
#: What a page answers.
RIGHT = {"ok": True, "verdict": "right: every element exact", "ms": 1.0, "build": 0.1,
         "all": [1e-3] * 11, "other": [], "gpu": "large"}  # fmt: skip
START = {"TS": 32, "WPT": 8, "M": 64, "N": 64, "K": 64}


class Desk:
    """Stands for the sandbox."""

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
    monkeypatch.setattr(client, "shared_sandbox", lambda: made)
    return made


@pytest.fixture
def explorer(desk):
    made = explorer_module.Explorer(3, m=64)
    made.set(START)
    desk.answer(2.0)
    assert state(made) == "ok"
    return made


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


def button(explorer, name: str):
    return next(
        control
        for control in inside(explorer)
        if isinstance(control, ipywidgets.Button) and name in control.description
    )


def fold(explorer):
    return next(control for control in inside(explorer) if "gemmlab-fold" in control._dom_classes)


def click(explorer, message: dict) -> None:
    """Send what the page sends for a click on the maps or the tries."""
    maps = next(control for control in inside(explorer) if isinstance(control, Maps))
    maps._handle_custom_msg(message, [])


def asked(desk) -> dict[str, int]:
    """The settings of the newest request."""
    arguments = desk.asked[-1][0]
    return {**arguments["params"], **{size: arguments[size.lower()] for size in "MNK"}}


def test_the_controls_follow_the_state_and_a_move_is_measured_when_it_has_settled(explorer, desk):
    """What gave way is marked until the next move, also after a drag over several stops."""
    explorer.bridge.held = True
    for value in (24, 20, 16, 20):
        move(explorer, "TS", value)
    marks = explorer.settings.boxes["WPT"]
    assert explorer.values["WPT"] == 4 and "gemmlab-gave-way" in marks._dom_classes
    assert explorer.settings.controls["WPT"].value == 4
    assert stale(explorer) and len(desk.asked) == 1
    explorer.bridge.held = False
    assert soon(lambda: len(desk.asked) == 2) and asked(desk) == START | {"TS": 20, "WPT": 4}
    desk.answer()
    assert not stale(explorer) and "gemmlab-gave-way" in marks._dom_classes
    move(explorer, "M", 100)
    assert "gemmlab-gave-way" not in marks._dom_classes
    assert soon(lambda: len(desk.asked) == 3)


def test_tries_and_the_start_are_returned_to_by_a_click(explorer, desk):
    for value in (24, 16):
        explorer.set(START | {"TS": value})
        desk.answer(5.0 if value == 24 else 1.0)
    click(explorer, {"again": 0})
    assert asked(desk) == START
    button(explorer, "Best").click()
    assert asked(desk)["TS"] == 24
    click(explorer, {"again": 99})
    assert len(desk.asked) == 5, "there is no such try"
    button(explorer, "Reset").click()
    assert asked(desk) == START and explorer.values == START


def test_its_traits_can_be_observed_and_assigned_to(explorer, desk, any_device):
    seen = []
    explorer.observe(lambda change: seen.append(change["new"]), "result")
    assert explorer.params == {"TS": 32, "WPT": 8} and explorer.size == (64, 64, 64)
    assert explorer.device == any_device and explorer.result.gflops == pytest.approx(2.0)
    explorer.params = {"TS": 16}
    assert asked(desk) == START | {"TS": 16} and explorer.params["WPT"] == 8
    desk.answer(3.0)
    explorer.size = (32, 16, 8)
    assert asked(desk) == {"TS": 16, "WPT": 8, "M": 32, "N": 16, "K": 8}
    desk.answer(4.0)
    assert [result.gflops for result in seen] == [pytest.approx(3.0), pytest.approx(4.0)]
    assert [row["gflops"] for row in explorer.tries] == [2.0, 3.0, 4.0]
    assert explorer.tries[1]["TS"] == 16 and explorer.tries[1]["right"]
    explorer.device = "browser"
    assert isinstance(explorer.device, browser.Browser)


@pytest.mark.parametrize(
    "source", ["// mine\n" + TEXT.replace("float acc", "float  acc"), sources.code(TEXT)]
)
def test_an_untouched_text_is_not_compared_with_the_original(desk, source):
    """Comments, blanks, parameters and rules are no difference."""
    made = explorer_module.Explorer(3, m=64, source=source)
    made.set(START)
    assert desk.asked[-1][0]["reference"] is None
    desk.answer()
    assert "as in the ladder" in made.panel.value


def cell(code: str, **about) -> Cell:
    return Cell("one cell", code, code, TEXT, **about)


def test_an_edit_keeps_settings_and_what_was_open(desk):
    """Those that the first line names it decides; what is illegal with these is forgotten."""
    first = explorer_module.Explorer(3, source=cell("a"))
    first.set(first.values | {"TS": 16, "WPT": 4, "M": 100, "N": 100, "K": 100})
    fold(first).value = True
    again = explorer_module.Explorer(3, source=cell("b"))
    assert again.values == {"TS": 16, "WPT": 4, "M": 100, "N": 100, "K": 100}
    assert fold(again).value
    button(again, "Reset").click()
    assert again.values == {"TS": 32, "WPT": 8, "M": 256, "N": 256, "K": 256}
    again.set(again.values | {"WPT": 4})
    named = cell("b", named=frozenset(["TS", "M"]))
    third = explorer_module.Explorer(3, 64, params={"TS": 6}, source=named)
    assert third.values["TS"] == 6 and 6 % third.values["WPT"] == 0
    assert third.size == (64, 64, 64)
    another = explorer_module.Explorer(3, source=replace(cell("b"), id="another cell"))
    assert another.values["WPT"] == 8


def test_a_try_is_written_back_into_its_cell_and_so_is_the_original(desk, monkeypatch):
    first = explorer_module.Explorer(3, m=64, source=cell("int then;"))
    first.set(START)
    desk.answer()
    second = explorer_module.Explorer(3, m=64, source=cell("int now;"))
    sent = []
    monkeypatch.setattr(second.bridge, "send", sent.append)
    click(second, {"again": 0})
    assert len(desk.asked) == 1 and second.state.opened.code == "int then;"
    button(second, "Put this back").click()
    button(second, "Original").click()
    written = [message["code"] for message in sent]
    assert written == ["int then;", TEXT] and {one["cell"] for one in sent} == {"one cell"}


def test_the_original_of_an_exercise_has_its_hole(desk, monkeypatch):
    hole = explorer_module.Explorer(3, source=cell("// your lines"))
    hole.set(START)
    desk.answer(ok=False)
    assert hole.tries == []
    filled = explorer_module.Explorer(3, source=cell("int x;"))
    sent = []
    monkeypatch.setattr(filled.bridge, "send", sent.append)
    button(filled, "Original").click()
    assert sent[0]["code"] == "// your lines"


def test_any_value_can_be_typed_or_is_refused_in_words(explorer, desk, monkeypatch):
    """Also one that the slider lacks; what depends on it gives way."""
    said = []
    monkeypatch.setattr(explorer.bridge, "send", said.append)
    for name, text in (("TS", "99999"), ("M", "0"), ("K", "a lot")):
        explorer.received({"typed": name, "text": text})
        assert explorer.values == START and said[-1]["refused"] == name
        assert repr(text) in said[-1]["words"] and "8,192" in said[-1]["words"]
    explorer.received({"typed": "TS", "text": "17"})
    assert soon(lambda: len(desk.asked) == 2) and asked(desk) == START | {"TS": 17, "WPT": 1}
    explorer.received({"typed": "M", "text": "70"})
    assert soon(lambda: len(desk.asked) == 3) and asked(desk)["N"] == 70


def test_a_message_that_is_sent_while_another_is_handled_waits_for_it(explorer, desk):
    order = []

    def follow(change) -> None:
        explorer.set(START | {"TS": 24})
        order.append(asked(desk)["TS"])

    explorer.observe(follow, "result")
    explorer.set(START | {"TS": 16})
    desk.answer(3.0)
    assert order == [16] and asked(desk)["TS"] == 24


def test_interrupting_the_first_run_is_one_sentence(desk, monkeypatch):
    made = explorer_module.Explorer(3, m=64)

    def interrupt(name, arguments, done, step=None, job="measure"):
        desk.asked.append((arguments, done))
        raise KeyboardInterrupt

    monkeypatch.setattr(desk, "submit", interrupt)
    made.ready()
    assert desk.stopped and state(made) == "stopped"
    assert "Stopped" in made.panel.value and "as requested" in made.panel.value


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


def test_the_browsers_gpu_is_a_device_like_any_other(desk, any_device):
    """Its limits, answers and map; and from its list, a device of this machine, and back."""
    made = explorer_module.Explorer(3, m=64, device="browser")
    made.set(START)
    page = made.device
    assert page.request["id"] == 1 and not desk.asked and page.limits.work_group == 256
    page.gpu = {"name": "large", "limits": LARGE}
    assert made.state.device.limits.work_group == 1024
    page.result = {"id": 1, **RIGHT}
    assert state(made) == "ok" and "this browser" in made.panel.value
    assert "large, with a browser's bounds checks" in made.panel.value.replace("&#x27;", "'")
    made.device = any_device
    assert desk.asked
    desk.answer(2.0)
    assert "this machine" in made.panel.value
    made.device = "browser"
    assert made.device is not page and made.device.request["id"] == 1
    made.device.result = {"id": 1, "error": "the browser offers no GPU"}
    assert state(made) == "page" and "offers no GPU" in made.panel.value


def test_without_a_device_an_explorer_uses_the_browsers_gpu(desk, monkeypatch):
    """And without that, the simulator judges a text."""
    monkeypatch.setattr(explorer_module, "devices", list)
    made = explorer_module.Explorer(3, m=64, source=TEXT)
    assert isinstance(made.device, browser.Browser)
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


def test_a_control_that_cannot_be_moved_leaves_the_others_alive():
    spec, moves = catalog[2], []
    start = {**spec.validate(None), "M": 64, "N": 64, "K": 64}
    settings = Settings(spec, start, lambda *move: moves.append(move))
    with pytest.raises(TypeError):
        settings.place({"TS": "no number"})
    settings.controls["M"].value = 128
    assert moves == [("M", 128)]

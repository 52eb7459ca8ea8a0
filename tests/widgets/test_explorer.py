"""An explorer's logic, with a sandbox that the test answers for: nothing is compiled."""

import time
from dataclasses import replace

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
from gemmlab.widgets.controls import ranked

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
        self.step = lambda step: None

    def submit(self, name, arguments, done, step=None, job="measure"):
        self.step = step or self.step
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
    return explorer.panel.answer.partition(f'data-{what}="')[2].partition('"')[0]


def state(explorer) -> str:
    return shown(explorer, "state")


def stale(explorer) -> bool:
    return explorer.panel.status["stale"]


def act(explorer, **what) -> None:
    """Send what the page sends when a person does something."""
    explorer.panel.hear(what)


def move(explorer, name: str, value: int, held: bool = False) -> None:
    act(explorer, move=name, to=str(value), held=held, at=0)


def control(explorer, name: str) -> dict:
    return next(row for row in explorer.panel.controls if row["name"] == name)


def position(explorer, name: str) -> str:
    row = control(explorer, name)
    return row["options"][row["at"]]


def buttons(explorer) -> dict[str, str]:
    """The buttons by what is written on them."""
    return {one["text"]: one["id"] for some in explorer.panel.buttons.values() for one in some}


def press(explorer, text: str) -> None:
    act(explorer, press=next(id for name, id in buttons(explorer).items() if text in name))


def asked(desk) -> dict[str, int]:
    """The settings of the newest request."""
    arguments = desk.asked[-1][0]
    return {**arguments["params"], **{size: arguments[size.lower()] for size in "MNK"}}


def test_the_controls_follow_the_state_and_a_move_is_measured_when_it_has_settled(explorer, desk):
    """What gave way is marked until the next move, also after a drag over several stops."""
    for value in (24, 20, 16, 20):
        move(explorer, "TS", value, held=True)
    assert explorer.values["WPT"] == 4 and control(explorer, "WPT")["gave_way"]
    assert position(explorer, "WPT") == "4"
    assert stale(explorer) and len(desk.asked) == 1
    act(explorer, released=True)
    assert soon(lambda: len(desk.asked) == 2) and asked(desk) == START | {"TS": 20, "WPT": 4}
    desk.answer()
    assert not stale(explorer) and control(explorer, "WPT")["gave_way"]
    move(explorer, "M", 100)
    assert not control(explorer, "WPT")["gave_way"]
    assert soon(lambda: len(desk.asked) == 3)


def test_one_move_is_drawn_twice_and_its_steps_change_the_status_alone(explorer, desk):
    """When the controls move, and when the answer is there."""
    drawn = []
    explorer.panel.observe(lambda change: drawn.append(change["name"]), ["parts", "status", "maps"])
    explorer.set(START | {"TS": 16})
    moved = drawn.count("parts")
    for step in ("start", "compile", "predict", "check"):
        desk.step(step)
    assert moved == drawn.count("parts") == 1 and drawn.count("status") >= 4
    desk.answer(3.0)
    assert drawn.count("parts") == 2


def test_tries_and_the_start_are_returned_to_by_a_click(explorer, desk):
    for value in (24, 16):
        explorer.set(START | {"TS": value})
        desk.answer(5.0 if value == 24 else 1.0)
    act(explorer, again=0)
    assert asked(desk) == START
    press(explorer, "Best")
    assert asked(desk)["TS"] == 24
    act(explorer, again=99)
    assert len(desk.asked) == 5, "there is no such try"
    press(explorer, "Reset")
    assert asked(desk) == START and explorer.values == START


def test_a_hand_on_a_map_moves_the_sliders_and_measures_where_it_lets_go(explorer, desk):
    act(explorer, **{"pass": [16, 2]})
    assert explorer.values == START | {"TS": 16, "WPT": 2} and len(desk.asked) == 1
    act(explorer, choose=[16, 4])
    assert asked(desk) == START | {"TS": 16, "WPT": 4}


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
    assert "as in the ladder" in made.panel.answer


def cell(code: str, **about) -> Cell:
    return Cell("one cell", code, code, TEXT, **about)


def test_an_edit_keeps_settings_and_what_was_open(desk):
    """Those that the first line names it decides; what is illegal with these is forgotten."""
    first = explorer_module.Explorer(3, source=cell("a"))
    first.set(first.values | {"TS": 16, "WPT": 4, "M": 100, "N": 100, "K": 100})
    act(first, unfolded=True)
    again = explorer_module.Explorer(3, source=cell("b"))
    assert again.values == {"TS": 16, "WPT": 4, "M": 100, "N": 100, "K": 100}
    assert again.panel.unfolded
    press(again, "Reset")
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
    monkeypatch.setattr(second.panel, "send", sent.append)
    act(second, again=0)
    assert len(desk.asked) == 1 and second.state.opened.code == "int then;"
    press(second, "Put this back")
    press(second, "Original")
    written = [message["code"] for message in sent]
    assert written == ["int then;", TEXT] and second.panel.cell == "one cell"


def test_the_original_of_an_exercise_has_its_hole(desk, monkeypatch):
    hole = explorer_module.Explorer(3, source=cell("// your lines"))
    hole.set(START)
    desk.answer(ok=False)
    assert hole.tries == []
    filled = explorer_module.Explorer(3, source=cell("int x;"))
    sent = []
    monkeypatch.setattr(filled.panel, "send", sent.append)
    press(filled, "Original")
    assert sent[0]["code"] == "// your lines"


def test_any_value_can_be_typed_or_is_refused_in_words(explorer, desk, monkeypatch):
    """Also one that the slider lacks; what depends on it gives way."""
    said = []
    monkeypatch.setattr(explorer.panel, "send", said.append)
    for name, text in (("TS", "99999"), ("M", "0"), ("K", "a lot")):
        act(explorer, type=name, text=text)
        assert explorer.values == START and said[-1]["refused"] == name
        assert repr(text) in said[-1]["words"] and "8,192" in said[-1]["words"]
    act(explorer, type="TS", text="17")
    assert soon(lambda: len(desk.asked) == 2) and asked(desk) == START | {"TS": 17, "WPT": 1}
    act(explorer, type="M", text="70")
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
    assert "Stopped" in made.panel.answer and "as requested" in made.panel.answer


def test_many_parameters_are_four_and_the_rest_on_request(desk):
    """What a kernel brings is in view."""
    assert ranked(catalog[7])[0] == "WIDTH"
    made = explorer_module.Explorer("warp_tiling", m=64)
    rows = {row["name"]: row["more"] for row in made.panel.controls}
    assert [name for name, more in rows.items() if not more] == ["TSM", "TSN", "WPTM", "WPTN", "M"]
    assert sum(rows.values()) == len(made.spec.defaults) - 4 + 2
    in_cell = explorer_module.Explorer(7, m=64, source=sources.read("07_wide_loads.cl"))
    first = [row["name"] for row in in_cell.panel.controls if not row["more"]]
    assert "WIDTH" in first and len(first) == 2, "what the lesson is about"
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
    page.hear({"gpu": {"name": "large", "limits": LARGE}})
    assert made.state.device.limits.work_group == 1024
    page.hear({"result": {"id": 1, **RIGHT}})
    assert state(made) == "ok"
    assert "large, with a browser's bounds checks" in made.panel.answer.replace("&#x27;", "'")
    made.device = any_device
    assert desk.asked
    desk.answer(2.0)
    assert "bounds checks" not in made.panel.answer
    made.device = "browser"
    assert made.device is not page and made.device.request["id"] == 1
    made.device.hear({"result": {"id": 1, "error": "the browser offers no GPU"}})
    assert state(made) == "page" and "offers no GPU" in made.panel.answer


def test_without_a_device_an_explorer_uses_the_browsers_gpu(desk, monkeypatch):
    """And without that, the simulator judges a text."""
    monkeypatch.setattr(explorer_module, "devices", list)
    made = explorer_module.Explorer(3, m=64, source=TEXT)
    assert isinstance(made.device, browser.Browser)
    made.set(START)
    desk.looked[-1][1](Outcome(desk.looked[-1][0]))
    made.device.hear({"result": {"id": 1, "error": "the browser offers no GPU"}})
    text = made.panel.answer
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
        self.gpu.hear({"result": {"id": self.request["id"], **RIGHT, **found}})


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
    page.gpu.hear({"result": {"id": 1, "error": "old"}})
    assert not page.outcomes
    page.gpu.stop("me")
    assert page.outcomes[0].kind == "stopped"
    page.answer()
    assert len(page.outcomes) == 1

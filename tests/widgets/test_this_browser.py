"""The browser's GPU as a device of the explorer, with a page that answers when it is told to."""

import pytest

from gemmlab.catalog import sources
from gemmlab.widgets.browser import Browser
from gemmlab.worker import client
from gemmlab.worker.client import Outcome
from gemmlab.worker.look import Seen

TEXT = sources.read("03_work_per_thread.cl")


class Desk:
    """Stands for the worker, which only runs the simulator here."""

    def __init__(self):
        self.asked, self.limits = [], {}

    def submit(self, name, arguments, done, step, job):
        assert job == "look"
        self.asked.append((arguments, done))

    def stop(self, name):
        pass


@pytest.fixture
def desk(monkeypatch):
    desk = Desk()
    monkeypatch.setattr(client, "worker", lambda: desk)
    return desk


class Reader:
    """Asks a browser, and keeps what it is told."""

    def __init__(self):
        self.opened, self.outcomes, self.steps = [], [], []
        self.browser = Browser(lambda: self.opened.append(True))

    def ask(self, size=128, source=None, reference=None, params=None):
        arguments = {
            "kernel": 3, "params": params or {"TS": 32, "WPT": 8}, "m": size, "n": size, "k": size,
            "source": source, "reference": reference, "budget": 0.6,
            "most_seconds": 2.0,
        }  # fmt: skip
        self.browser.submit("me", arguments, self.outcomes.append, self.steps.append)
        return arguments

    def answer(self, **found):
        request = self.browser.view.request
        right = {"ok": True, "verdict": "right: every element exact", "ms": 2.0, "build": 0.1,
                 "all": [0.002] * 11, "other": [], "gpu": "test"}  # fmt: skip
        self.browser.view.result = {"id": request["id"], **right, **found}


def test_a_product_becomes_an_outcome_compared_with_its_reference(desk):
    """A size that does not fit runs as the next that does."""
    reader = Reader()
    first = reader.ask(size=100)
    assert reader.steps == ["page"] and not desk.asked
    jobs = reader.browser.view.request["jobs"]
    assert set(jobs) == {"even", "laid out"} and jobs["even"]["m"] == 128
    reader.ask(size=100, params={"TS": 16, "WPT": 4}, reference=first)
    reference = reader.browser.view.request["reference"]["even"]
    assert reference["params"] == {"TS": 32, "WPT": 8}
    reader.answer(other=[0.004] * 11)
    (outcome,) = reader.outcomes
    assert outcome.ok and outcome.result.gflops == pytest.approx(2 * 100**3 / 0.002 / 1e9)
    assert outcome.compared.rate[1] == pytest.approx(outcome.result.gflops)
    assert outcome.compared.ratio[1] == pytest.approx(2)


@pytest.mark.parametrize(
    "outcome, words",
    [
        ({"seen": Seen("line 67: this loop has gone round 512 times", 1)}, "line 67: this loop"),
        ({"seen": Seen("that takes longer than 1.5 s", 0)}, "the page does not: that takes longer"),
        ({"problem": "the process that was looking at the kernel died"}, "died"),
    ],
)
def test_what_the_simulator_refuses_never_reaches_the_page(desk, outcome, words):
    reader = Reader()
    arguments = reader.ask(source=TEXT)
    desk.asked[0][1](Outcome(arguments, **outcome))
    assert words in reader.outcomes[0].problem and not reader.browser.view.request


def test_a_text_with_a_mistake_is_answered_at_once(desk):
    reader = Reader()
    reader.ask(source=TEXT.replace("acc[j] += a", "acc[j] += aa"))
    line = next(n for n, row in enumerate(TEXT.split("\n"), 1) if "acc[j] += a" in row)
    assert reader.outcomes[0].problem.startswith(f"line {line}:")
    assert "'aa' is not declared" in reader.outcomes[0].problem
    assert not desk.asked and not reader.browser.view.request


def test_the_newest_request_wins_and_a_stopped_one_is_forgotten(desk):
    reader = Reader()
    reader.ask()
    reader.ask(size=64)
    reader.browser.view.result = {"id": 1, "error": "old"}
    assert not reader.outcomes
    reader.browser.stop("me")
    assert reader.outcomes[0].kind == "stopped"
    reader.answer()
    assert len(reader.outcomes) == 1

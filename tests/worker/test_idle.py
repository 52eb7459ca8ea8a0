"""What runs while nobody waits: in order, replaced by a newer plan, and out of the way when
somebody asks.
"""

import threading
import time
from types import SimpleNamespace

import pytest

from gemmlab.worker import idle as module
from gemmlab.worker.client import Outcome, Worker
from gemmlab.worker.idle import Idle, Job


class Hired:
    """A worker that does nothing until it is told to: what it was given, and what it was told to
    stop.
    """

    def __init__(self):
        self.given, self.stopped, self.closed = [], 0, False

    def submit(self, client, arguments, done, job):
        self.given.append((arguments["number"], done))

    def stop(self, client):
        self.stopped += 1
        self.answer("stopped")

    def answer(self, kind=""):
        number, done = self.given[-1]
        done(Outcome({"number": number}, kind=kind))

    def close(self):
        self.closed = True


class Clock:
    """Stands for the timers of the module: time passes when a test says so, however long the test
    itself takes.
    """

    def __init__(self):
        self._timers = []

    def Timer(self, seconds, action):
        timer = SimpleNamespace(action=action, start=lambda: self._timers.append(timer))
        timer.cancel = lambda: timer in self._timers and self._timers.remove(timer)
        return timer

    def pass_by(self) -> None:
        """Every timer that runs comes to its end."""
        timers, self._timers = self._timers, []
        for timer in timers:
            timer.action()


@pytest.fixture
def clock(monkeypatch):
    made = Clock()
    monkeypatch.setattr(
        module, "threading", SimpleNamespace(RLock=threading.RLock, Timer=made.Timer)
    )
    return made


@pytest.fixture
def hired():
    return Hired()


@pytest.fixture
def idle(hired, clock):
    made = Idle(lambda: hired)
    yield made
    made.close()


def jobs(*numbers, done=lambda outcome: None) -> list[Job]:
    return [Job("compile", {"number": number}, done) for number in numbers]


def soon(true, seconds=30) -> bool:
    end = time.monotonic() + seconds
    while not true() and time.monotonic() < end:
        time.sleep(0.01)
    return true()


def numbers(hired) -> list[int]:
    return [number for number, _ in hired.given]


def test_jobs_run_one_after_the_other_and_the_latest_plan_first(idle, hired):
    heard = []
    idle.plan("old", jobs(1, 2, done=heard.append))
    idle.plan("new", jobs(3, done=heard.append))
    assert numbers(hired) == [1]
    for _ in range(3):
        hired.answer()
    assert numbers(hired) == [1, 3, 2] and [o.arguments["number"] for o in heard] == [1, 3, 2]


def test_a_newer_plan_of_a_client_takes_the_place_of_its_older_one(idle, hired):
    idle.plan("slider", jobs(1, 2, 3))
    idle.plan("slider", jobs(4))
    hired.answer()
    hired.answer()
    assert numbers(hired) == [1, 4]


def test_what_does_not_end_in_a_moment_is_stopped_and_runs_again_in_the_next_pause(
    idle, hired, clock
):
    heard = []
    idle.plan("slider", jobs(1, 2, done=heard.append))
    idle.hold("request")
    assert hired.stopped == 0, "it has a moment to end"
    clock.pass_by()
    assert hired.stopped == 1 and numbers(hired) == [1] and heard == []
    idle.release("request")
    assert numbers(hired) == [1], "there is a pause first"
    clock.pass_by()
    assert numbers(hired) == [1, 1]


def test_what_ends_in_time_is_not_stopped(idle, hired, clock):
    idle.plan("slider", jobs(1, 2))
    idle.hold("request")
    hired.answer()
    clock.pass_by()
    assert hired.stopped == 0 and numbers(hired) == [1], "and nothing new begins"


def test_nothing_runs_as_long_as_there_is_any_reason(idle, hired, clock):
    idle.hold("cell")
    idle.hold("request")
    idle.plan("slider", jobs(1))
    idle.release("request")
    clock.pass_by()
    assert hired.given == []
    idle.release("cell")
    clock.pass_by()
    assert numbers(hired) == [1]


def test_after_its_end_nothing_runs(idle, hired):
    idle.plan("slider", jobs(1, 2))
    idle.close()
    hired.answer()
    assert numbers(hired) == [1] and hired.closed


def test_a_request_is_answered_while_a_compiler_works_in_the_other_child(any_device):
    """Warp tiling takes PoCL seconds; what a person asks for meanwhile does not wait for it."""
    worker = Worker()
    try:
        arrived, outcomes = threading.Event(), []
        slow = {
            "kernel": "warp_tiling",
            "m": 64,
            "n": 64,
            "k": 64,
            "params": {},
            "source": None,
            "device": any_device.index,
        }
        worker.idle.plan("chart", [Job("compile", slow, lambda outcome: None)])
        small = {
            "kernel": 1,
            "m": 32,
            "params": {"TS": 8},
            "repeats": 1,
            "device": any_device.index,
        }
        worker.submit("slider", small, lambda outcome: (outcomes.append(outcome), arrived.set()))
        assert arrived.wait(120) and outcomes[0].ok
        assert soon(lambda: worker.idle._running is not None, 60), "and then the other goes on"
    finally:
        worker.close()

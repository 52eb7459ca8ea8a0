"""Jobs in this process: one after another, the newest of a client, and none that hangs."""

import threading

import pytest
from texts import edited

from clscope.webgpu import EndlessError
from gemmlab.sandbox.inline import Inline
from gemmlab.sandbox.jobs import JOBS

SMALL = {"m": 32, "params": {"TS": 8}}
CASE = {"kernel": 1, "m": 32, "n": 32, "k": 32, "params": {"TS": 8}}
ENDLESS = edited(1, ("k < K; k++", "k < K; k += 0"))
UNREAD = edited(1, ("float acc = 0.0f;", "float acc = __builtin_fabsf(0.0f);"))
MISTAKE = edited(1, ("acc += A", "acc += oops + A"))


@pytest.mark.parametrize(("source", "words"), [(ENDLESS, "loop"), (UNREAD, "could not run it")])
def test_source_code_that_may_never_end_is_refused(any_device, source, words):
    outcome = Inline().run("test", {"kernel": 1, **SMALL, "source": source}, "measure")
    assert outcome.result is None and outcome.kind == "Refused" and words in outcome.problem


def test_the_compiler_explains_what_the_simulator_cannot_read(any_device):
    outcome = Inline().run("test", {"kernel": 1, **SMALL, "source": MISTAKE}, "measure")
    assert outcome.kind == "BuildError" and "oops" in outcome.problem


def test_a_mistake_is_reported_with_the_result(any_device):
    wrong = edited(1, ("k < K; k++", "k < K - 1; k++"))
    outcome = Inline().run("test", {"kernel": 1, **SMALL, "source": wrong}, "measure")
    assert outcome.state == "wrong" and outcome.seen


def test_a_loop_that_the_gpu_ended_is_a_hang(monkeypatch):
    def job(arguments, step):
        raise EndlessError("line 3: this loop did not end")

    monkeypatch.setitem(JOBS, "measure", job)
    outcome = Inline().run("test", {}, "measure")
    assert outcome.state == "hang" and outcome.verdict == "line 3: this loop did not end"


def test_the_newest_request_wins_and_a_stopped_one_is_answered_once():
    outcomes, steps, begun, go_on = [], [], threading.Event(), threading.Event()
    sandbox = Inline()

    def step(name):
        steps.append(name)
        if not begun.is_set():
            begun.set()
            go_on.wait(60)

    sandbox.submit("first", CASE, outcomes.append, step, "look")
    assert begun.wait(60)
    sandbox.submit("second", {**CASE, "m": 1}, outcomes.append, step, "look")
    sandbox.submit("second", {**CASE, "m": 2}, outcomes.append, step, "look")
    sandbox.stop("first")
    go_on.set()
    last = sandbox.run("third", {**CASE, "m": 3}, "look")
    assert [(o.arguments["m"], o.kind) for o in outcomes] == [(32, "stopped"), (2, "")]
    assert last.arguments["m"] == 3

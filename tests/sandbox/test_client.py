"""The child process: the newest request wins; a crash, a hang or a wrong kernel is an answer."""

import os
import resource
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from conftest import run_python
from texts import and_store, edited

from gemmlab import Result
from gemmlab.ladder import sources
from gemmlab.sandbox import client, process
from gemmlab.sandbox.client import Outcome, Sandbox

#: The limits of these tests: a loaded machine may take a while. SHORT is for kernels that never
#: end.
LIMITS = dict.fromkeys(("start", "compile", "predict", "check", "time"), 90.0)
SHORT = dict.fromkeys(("predict", "check", "time"), 3.0)
NAIVE = sources.read("01_naive.cl")
#: The loop never ends, but neither a compiler nor the simulator can know that: no element of A is
#: that large.
ENDLESS = edited(1, ("k < K; k++", "k < K; k += (*(volatile const __global float*)A > 1e6f)"))
#: Far outside any memory of the process.
FAR = edited(1, and_store(1, "C[(long)(M + 1)*100000000000] = 1.0f;"))
JUST_OUTSIDE = edited(1, and_store(1, "C[M*N] = 1.0f;"))
MISTAKE = edited(1, ("acc += A", "acc += oops + A"))

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="processes are looked up in Linux's /proc"
)


class Answers:
    """What comes back, in order, with waiting."""

    def __init__(self):
        self.outcomes: list[Outcome] = []
        self.steps: list[str] = []
        self.done, self.step = self.outcomes.append, self.steps.append

    def wait(self, reached) -> None:
        end = time.monotonic() + 240
        while not reached(self) and time.monotonic() < end:
            time.sleep(0.01)
        assert reached(self), (self.steps, self.outcomes)


@pytest.fixture
def sandbox(any_device):
    made = Sandbox()
    made.limits |= LIMITS
    yield made
    if made.child:
        made.child.kill()


def job(**arguments) -> dict:
    """A small one, with changes."""
    return {"kernel": 1, "m": 32, "repeats": 1, "params": {"TS": 8}, **arguments}


def ask(sandbox: Sandbox, kind: str = "measure", **arguments) -> Outcome:
    """One job, and its answer."""
    answers = Answers()
    given = job(**arguments) if kind == "measure" else arguments
    sandbox.submit("test", given, answers.done, job=kind)
    answers.wait(lambda a: a.outcomes)
    return answers.outcomes[0]


def begun(sandbox: Sandbox, client: str = "test") -> Answers:
    """A job whose kernel runs, and never ends."""
    answers = Answers()
    sandbox.submit(client, job(source=ENDLESS), answers.done, answers.step)
    answers.wait(lambda a: "check" in a.steps)
    return answers


def works(sandbox: Sandbox) -> bool:
    outcome = ask(sandbox)
    return outcome.ok and outcome.result.verdict == "right: every element exact"


def alive(pid: int) -> bool:
    """Whether a process runs; one that has ended but that nobody has waited for does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def gone(pid: int, seconds: float = 60) -> bool:
    end = time.monotonic() + seconds
    while alive(pid) and time.monotonic() < end:
        time.sleep(0.02)
    return not alive(pid)


BUILD = ("BuildError", f"line {1 + MISTAKE[: MISTAKE.index('oops')].count(chr(10))}: ")


@pytest.mark.parametrize(
    ("arguments", "kind", "words"),
    [
        ({"source": FAR}, "crash", ""),
        ({"source": JUST_OUTSIDE}, "", "wrong: it writes outside C"),
        ({"source": MISTAKE}, *BUILD),
        ({"kernel": 3, "params": {"TS": 20, "WPT": 8}}, "ParameterError",
         "kernel 3: TS=20 is not a multiple of WPT=8"),
        ({"m": 4096, "most_seconds": 0.01}, "TooSlow", "4096 x 4096 x 4096 would take about"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_an_answer_in_words(sandbox, capfd, arguments, kind, words):
    """And what a compiler prints goes neither between the answers nor onto the screen."""
    outcome = ask(sandbox, **arguments)
    assert not outcome.ok and outcome.kind == kind and words in str(outcome), outcome
    if kind == "crash":
        ends = "died (signal SIG", "the device gave up"
        assert any(end in outcome.problem for end in ends), outcome.problem
    assert works(sandbox)
    assert capfd.readouterr() == ("", "")


def test_an_answer_is_a_result(sandbox):
    answers = Answers()
    arguments = job(kernel=3, m=np.int64(40), n=24, k=56, params={"TS": np.int8(8), "WPT": 2})
    sandbox.submit("test", arguments, answers.done, answers.step)
    answers.wait(lambda a: a.outcomes)
    outcome, result = answers.outcomes[0], answers.outcomes[0].result
    assert outcome.ok and isinstance(result, Result) and outcome.arguments == arguments
    assert (result.m, result.n, result.k, result.params) == (40, 24, 56, {"TS": 8, "WPT": 2})
    assert answers.steps == ["start", "compile", "check", "time"]
    assert str(outcome) == str(result) and not outcome.problem


def test_clients_do_not_displace_each_other(sandbox):
    """Each may submit again from its answer, as a widget whose controls have moved does."""
    answers = Answers()

    def again(outcome):
        sandbox.submit("a", job(m=34), answers.done)

    for name, done in (("a", again), ("b", answers.done)):
        sandbox.submit(name, job(m=33), done)
    answers.wait(lambda a: len(a.outcomes) == 2)
    assert works(sandbox)
    assert sorted(outcome.result.m for outcome in answers.outcomes) == [33, 34]


def test_the_newest_wins_and_results_come_in_order(sandbox):
    assert works(sandbox)
    answers = Answers()
    sizes = list(range(101, 121))
    for size in sizes:  # at once: a pause of a few milliseconds may last as long as a job
        sandbox.submit("slider", job(m=size, repeats=100), answers.done)
    answers.wait(lambda a: a.outcomes and a.outcomes[-1].arguments["m"] == sizes[-1])
    time.sleep(0.5)  # nothing may come after the newest
    shown = [outcome.result.m for outcome in answers.outcomes]
    assert shown[-1] == sizes[-1] and shown == sorted(set(shown))
    assert all(outcome.ok for outcome in answers.outcomes)
    assert len(shown) < len(sizes), "jobs that nobody waits for any more were run to their end"


def test_newer_requests_overtake_a_hang(sandbox):
    """Long before that is stopped by its limit; the newest of them counts."""
    assert works(sandbox)
    answers, start = begun(sandbox), time.monotonic()
    for size in (21, 22, 23):
        sandbox.submit("test", job(m=size), answers.done)
    answers.wait(lambda a: a.outcomes)
    assert time.monotonic() - start < LIMITS["check"]
    answers.wait(lambda a: a.outcomes[-1].ok and a.outcomes[-1].result.m == 23)
    assert all(outcome.ok for outcome in answers.outcomes)


def test_what_runs_can_be_stopped(sandbox):
    """At once, in a sentence, and the next request is served."""
    assert works(sandbox)
    answers, start = begun(sandbox, "slider"), time.monotonic()
    sandbox.stop("slider")
    answers.wait(lambda a: a.outcomes)
    time.sleep(0.3)
    (outcome,) = answers.outcomes
    said = "stopped while running, as requested"
    assert (outcome.kind, outcome.problem) == ("stopped", said)
    assert time.monotonic() - start < 60 and works(sandbox)


def test_what_only_waits_can_be_stopped(sandbox):
    """The other client's answer comes; to stop nothing does nothing."""
    sandbox.stop("slider")
    first, second = Answers(), Answers()
    sandbox.submit("other", job(), first.done)
    sandbox.submit("slider", job(m=33), second.done)
    sandbox.stop("slider")
    first.wait(lambda a: a.outcomes)
    assert first.outcomes[0].ok and [o.kind for o in second.outcomes] == ["stopped"]
    assert works(sandbox) and len(second.outcomes) == 1


def test_an_endless_kernel_is_stopped_at_its_limit(sandbox, device):
    assert works(sandbox)
    child = sandbox.child.process.pid
    start = time.monotonic()
    sandbox.limits |= SHORT
    outcome = ask(sandbox, source=ENDLESS, device=device.index)
    sandbox.limits |= LIMITS
    took = time.monotonic() - start
    assert not outcome.ok and outcome.kind == "hang"
    assert "running took over 3 s." in outcome.problem and "never ends" in outcome.problem
    assert outcome.seen.unfinished and "of this loop" in str(outcome.seen)
    assert SHORT["check"] < took < SHORT["check"] + 90
    assert gone(child), "the process that hung is still there"
    assert works(sandbox)


@pytest.mark.parametrize("when", ["running", "idle"])
def test_a_child_that_is_killed_is_reported_and_replaced(sandbox, when):
    """As by a compiler that aborts; the end of one that had nothing to do is not reported."""
    assert works(sandbox)
    child = sandbox.child.process.pid
    assert works(sandbox) and sandbox.child.process.pid == child != os.getpid()
    answers = begun(sandbox) if when == "running" else Answers()
    os.kill(child, signal.SIGKILL)
    if when == "running":
        answers.wait(lambda a: a.outcomes)
        (outcome,) = answers.outcomes
        assert outcome.kind == "crash"
        assert "was running the kernel died (signal SIGKILL)" in outcome.problem
    assert gone(child)
    assert works(sandbox) and sandbox.child.process.pid != child


def test_crashes_leave_no_files_threads_or_processes_behind(sandbox):
    def held() -> tuple[int, int]:
        # the thread that watched over a dead child takes a moment to notice
        end = time.monotonic() + 60
        while threading.active_count() > threads and time.monotonic() < end:
            time.sleep(0.05)
        return len(os.listdir("/proc/self/fd")), threading.active_count()

    assert works(sandbox)
    threads = threading.active_count()
    before = held()
    crashes = 4
    for _ in range(crashes):
        assert ask(sandbox, source=FAR).kind == "crash"
        assert works(sandbox)
    # on a busy machine the last child's may still be there, but not one for each crash
    after = held()
    assert all(now - then < crashes for now, then in zip(after, before, strict=True)), (
        before,
        after,
    )


def test_interrupting_a_trial_frees_the_sandbox(monkeypatch, any_device):
    """Ctrl-C, or the notebook's button, while a cell waits for a measurement."""
    stopped = []

    def interrupted(name, arguments, done, job):
        monkeypatch.setattr(
            client.shared_sandbox(), "stop", lambda other: stopped.append(other == name)
        )
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(client.shared_sandbox(), "submit", interrupted)
    with pytest.raises(KeyboardInterrupt):
        client.trial(1, 32)


PARENT = """
    import sys, time
    from gemmlab.sandbox.client import Sandbox
    sandbox = Sandbox()
    say = lambda step: print(step, sandbox.child.process.pid, flush=True)
    sandbox.submit("test", {"kernel": 1, "m": 32, "params": {"TS": 8}, "source": sys.stdin.read()},
                  print, say)
    time.sleep(600)
"""


def test_the_child_ends_when_its_parent_is_killed(any_device):
    """As a notebook's kernel is on a restart: no orphan survives, although its kernel hangs."""
    parent = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(PARENT)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        parent.stdin.write(ENDLESS)
        parent.stdin.close()
        words, child = next(line.split() for line in parent.stdout if line.startswith("check"))
        time.sleep(0.5)  # well inside the loop that never ends
        assert alive(int(child))
    finally:
        parent.kill()
        parent.wait()
        parent.stdout.close()
    assert gone(int(child)), "an orphan survives"


def test_the_shared_sandbox_ends_with_its_process(any_device):
    text = (
        "from gemmlab.sandbox import client; print(client.trial(1, 32).ok, "
        "client.shared_sandbox().child.process.pid)"
    )
    done = run_python("-c", text)
    ok, child = done.stdout.split()
    assert ok == "True" and gone(int(child)) and done.stderr == ""


def test_a_trial_never_raises(any_device):
    assert client.trial(1, 32, device=any_device).ok
    for options, kind in (
        ({"kernel": 99}, "ValueError"),
        ({"params": {"XY": 8}}, "ParameterError"),
        ({"device": "no such thing"}, "NoDeviceError"),
        ({"source": b"not text"}, "TypeError"),
        ({"source": lambda: 0}, "TypeError"),
    ):
        outcome = client.trial(**{"kernel": 1, "m": 32, **options})
        assert not outcome.ok and outcome.kind == kind and outcome.problem


def test_whatever_goes_wrong_while_listening_the_next_request_is_served(sandbox, monkeypatch):
    assert works(sandbox)

    def fails(*_):
        raise ZeroDivisionError("of the widget")

    monkeypatch.setattr(sys, "excepthook", lambda *_: None)
    sandbox.submit("first", job(), fails, fails)
    assert works(sandbox)


def test_no_process_can_be_started(sandbox, monkeypatch):
    def fails(*_, **__):
        raise OSError(11, "no more processes")

    with monkeypatch.context() as patch:
        patch.setattr(subprocess, "Popen", fails)
        outcome = ask(sandbox)
    assert outcome.kind == "crash" and "no more processes" in outcome.problem
    assert works(sandbox)


def test_a_text_takes_no_more_memory_than_it_may(monkeypatch, any_device):
    """In the compiler, the kernel and the simulator, also without a temporary folder."""

    def fails():
        raise FileNotFoundError("No usable temporary directory")

    monkeypatch.setattr(process, "free_memory", lambda: 3 * 2**30)
    monkeypatch.setattr(process.tempfile, "TemporaryFile", fails)
    sandbox = Sandbox()
    large = edited(1, ("float acc = 0.0f;", "float x[1000000]; x[K] = 1; float acc = x[M];"))
    assert large != NAIVE
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    outcome = ask(sandbox, source=large)
    assert not outcome.ok or outcome.seen is None or outcome.seen.unread
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000  # kB
    assert works(sandbox)
    sandbox.child.kill()


FORKING = """
import os, pickle, sys, time
pid = os.fork()
if not pid:
    time.sleep(600)  # with the pipe of answers open
sys.stdout.buffer.write(pickle.dumps(pid))
sys.stdout.buffer.flush()
os.abort()
"""


def test_copies_of_a_child_end_with_it(monkeypatch):
    """Some runtimes let a kernel call fork(); a copy keeps the pipe of answers open."""
    monkeypatch.setattr(process, "COMMAND", ("-c", FORKING))
    child = process.Child()
    answers = child.answers()
    copy = next(answers)
    assert alive(copy)
    child.kill()
    assert next(answers, None) is None and gone(copy)
    child.close()


FORKED = """
import multiprocessing, warnings
import numpy as np
import pyopencl.array as cla
import gemmlab

warnings.simplefilter("ignore", DeprecationWarning)  # Python warns of threads
there = cla.to_device(gemmlab.default_device().queue, np.ones((16, 16), np.float32))

def tried(_):
    return gemmlab.trial(1, 16, params={"TS": 8}, repeats=1)

def simulated(_):
    return gemmlab.simulate(1, 8, 8, 8, params={"TS": 4}).exact

def refused(_):
    try:
        gemmlab.matmul(there, there)
    except RuntimeError as error:
        return "forked" in str(error)

assert gemmlab.matmul(there, there).get()[0, 0] == 16 and tried(0).ok
for function in (tried, simulated, refused):
    with multiprocessing.get_context("fork").Pool(2) as pool:
        answers = pool.map_async(function, range(3)).get(150)
    assert all(getattr(answer, "ok", answer) for answer in answers), (function, answers)
assert tried(0).ok
print("all answered")
"""


def test_forked_processes_answer():
    """They have no thread of their parent's, and its device's runtime does not work in them."""
    done = run_python("-c", FORKED)
    assert done.stdout == "all answered\n", done.stderr

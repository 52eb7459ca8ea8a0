"""Threads that compute have a core each. Those of a runtime are a process's: so each such case is a child."""

import json
import os
import subprocess
import sys
import threading
import time

import pytest
from conftest import DEVICES, lacking

from gemmlab.opencl.cores import Team, team_of

CHILD = """
import json, os
import pyopencl
threads = lambda: set(map(int, os.listdir("/proc/self/task")))
before = threads()
from gemmlab.opencl.devices import listed
listed()
print(json.dumps([sorted(os.sched_getaffinity(thread)) for thread in threads() - before]))
"""


@pytest.mark.parametrize("variable", (None, "0"))
def test_each_thread_of_pocl_has_a_core_of_its_own(variable):
    if not sys.platform.startswith("linux") or not any("Portable" in d.platform for d in DEVICES.values()):
        lacking("no PoCL on Linux")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("POCL_")}
    environment.update({"POCL_AFFINITY": variable} if variable else {})
    done = subprocess.run([sys.executable, "-c", CHILD], env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    found, cores = json.loads(done.stdout.splitlines()[-1]), sorted(os.sched_getaffinity(0))
    apart = [[core] for core in cores if [core] in found]
    alone = len(found) % len(cores) == 0  # no other runtime has started threads
    assert apart == ([[core] for core in cores] if variable is None and alone or len(cores) == 1 else [])


CHILD_OF_INTEL = """
import json, os
import numpy as np, gemmlab
device = next(d for d in gemmlab.devices() if "Intel" in d.platform and d.kind == "CPU")
all_cores, seen = os.sched_getaffinity(0), []
for core in sorted(all_cores):
    os.sched_setaffinity(0, {core})
    a, b = np.ones((300, 70), np.float32), np.ones((70, 400), np.float32)
    assert (gemmlab.matmul(a, b, device=device) == 70).all()
    os.sched_setaffinity(0, all_cores)
    assert (gemmlab.matmul(a, b, device=device) == 70).all()
    seen.append(device.team is None or [sorted(os.sched_getaffinity(t)) for t in device.team._threads.values()])
print(json.dumps([device.in_caller.team is None, *seen]))
"""


def test_products_on_intel_s_runtime_go_on_wherever_the_caller_is():
    if not sys.platform.startswith("linux") or not any("Intel" in d.platform for d in DEVICES.values()):
        lacking("no Intel's runtime on Linux")
    done = subprocess.run([sys.executable, "-c", CHILD_OF_INTEL], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    nobody_beside, *seen = json.loads(done.stdout.splitlines()[-1])
    assert nobody_beside and len(seen) == len(os.sched_getaffinity(0))
    for where in seen:
        assert where is True or all(len(cores) == 1 for cores in where) and len(set(map(str, where))) == len(where)


@pytest.fixture
def sleepers():
    """The numbers of threads that wait, one fewer than there are cores."""
    if not hasattr(os, "sched_getaffinity"):
        lacking("cores that can be chosen")
    over, affinity = threading.Event(), os.sched_getaffinity(0)
    threads = [threading.Thread(target=over.wait) for _ in range(len(affinity) - 1)]
    for thread in threads:
        thread.start()
    yield {thread.native_id for thread in threads}
    os.sched_setaffinity(0, affinity)
    over.set()
    for thread in threads:
        thread.join()


def test_nobody_of_a_team_stays_on_the_core_of_the_caller(sleepers):
    cores, team = os.sched_getaffinity(0), Team(sleepers)
    for core in [*cores, *cores]:
        os.sched_setaffinity(0, {core})
        time.sleep(0.01)  # the system has moved this thread
        team.make_room()
        where = [os.sched_getaffinity(thread) for thread in sleepers]
        assert set().union(*where) == cores - {core} and all(len(one) == 1 for one in where)


def test_other_numbers_of_threads_are_left_alone(sleepers):
    cores = os.sched_getaffinity(0)
    assert team_of(sleepers | {0}) is None and team_of(set(list(sleepers)[1:])) is None or len(cores) == 1
    assert all(os.sched_getaffinity(thread) == cores for thread in sleepers)

"""PoCL's threads have a core each, unless the user says otherwise. Threads are a process's: so each case is a child."""

import json
import os
import subprocess
import sys

import pytest
from conftest import DEVICES, lacking

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

"""What all threads of a process share."""

from conftest import run_python

PROGRAM = """
from concurrent.futures import ThreadPoolExecutor
import threading
import gemmlab

begin = threading.Barrier(8)
def first(_):
    begin.wait()
    device = gemmlab.default_device()
    return device.context, device.queue

with ThreadPoolExecutor(8) as threads:
    contexts, queues = zip(*threads.map(first, range(8)))
print(len({*contexts}), len({*queues}))
"""


def test_threads_that_come_first_share_context_and_queue(any_device):
    """Blocks that two threads of a worker made were once in two contexts."""
    for _ in range(3):
        done = run_python("-c", PROGRAM)
        assert done.stdout == "1 1\n", done.stderr

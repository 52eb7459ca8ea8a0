"""Which device is meant, and in which process it can be used."""

import os
import signal
import subprocess
import sys
import warnings

import numpy as np
import pyopencl as cl
import pytest
from conftest import lacking

import gemmlab
from gemmlab.opencl.devices import find_device, listed


def test_an_index_of_any_type(any_device):
    for index in (any_device.index, np.int64(any_device.index), str(any_device.index)):
        assert find_device(index) is any_device


@pytest.mark.parametrize("name", ["\u00b2", "no such thing", 99, -1])
def test_what_fits_no_device(name, any_device):
    with pytest.raises(gemmlab.NoDeviceError, match=f"no device fits {name!r}"):
        find_device(name)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_process_is_told_and_does_not_hang(any_device):
    """PoCL's threads are not in the copy, which would wait for them for ever."""
    a = np.ones((40, 40), np.float32)
    gemmlab.matmul(a, a, device=any_device)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python warns of threads, too
        child = os.fork()
    if child == 0:
        signal.alarm(60)
        try:
            gemmlab.matmul(a, a, device=any_device)
        except RuntimeError as error:
            os._exit(0 if "forked" in str(error) else 1)
        finally:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert np.array_equal(gemmlab.matmul(a, a, device=any_device), a @ a)


def test_pocl_s_device_without_threads_is_beside_the_other_and_not_listed(any_device):
    alone = any_device.in_caller
    if "PoCL" in any_device.version:
        assert (alone is not None) == ("PoCL 3." in any_device.version and "POCL_DEVICES" not in os.environ)
    if alone:
        assert alone.cl not in listed() or alone.cl == any_device.cl
        assert alone.units == 1
        assert (alone.name, alone.version, alone.limits) == (any_device.name, any_device.version, any_device.limits)


SLOW = """
kernel void slow(global float *x, int steps) {
    float sum = x[get_global_id(0)];
    for (int i = 0; i < steps; i++) sum = 0.5f * sum + 1.0f;
    x[get_global_id(0)] = sum;
}
"""


def test_intel_s_queue_has_run_a_kernel_when_the_launch_returns():
    found = [d for d in gemmlab.devices() if "Intel" in d.platform and d.kind == "CPU"]
    if not found:
        lacking("Intel's runtime")
    ordinary, alone = found[0], found[0].in_caller
    assert alone is not None and alone.cl == ordinary.cl and alone.units == 1
    assert ordinary.queue_properties == 0 != alone.queue_properties
    assert alone.runs_at_once and not ordinary.runs_at_once
    kernel, x = cl.Program(alone.context, SLOW).build().slow, np.zeros(8, np.float32)
    buffer = cl.Buffer(alone.context, cl.mem_flags.COPY_HOST_PTR, hostbuf=x)
    kernel.set_args(buffer, np.int32(2_000_000))
    for _ in range(5):
        event = cl.enqueue_nd_range_kernel(alone.queue, kernel, (8,), (1,))
        assert event.command_execution_status == cl.command_execution_status.COMPLETE
    cl.enqueue_copy(alone.queue, x, buffer)
    assert np.array_equal(x, np.full(8, 2, np.float32))


def test_the_user_s_choice_of_pocl_s_devices_stands():
    """A process of its own: PoCL asks for the variable once."""
    code = """
from gemmlab.opencl.devices import devices, listed
print([d.in_caller for d in devices() if "PoCL" in d.version], len(listed()))
"""
    given = {**os.environ, "POCL_DEVICES": "pthread"}
    said = subprocess.run([sys.executable, "-c", code], env=given, capture_output=True, text=True, check=True).stdout
    of_pocl = [d for d in gemmlab.devices() if "PoCL" in d.version]
    assert said.strip() == f"{[None] * len(of_pocl)} {len(listed())}"

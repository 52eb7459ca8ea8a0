"""Which device is meant, and in which process it can be used."""

import os
import signal
import subprocess
import sys
import warnings

import numpy as np
import pytest

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
    assert (alone is not None) == ("PoCL 3." in any_device.version and "POCL_DEVICES" not in os.environ)
    if alone:
        assert alone.cl != any_device.cl and alone.cl not in listed() and alone.units == 1
        assert (alone.name, alone.version, alone.limits) == (any_device.name, any_device.version, any_device.limits)


def test_the_user_s_choice_of_pocl_s_devices_stands():
    """A process of its own: PoCL asks for the variable once."""
    code = "from gemmlab.opencl.devices import devices, listed; print([d.in_caller for d in devices()], len(listed()))"
    given = {**os.environ, "POCL_DEVICES": "pthread"}
    said = subprocess.run([sys.executable, "-c", code], env=given, capture_output=True, text=True, check=True).stdout
    assert said.strip() == f"{[None] * len(gemmlab.devices())} {len(listed())}"

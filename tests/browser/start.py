"""A JupyterLab for tests, where this machine has all that it needs."""

from conftest import lacking
from lab import Lab, browser_path

from gemmlab.opencl.devices import NoDeviceError, find_device


def started(device: str = "pocl", caches: bool = False) -> Lab:
    """A JupyterLab whose notebooks use this device, to be entered by `with`; without a browser the test is skipped.

    With `caches` they share the compilers' caches with all other tests; otherwise these are empty.
    """
    if browser_path() is None:
        lacking("no Chromium")
    try:
        find_device(device)
    except NoDeviceError:
        lacking(f"no {device} device")
    return Lab(device, caches)

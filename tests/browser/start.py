"""A JupyterLab for tests, where this machine has all that it needs."""

from conftest import lacking
from lab import Lab, browser_path

from gemmlab.opencl.devices import NoDeviceError, find_device


def started(device: str = "pocl", **options) -> Lab:
    """A JupyterLab as `Lab` makes it, to be entered by `with`; without a browser or the device the test is skipped."""
    if browser_path() is None:
        lacking("no Chromium")
    try:
        find_device(device)
    except NoDeviceError:
        lacking(f"no {device} device")
    return Lab(device, **options)

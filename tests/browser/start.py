"""A JupyterLab for tests, where this machine has all that it needs."""

import patient
from conftest import lacking
from lab import Lab, browser_path

from gemmlab.opencl.devices import NoDeviceError, find_device


def started(*devices: str, idle: bool = True, startup: str = "", **options) -> Lab:
    """A JupyterLab as `Lab` makes it, to be entered by `with`; without a browser or a device the
    test is skipped.

    Args:
        devices: those that are needed, PoCL by default; GEMMLAB_DEVICE says the first in the
            notebooks.
        idle: whether anything is done while nobody waits, such as compiling the next settings; if
            not, slow kernels have time enough.
        startup: Python that the kernel of a notebook runs before the first cell.
        options: those of `Lab`.
    """
    if browser_path() is None:
        lacking("no Chromium")
    devices = devices or ("pocl",)
    for device in devices:
        try:
            find_device(device)
        except NoDeviceError:
            lacking(f"no {device} device")
    return Lab(
        devices[0], startup=startup + ("" if idle else patient.STARTUP + patient.BUSY), **options
    )

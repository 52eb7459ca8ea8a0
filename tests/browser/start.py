"""A JupyterLab for tests, where this machine has all that it needs."""

import patient
from conftest import lacking
from lab import Lab, browser_path

from gemmlab.opencl.devices import NoDeviceError, find_device

#: Nothing is done while nobody waits, since somebody always does, and no product is refused because it would take long.
BUSY = """
from gemmlab.widgets import explorer
from gemmlab.worker import client

client.worker().idle.hold("tests")
explorer.MOST_SECONDS = 60.0
del client, explorer
"""


def started(device: str = "pocl", idle: bool = True, **options) -> Lab:
    """A JupyterLab as `Lab` makes it, to be entered by `with`; without a browser or the device the test is skipped.

    Args:
        device: what GEMMLAB_DEVICE says in the notebooks.
        idle: whether anything is done while nobody waits, such as compiling the next settings; if not, slow kernels
            have time enough.
        options: those of `Lab`.
    """
    if browser_path() is None:
        lacking("no Chromium")
    try:
        find_device(device)
    except NoDeviceError:
        lacking(f"no {device} device")
    return Lab(device, startup="" if idle else patient.STARTUP + BUSY, **options)

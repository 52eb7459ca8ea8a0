"""What the tests share: devices, skips that fail in CI, and which tests `make test` leaves to `make test-all`."""

import os

import pytest

from gemmlab.opencl.devices import devices

#: In CI nothing may be skipped for what a machine lacks: GEMMLAB_NO_SKIP=1 turns such a skip into a failure.
NO_SKIP = os.environ.get("GEMMLAB_NO_SKIP") == "1"
#: Everything instead of a seeded sample: GEMMLAB_FULL=1, as `python -m gemmlab verify --full` sets it.
FULL = os.environ.get("GEMMLAB_FULL") == "1"

DEVICES = {f"{d.index}-{d.platform.split()[0]}": d for d in devices()}


#: What `make test` leaves out: a browser, Oclgrind, running the notebooks, and what takes minutes.
SYSTEM = (
    "browser/",
    "kernels/test_sanitiser.py",
    "kernels/test_warp_tiling.py",  # compiles kernel 15 some 300 times
    "test_every_size_from_1",
    "test_every_combination",  # compiles each kernel of the family
    "test_verify_passes",
    "test_nbval",
    "test_exercises",
    "test_html_without",
)


def pytest_collection_modifyitems(items) -> None:
    for item in items:
        if any(part in item.nodeid for part in SYSTEM):
            item.add_marker(pytest.mark.system)
        if "browser/" in item.nodeid:  # one JupyterLab for all of them
            item.add_marker(pytest.mark.xdist_group("browser"))


def lacking(what: str) -> None:
    """Skip a test because this machine lacks something; in CI fail."""
    if NO_SKIP:
        pytest.fail(f"{what}, and GEMMLAB_NO_SKIP=1 forbids skipping")
    pytest.skip(what)


@pytest.fixture(params=DEVICES or [None], ids=str)
def device(request):
    """Every OpenCL device found, one after the other."""
    if request.param is None:
        lacking("no OpenCL device")
    return DEVICES[request.param]


@pytest.fixture
def any_device():
    """The preferred device, where one is enough."""
    if not DEVICES:
        lacking("no OpenCL device")
    return next(iter(DEVICES.values()))

"""What the tests share: devices, skips that fail in CI, and which tests `make test` leaves to `make test-all`."""

import os
import zlib

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
    "kernels/test_warp_tiling.py",  # compiles kernel 15 for minutes
    "test_clblast",
    "test_every_size_from_1",
    "test_verify_passes",
    "test_nbval",
    "test_exercises",
    "test_html_without",
)


def pytest_collection_modifyitems(items) -> None:
    for item in items:
        if any(part in item.nodeid for part in SYSTEM):
            item.add_marker(pytest.mark.system)


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


@pytest.fixture(params=DEVICES if FULL and DEVICES else ["one of them"], ids=str)
def some_device(request):
    """For a check that must notice something: one device, which differs from test to test; in full runs all of them."""
    if not DEVICES:
        lacking("no OpenCL device")
    names = list(DEVICES)
    seeded = names[zlib.crc32(request.node.nodeid.encode()) % len(names)]
    return DEVICES.get(request.param, DEVICES[seeded])


@pytest.fixture
def any_device():
    """The preferred device, where one is enough."""
    if not DEVICES:
        lacking("no OpenCL device")
    return next(iter(DEVICES.values()))

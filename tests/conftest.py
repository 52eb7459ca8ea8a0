"""What the tests share: devices, markers, and skips that fail in CI."""

import contextlib
import os
import re
import subprocess
import sys
import zlib
from collections import Counter
from pathlib import Path

import patient
import pytest

from gemmlab.caches import clear_caches
from gemmlab.opencl.devices import devices
from gemmlab.sandbox import client

#: In CI no test may be skipped because a machine lacks something: such a skip is a failure.
NO_SKIP = os.environ.get("GEMMLAB_NO_SKIP") == "1"
#: Each night: many more random texts, for the front end and for the limits of a look.
FULL = os.environ.get("GEMMLAB_FULL") == "1"

DEVICES = {f"{d.index}-{d.platform.split()[0]}": d for d in devices()}
#: The runtimes; some may be installed in several versions.
RUNTIMES = sorted({name.partition("-")[2] for name in DEVICES})
ANY = "any device"
#: Where this user's programs keep what they have compiled.
USER_CACHES = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
#: Files whose tests one process runs for minutes: they begin first, lest it ends last.
LONGEST = ("test_lite.py", "test_pages.py")
#: What PyOpenCL adds to the options of every build, in child processes, too.
BUILD_OPTIONS = os.environ.get("PYOPENCL_BUILD_OPTIONS", "")


def in_part(cases, sample_every: int) -> list:
    """All cases in CI; in `make test`, which must stay short, every n-th one."""
    cases = list(cases)
    return cases if NO_SKIP else cases[::sample_every]


def loses_vectors(device) -> bool:
    """PoCL 7.1 loses half of a vector of 64 bytes in kernels that are not optimised."""
    release = re.search(r"PoCL (\d+)", device.version)
    return release is not None and int(release[1]) >= 6


def is_optimised(item) -> bool:
    """Whether kernels of a test are compiled as users compile them.

    Optimising takes compilers most of the time. Tests of calls, errors and kernels that are wrong
    on purpose do without it where there is no GPU: they are marked `optimised(False)`.
    """
    if any(d.kind != "CPU" or loses_vectors(d) for d in DEVICES.values()):
        return True
    marker = item.get_closest_marker("optimised")
    return marker is None or marker.args != (False,)


def pytest_collection_modifyitems(items) -> None:
    seen: Counter[str] = Counter()
    for item in items:
        sampled = item.get_closest_marker("sampled")
        if sampled:
            test = item.nodeid.partition("[")[0]
            if seen[test] % sampled.args[0]:
                item.add_marker(pytest.mark.system)
            seen[test] += 1

    # Optimised tests first, so that a process switches once; and long ones first, so that no
    # process ends much later than the others.
    def turn_of(item) -> tuple[bool, bool, bool]:
        system = item.get_closest_marker("system") is not None
        return is_optimised(item), item.path.name in LONGEST, system

    items.sort(key=turn_of, reverse=True)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item) -> None:
    """Set the compiler's options for a test, and forget what was compiled with others."""
    options = BUILD_OPTIONS if is_optimised(item) else f"{BUILD_OPTIONS} -cl-opt-disable"
    if os.environ.get("PYOPENCL_BUILD_OPTIONS", "") != options:
        os.environ["PYOPENCL_BUILD_OPTIONS"] = options
        clear_caches()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    from scheduling import ByNotebook  # needs pytest-xdist, as several processes do

    return ByNotebook(config, log)


def lacking(what: str) -> None:
    """Skip a test because this machine lacks something; in CI fail."""
    if NO_SKIP:
        pytest.fail(f"{what}, and GEMMLAB_NO_SKIP=1 forbids skipping")
    pytest.skip(what)


def turn(names: list[str], of: str) -> str:
    """One of the names, chosen by a hash: the same in every run."""
    return names[zlib.crc32(of.encode()) % len(names)]


def run_python(*arguments: str, folder=None, **variables: str) -> subprocess.CompletedProcess:
    """Python in a fresh process, with these environment variables besides."""
    return subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        cwd=folder,
        env={**os.environ, **variables},
        timeout=600,
    )


@pytest.fixture
def fresh():
    """Nothing that was compiled, planned or chosen is remembered, before or after."""
    clear_caches()
    yield
    clear_caches()


def _device(request):
    """The device that the parameter names; of several, one that depends on the test alone."""
    if not DEVICES:
        lacking("no OpenCL device")
    named = [name for name in DEVICES if request.param in (name, name.partition("-")[2])]
    return DEVICES[turn(named or list(DEVICES), request.node.nodeid)]


@pytest.fixture(params=(RUNTIMES if NO_SKIP else []) or [ANY], ids=str)
def device(request):
    """Every runtime in CI; otherwise one that varies with the test."""
    return _device(request)


@pytest.fixture(params=[ANY])
def some_device(request):
    """One device that varies with the test, even in CI: for checks that must notice something."""
    return _device(request)


@pytest.fixture
def any_device():
    """The preferred device, where one is enough."""
    if not DEVICES:
        lacking("no OpenCL device")
    return next(iter(DEVICES.values()))


def browser_device(chapter: str) -> str:
    """The runtime of a chapter's widgets in the browser; its cells run on the other one."""
    number = int(chapter[:2]) if chapter[:2].isdigit() else 0
    return ("pocl", "intel")[number % 2]


@pytest.fixture(scope="session")
def caches(tmp_path_factory) -> Path:
    """A folder for XDG_CACHE_HOME, which JupyterLabs and notebooks of this run share. It links to
    the compilers' caches, and is empty otherwise.
    """
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "caches"
    folder.mkdir(exist_ok=True)
    for name in ("pocl", "pyopencl", "pytools", "matplotlib"):
        with contextlib.suppress(OSError):  # another process was faster, or links are impossible
            (USER_CACHES / name).mkdir(parents=True, exist_ok=True)
            (folder / name).symlink_to(USER_CACHES / name)
    return folder


@pytest.fixture(scope="session", autouse=True)
def isolated(caches):
    """Leave the user's own files alone, and give kernels time on a busy machine."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(caches))
        patch.setenv("GEMMLAB_DATA", str(caches / "own"))
        for step, seconds in patient.LIMITS.items():
            patch.setitem(client.LIMITS, step, seconds)
        yield

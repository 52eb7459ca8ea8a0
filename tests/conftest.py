"""What the tests share: devices, skips that fail in CI, and which tests `make test` leaves to
`make test-all`.
"""

import contextlib
import os
import zlib
from collections import Counter
from pathlib import Path

import patient
import pytest

from gemmlab.caches import Notes, clear_caches
from gemmlab.generate import choice
from gemmlab.opencl.devices import devices
from gemmlab.worker import client

#: In CI nothing may be skipped for what a machine lacks: GEMMLAB_NO_SKIP=1 turns such a skip into a
#: failure.
NO_SKIP = os.environ.get("GEMMLAB_NO_SKIP") == "1"
#: Everything instead of a seeded sample: GEMMLAB_FULL=1, as `python -m gemmlab verify --full` sets
#: it.
FULL = os.environ.get("GEMMLAB_FULL") == "1"

DEVICES = {f"{d.index}-{d.platform.split()[0]}": d for d in devices()}
#: The runtimes, of some of which there may be several versions.
RUNTIMES = sorted({name.partition("-")[2] for name in DEVICES})
#: Whether tests go through all runtimes: in CI, and in full runs.
EVERY_RUNTIME = NO_SKIP or FULL
ANY = "any device"


def in_part(cases, one_in: int) -> list:
    """All cases in CI and in full runs; in `make test`, which has to stay short, one in so many."""
    cases = list(cases)
    return cases if EVERY_RUNTIME else cases[::one_in]


#: What `make test` leaves out: a browser, Oclgrind, running the notebooks, and what takes minutes.
SYSTEM = (
    "browser/",
    "kernels/test_sanitiser.py",
    "kernels/test_warp_tiling.py",  # compiles it for minutes
    "test_a_batch_of_warp_tiles",
    "test_a_lost_product_of_parts",
    "test_moving_the_sum_more_or_less_often",
    "test_every_size_from_1",
    "test_every_combination",  # compiles each kernel of the family
    "test_every_large_gap_says",  # counts all kernels in the simulator
    "test_kernels_of_warps_serve",  # compiles large kernels, four for a split
    # runs each kernel in the simulator at many settings
    "test_no_recorded_rate_is_above_its_ceiling",
    "test_rungs_are_the_numbered_kernels",  # the same, as do the README's tables
    "test_the_readme_s_tables_are_those_of_the_records_and_texts",
    "test_verify_passes",
    "distributed/test_workers.py::test_system",  # processes and clusters of their own
    "test_nbval",
    "test_html_without",
)


#: Tests with many cases, of which `make test` runs one in so many; `make test-all` runs all.
SAMPLED = {
    "test_a_failed_call_leaks_no_memory": 3,
    "test_a_file_refuses_what_breaks_a_rule": 3,
    "test_a_kernel_is_right_by_both_checks": 3,
    "test_a_kernel_to_take_away": 3,
    "test_a_picture_can_be_shown": 2,
    "test_a_right_kernel_counts": 4,
    "test_a_store_outside_c_is_caught": 4,
    "test_a_wrong_kernel_is_caught": 4,
    "test_a_wrong_packed_text_is_caught": 3,
    "test_a_wrong_text_is_found": 2,
    "test_an_edited_token_is_never_an_internal_error": 2,
    "test_checks_say_why_typical_answers_are_wrong": 3,
    "test_hostile_kernels_are_explained_and_the_next_cell_runs": 2,
    "test_loads_and_stores_are_those_of_a_device": 3,
    "test_numbers_that_do_not_split_go_the_ordinary_way": 3,
    "test_products_are_as_near_as_promised": 2,
    "test_random_kernels_do_what_a_real_runtime_does": 2,
    "test_the_cost_in_launches_is_what_a_product_launches": 2,
    "test_the_kernels_own_texts_are_clean": 3,
    "test_the_plan_is_what_is_launched": 3,
    "test_the_steps_of_all_groups_are_the_whole_run": 2,
}


#: Tests whose subject is not what a compiler makes of a kernel: calls, layouts, memory, errors, and
#: kernels that are wrong on purpose, all of small products. Optimising takes compilers most of the
#: time of these tests, so here they do without, unless a test is marked as `optimised`. Whether
#: kernels are right as users compile them is for the others.
UNOPTIMISED = (
    "blas/test_calls.py",
    "blas/test_errors.py",
    "blas/test_plans.py",
    "kernels/test_warp_tiling.py",
    "simt/test_instrumented.py",
    "simt/test_random.py",
    "test_a_kernel_to_take_away",
    "test_a_lost_product_of_parts",
    "test_a_store_into_the_last_element",
    "test_a_store_outside_c_is_caught",
    "test_a_wrong_kernel_is_caught",
    "test_every_combination_of_three",
    "test_kernels_of_warps_serve",
    "test_moving_the_sum_more_or_less_often",
    "test_the_cost_in_launches",
    "test_the_untouched_text_passes",
)
#: What PyOpenCL adds to the options of every build, in child processes, too.
_BUILD_OPTIONS = os.environ.get("PYOPENCL_BUILD_OPTIONS", "")


def is_optimised(item) -> bool:
    """Whether compilers optimise for a test: always in full runs, and where there is a GPU; else as
    listed above.
    """
    if (
        FULL
        or any(d.kind != "CPU" for d in DEVICES.values())
        or item.get_closest_marker("optimised")
    ):
        return True
    return not any(part in item.nodeid for part in UNOPTIMISED)


def pytest_collection_modifyitems(items) -> None:
    seen: Counter[str] = Counter()
    for item in items:
        name = getattr(item, "originalname", item.name)
        one_in = SAMPLED.get(name, 1)
        if any(part in item.nodeid for part in SYSTEM) or seen[name] % one_in:
            item.add_marker(pytest.mark.system)
        seen[name] += 1
    # optimised first, so that a process changes over once; of each kind what takes minutes first,
    # so that none is last
    items.sort(
        key=lambda item: (is_optimised(item), item.get_closest_marker("system") is not None),
        reverse=True,
    )


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item) -> None:
    """Have kernels compiled as this test wants it; what was compiled otherwise is forgotten."""
    wanted = _BUILD_OPTIONS if is_optimised(item) else f"{_BUILD_OPTIONS} -cl-opt-disable"
    if os.environ.get("PYOPENCL_BUILD_OPTIONS", "") != wanted:
        os.environ["PYOPENCL_BUILD_OPTIONS"] = wanted
        clear_caches()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Only for several processes: pytest-xdist need not be there for one."""
    from scheduling import ByNotebook

    return ByNotebook(config, log)


def lacking(what: str) -> None:
    """Skip a test because this machine lacks something; in CI fail."""
    if NO_SKIP:
        pytest.fail(f"{what}, and GEMMLAB_NO_SKIP=1 forbids skipping")
    pytest.skip(what)


def turn(names: list[str], of: str) -> str:
    """One of the names, the same at each run, by turns."""
    return names[zlib.crc32(of.encode()) % len(names)]


def _device(request):
    """The device that the parameter names; of several that it may mean one, which depends on the
    test alone.
    """
    if not DEVICES:
        lacking("no OpenCL device")
    named = [name for name in DEVICES if request.param in (name, name.partition("-")[2])]
    return DEVICES[turn(named or list(DEVICES), request.node.nodeid)]


@pytest.fixture(params=(DEVICES if FULL else RUNTIMES if NO_SKIP else []) or [ANY], ids=str)
def device(request):
    """In CI every runtime, one after the other, and of its versions one, which differs from test to
    test.

    In `make test` one device, which differs too; in full runs all of them.
    """
    return _device(request)


@pytest.fixture(params=DEVICES if FULL and DEVICES else [ANY], ids=str)
def some_device(request):
    """For a check that must notice something, in CI, too: one device, which differs from test to
    test.
    """
    return _device(request)


@pytest.fixture(params=DEVICES if FULL and DEVICES else [next(iter(DEVICES), ANY)], ids=str)
def first_device(request):
    """For what compiles much and depends little on the device: the preferred one; in full runs
    all.
    """
    return _device(request)


def browser_device(chapter: str) -> str:
    """The runtime of a chapter's widgets in the browser: PoCL and Intel's by turns. Its cells run
    on the other one.
    """
    return ("pocl", "intel")[int(chapter[:2]) % 2]


#: Where programs of this user keep what they have compiled.
USER_CACHES = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")


@pytest.fixture(scope="session")
def caches(tmp_path_factory) -> Path:
    """A folder for XDG_CACHE_HOME, which JupyterLabs and notebooks of this run share.

    What compilers keep is in it for all, tests included, so that nothing is compiled twice; all
    else begins empty.
    """
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "caches"
    folder.mkdir(exist_ok=True)
    for name in ("pocl", "pyopencl", "pytools"):
        with contextlib.suppress(OSError):  # another process was faster, or there are no links here
            (USER_CACHES / name).mkdir(parents=True, exist_ok=True)
            (folder / name).symlink_to(USER_CACHES / name)
    return folder


@pytest.fixture(scope="session", autouse=True)
def remembered(caches):
    """What probes and trials find is kept for this run alone: the user's own files stay as they
    are.

    Kernels have time enough.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(choice, "winners", Notes(str(caches / "choices.json")))
        patch.setenv("GEMMLAB_DATA", str(caches / "own"))
        for step, seconds in patient.LIMITS.items():
            patch.setitem(client.LIMITS, step, seconds)
        yield


@pytest.fixture
def any_device():
    """The preferred device, where one is enough."""
    if not DEVICES:
        lacking("no OpenCL device")
    return next(iter(DEVICES.values()))

"""OpenCL runtimes and devices: find them, sort them, choose one."""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import sys
import tempfile
import threading
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from importlib import metadata
from numbers import Integral
from pathlib import Path
from typing import Any

from .. import environment
from ..ladder.spec import Limits
from ..version import __version__
from .api import NO_DEVICE, CommandQueue, Context, cl

#: Why there is no device, and what works then.
WITHOUT_DEVICE = (
    f"{NO_DEVICE}. What works without one: pictures, steppers, `gemmlab.simulate`, and in a "
    "browser with WebGPU explorers and %%gemm cells"
)

SYSTEM_VENDORS = Path("/etc/OpenCL/vendors")

#: NVIDIA's driver for OpenCL.
NVIDIA_LIBRARY = "libnvidia-opencl.so.1"

#: Held where all threads must get the same object: Python's caches call a function once for each
#: thread that comes before the first result.
_creating = threading.Lock()


@lru_cache(maxsize=16)
def _context_of(device: cl.Device) -> Context:
    return Context([device])


@lru_cache(maxsize=16)
def _queue_of(context: Context) -> CommandQueue:
    return CommandQueue(context)


class NoDeviceError(RuntimeError):
    """There is no OpenCL device, or none that fits the request."""

    __module__ = "gemmlab"

    def _render_traceback_(self) -> list[str]:
        """Return what IPython shows instead of a traceback: no code has to be repaired."""
        return [f"NoDeviceError: {self}"]


@dataclass(frozen=True, eq=False)
class Device:
    """An OpenCL device. Its context and its queues are created when they are first used.

    Attributes:
        index: its position in ``devices()``.
        kind: "GPU", "CPU" or "other".
        units: multiprocessors of a GPU, cores of a CPU.
        memory: bytes of global memory.
        largest: bytes of the largest single buffer.
        features: what kernels may use: "nvidia" (inline PTX), "shuffle" (sub-groups of a required
            size), "tensor" (tensor cores for TF32), "warpgroups" (Hopper's instructions of four
            warps), "double" (arithmetic in float64).
    """

    index: int
    name: str
    platform: str
    version: str
    driver: str
    kind: str
    units: int
    memory: int
    largest: int
    limits: Limits
    features: frozenset[str]
    cl: cl.Device = field(repr=False)

    @cached_property
    def context(self) -> Context:
        with _creating:
            return _context_of(self.cl)

    @cached_property
    def queue(self) -> CommandQueue:
        """The queue of products whose caller names none."""
        context = self.context
        with _creating:
            return _queue_of(context)

    @cached_property
    def timed_queue(self) -> CommandQueue:
        """A queue whose events record times, which costs each command microseconds."""
        return CommandQueue(self.context, properties=cl.command_queue_properties.PROFILING_ENABLE)

    @property
    def identity(self) -> str:
        """The key of notes on this device: device, driver, and gemmlab's version."""
        return " | ".join((self.name, self.platform, self.version, self.driver, __version__))

    @lru_cache(maxsize=8)  # noqa: B019 (devices live as long as the process)
    def limited(self, work_group: int) -> Device:
        """Return the device for kernels with work-groups of at most so many work-items."""
        return replace(self, limits=replace(self.limits, work_group=work_group))

    def facts(self) -> dict[str, str | int]:
        """Return what a record of a measurement says about this device."""
        names = ("platform", "version", "driver", "kind", "units")
        return {"device": self.name} | {name: getattr(self, name) for name in names}

    def __str__(self) -> str:
        return f"{self.name} ({self.platform})"


def intel_library() -> Path | None:
    """Return the library of Intel's CPU runtime from PyPI, if it is installed."""
    try:
        files = metadata.distribution("intel-opencl-rt").files or []
    except metadata.PackageNotFoundError:
        return None
    return next((Path(str(f.locate())) for f in files if f.name == "libintelocl.so"), None)


def library_problem(library: str) -> str:
    """Return why a library cannot be loaded; an empty string if it can."""
    try:
        ctypes.CDLL(library)
    except OSError as error:
        return str(error)
    return ""


def icd_folder() -> Path:
    """Return the folder of .icd files that the loader reads on Linux, or the only such file.

    Environment variables name it. By default the loaders of Linux distributions and of PyPI's
    PyOpenCL read the system's folder, and conda's reads the folder of its environment.
    """
    named = os.environ.get("OCL_ICD_VENDORS") or os.environ.get("OPENCL_VENDOR_PATH")
    if named:
        return Path(named)
    is_from_conda = any(Path(sys.prefix, "conda-meta").glob("pyopencl-*.json"))
    return Path(sys.prefix, "etc/OpenCL/vendors") if is_from_conda else SYSTEM_VENDORS


def icd_files() -> list[Path]:
    """Return the files that register drivers with the loader on Linux."""
    folder = icd_folder()
    if folder.is_file():
        return [folder]
    bundled = Path(cl.__file__).parent / ".libs"  # of drivers from PyPI
    return [*sorted(folder.glob("*.icd")), *sorted(bundled.glob("*.icd"))]


def library_in(icd: Path) -> str:
    """Return the library that a .icd file names; an empty string if it names none."""
    try:
        return icd.read_text(encoding="utf-8").partition("\n")[0].strip()
    except (OSError, UnicodeDecodeError):
        return ""


def unregistered_libraries() -> list[str]:
    """Return the libraries of runtimes that gemmlab registers, because no .icd file does.

    These are Intel's CPU runtime from PyPI, whose own .icd file names a path that does not exist,
    and NVIDIA's driver, whose .icd file most containers lack. There are none if the environment
    variable OCL_ICD_VENDORS names a single file, or nothing that exists: the user chose that.
    """
    if os.environ.get("OCL_ICD_VENDORS") and not icd_folder().is_dir():
        return []
    intel = intel_library()
    libraries = [str(intel.resolve())] if intel else []
    nvidia = [library for library in map(library_in, icd_files()) if "nvidia" in library]
    if all(map(library_problem, nvidia)) and not library_problem(NVIDIA_LIBRARY):
        libraries.append(NVIDIA_LIBRARY)
    return libraries


@contextmanager
def _register_all() -> Iterator[None]:
    """Register the runtimes of `unregistered_libraries`, besides those that are registered.

    The loader reads its list of .icd files once. Meanwhile OCL_ICD_VENDORS names a temporary
    folder with copies of the registered files and a file for each of the others.
    """
    libraries = unregistered_libraries()
    if not libraries:
        yield
        return
    with ExitStack() as stack:
        try:
            folder = stack.enter_context(tempfile.TemporaryDirectory())
            for number, library in enumerate(libraries):
                Path(folder, f"gemmlab-{number}.icd").write_text(f"{library}\n")
        except OSError as error:
            warnings.warn(f"{', '.join(libraries)}: not loaded: {error}", stacklevel=4)
        else:
            for icd in icd_folder().glob("*.icd"):
                with suppress(OSError):  # the loader cannot read it either
                    shutil.copy(icd, folder)
            stack.enter_context(environment.variables({"OCL_ICD_VENDORS": folder}))
        yield


def _describe(index: int, d: cl.Device) -> Device:
    kind = (
        "GPU" if d.type & cl.device_type.GPU else "CPU" if d.type & cl.device_type.CPU else "other"
    )
    if _is_checker(d):  # it calls itself all of these
        kind = "other"
    name = d.name.strip()
    nvidia = "nvidia" in d.platform.name.lower()
    # it aborts the whole process for some kernels with vectors of 64 bytes
    old_pocl = "PoCL 3.0" in d.platform.version
    webgpu = d.platform.name == "WebGPU"  # WGSL has no larger vectors, no copies by a work-group
    limits = Limits(
        name,
        d.max_work_group_size,
        tuple(d.max_work_item_sizes),
        d.local_mem_size,
        vector=4 if webgpu else 8 if old_pocl else 16,
        vector_bytes=32 if old_pocl else 64,
        # with 16, PoCL takes up to a minute at the first launch
        unroll=4 if "PoCL" in d.platform.version else 16,
        asynchronous=not webgpu and (not nvidia or d.compute_capability_major_nv >= 8),
        warpgroups=not webgpu and (not nvidia or d.compute_capability_major_nv == 9),
    )
    return Device(
        index=index,
        name=name,
        platform=d.platform.name.strip(),
        version=d.platform.version.strip(),
        driver=d.driver_version.strip(),
        kind=kind,
        units=d.max_compute_units,
        memory=d.global_mem_size,
        largest=d.max_mem_alloc_size,
        limits=limits,
        features=_features(d),
        cl=d,
    )


def _is_checker(d: cl.Device) -> bool:
    """Whether this is Oclgrind, which checks kernels, and computes if there is no other device."""
    return "oclgrind" in d.platform.name.lower()


def _features(d: cl.Device) -> frozenset[str]:
    extensions = set(d.extensions.split())
    nvidia = "nvidia" in d.platform.name.lower()
    capability = d.compute_capability_major_nv if nvidia else 0
    subgroups = {"cl_khr_subgroup_shuffle", "cl_intel_required_subgroup_size"}
    features = {
        "double": "cl_khr_fp64" in extensions,
        "nvidia": nvidia,
        "tensor": capability >= 8,
        "warpgroups": capability == 9,
        "shuffle": not nvidia and subgroups <= extensions,
    }
    return frozenset(name for name, has in features.items() if has)


def _preference(d: cl.Device) -> tuple[Any, ...]:
    """Return a sort key: GPUs, then Intel's CPU runtime (installed on purpose, and fast), then
    PoCL, newer versions first, then the rest, such as Mesa's llvmpipe.
    """
    if d.type & cl.device_type.GPU:
        return (0,)
    if "intel" in d.platform.name.lower():
        return (1,)
    pocl = re.search(r"PoCL (\d+)\.(\d+)", d.platform.version)
    return (2, *(-int(number) for number in pocl.groups())) if pocl else (3,)


def device_problem(d: cl.Device) -> str:
    """Return why a device that its runtime lists cannot be used; an empty string if it can."""
    if "pocl" in d.version.lower() and d.version.strip().endswith("-generic"):
        return (
            f"{d.platform.version.strip()} is older than this processor and cannot compile for it "
            "(\"unknown target CPU 'generic'\")"
        )
    if not d.compiler_available:
        return "it has no compiler"
    return ""


#: The number of the process that looked for devices. A copy made by `fork` has the memory of a
#: runtime but none of its threads, for which most runtimes would wait forever: it gets an error.
_process: list[int] = []


def platforms() -> tuple[cl.Platform, ...]:
    """Return every platform that the loader lists, whether or not it has devices."""
    if not _process:
        _process.append(os.getpid())
    with _register_all(), environment.variables(environment.pocl_variables()):
        try:
            return tuple(cl.get_platforms())
        except cl.Error:
            return ()


def all_devices() -> tuple[cl.Device, ...]:
    """Return every device that any runtime lists, whether or not it can be used."""
    every: list[cl.Device] = []
    for platform in platforms():
        try:
            # PoCL reads the variable that names its cache when its devices are first listed
            with environment.variables(environment.pocl_variables()):
                every += platform.get_devices()
        except cl.Error as error:
            if sys.platform == "emscripten":  # a browser may have no GPU: `doctor` says why
                continue
            warnings.warn(f"platform {platform.name} reports no devices: {error}", stacklevel=3)
    return tuple(every)


@lru_cache(maxsize=1)
def _find() -> tuple[Device, ...]:
    usable = [d for d in all_devices() if not device_problem(d)]
    real = [d for d in usable if not _is_checker(d)]
    return tuple(_describe(i, d) for i, d in enumerate(sorted(real or usable, key=_preference)))


def devices() -> list[Device]:
    """Return all usable OpenCL devices in order of preference: GPUs, then Intel's CPU runtime, then
    others such as PoCL.
    """
    with _creating:
        return list(_find())


def default_device() -> Device:
    """Return the device that the environment variable GEMMLAB_DEVICE names (index or part of a
    name), or the preferred one.

    Raises:
        NoDeviceError: if there is no device, or none that matches the variable.
    """
    return find_device()


def check_process() -> None:
    """Raise RuntimeError in a process that was forked after its parent had started OpenCL."""
    if _process and _process[0] != os.getpid():
        raise RuntimeError(
            "this process was forked after OpenCL had started, and OpenCL does not work in such a "
            "copy: start processes by multiprocessing.get_context('spawn'), or use gemmlab for "
            "the first time in the child"
        )


def find_device(device: Device | int | str | None = None) -> Device:
    """Choose a device by object, index, or part of the name of the device or its platform.

    Raises:
        NoDeviceError: if there is no device at all, or none that fits; the message lists the
            devices.
        TypeError: if `device` is none of these.
        RuntimeError: see `check_process`.
    """
    check_process()
    if isinstance(device, Device):
        return device
    with _creating:
        usable = _find()
    if not usable:
        raise NoDeviceError(WITHOUT_DEVICE)
    if device is None:
        device = os.environ.get("GEMMLAB_DEVICE", "").strip()
        if not device:
            return usable[0]
    if isinstance(device, str) and device.isdecimal():
        device = int(device)
    if isinstance(device, str):
        fits = [d for d in usable if device.lower() in f"{d.name} {d.platform} {d.version}".lower()]
    elif isinstance(device, Integral) and not isinstance(device, bool):
        fits = [d for d in usable if d.index == device]
    else:
        raise TypeError(f"device must be a Device, an index or part of a name, not {device!r}")
    if not fits:
        listed = "; ".join(f"{d.index}: {d}" for d in usable)
        raise NoDeviceError(f"no device fits {device!r}; the devices are {listed}")
    return fits[0]


def of_queue(queue: CommandQueue) -> Device:
    """Return the Device of a PyOpenCL queue. Raises ValueError for a queue that is not in order."""
    if queue.properties & cl.command_queue_properties.OUT_OF_ORDER_EXEC_MODE_ENABLE:
        raise ValueError(
            "the queue runs its commands out of order; a product's launches must follow each other"
        )
    with _creating:
        usable = _find()
    return next((d for d in usable if d.cl == queue.device), None) or _describe(-1, queue.device)

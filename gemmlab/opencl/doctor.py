"""Diagnose a set-up: which devices there are, whether each multiplies correctly, and which command
repairs what does not work.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pyopencl as cl

from .. import environment
from ..version import __version__
from . import devices

#: Where a driver's library may be without being registered, as in containers.
LIBRARY_FOLDERS = (
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib64",
    "/usr/lib64-nvidia",
    "/usr/local/nvidia/lib64",
    "/usr/local/nvidia/lib",
)

#: Names of environment variables that change what the loader, the runtimes or gemmlab find.
VARIABLES = r"(GEMMLAB|OCL|RUSTICL|POCL|PYOPENCL)_|XDG_CACHE_HOME$|\w*_VISIBLE_DEVICES$"

#: GPUs that Linux knows, and the system's description of each.
RENDER_NODES, DRM = Path("/dev/dri"), Path("/sys/class/drm")


#: By the name of a GPU's kernel driver: its vendor, as OpenCL's names of vendors or platforms
#: contain it; rusticl's name of the driver; what installs OpenCL on Debian and Ubuntu.
GPUS = {
    "amdgpu": ("AMD", "radeonsi", "mesa-opencl-icd"),
    "i915": ("Intel", "iris", "intel-opencl-icd"),
    "xe": ("Intel", "iris", "intel-opencl-icd"),
    "nouveau": ("NVIDIA", "nouveau", "nvidia-driver nvidia-opencl-icd"),
}

#: Seconds that a small product may take, with all that must be compiled.
PATIENCE = 180.0

#: What a child process executes for each device: runtimes abort when their caches are damaged.
PRODUCT = """
import sys
from gemmlab import check, matmul
a, b = check.exact_inputs(65, 33, 129)
try:
    print(check.exact(matmul(a, b, device=int(sys.argv[1])), a, b))
except Exception as error:
    print(f"{type(error).__name__}: {error}")
"""


def doctor() -> bool:
    """Print the devices, whether each multiplies correctly, and how to repair what is wrong.

    Returns:
        Whether a device works.
    """
    print(f"gemmlab {__version__}, pyopencl {cl.VERSION_TEXT}, Python {platform.python_version()}")
    works, advice = 0, []
    for d in devices.devices():
        verdict, remedy = product(d)
        works += verdict.startswith("right")
        advice += remedy
        print(f"device {d.index}: {d}, {d.units} compute units, {d.version}")
        print(f"  a 65 x 33 x 129 product: {verdict}")
    for other in devices.listed():
        if devices.trouble(other):
            print(f"not used: {other.name.strip()}: {devices.trouble(other)}")
    print(*loader_facts(), sep="\n")
    for paragraph in [*advice, *findings()]:
        print(f"\n{paragraph}")
    print()
    if works:
        default = devices.default_device()
        print(f"The default is {default}; GEMMLAB_DEVICE or device= chooses another.")
    else:
        print(no_device())
    return works > 0


def product(device: devices.Device) -> tuple[str, list[str]]:
    """The verdict on a small product in a process that may crash, and the remedy if it succeeds
    with an empty cache.
    """
    verdict = _product(device, {})
    if verdict.startswith("right"):
        return verdict, []
    try:
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            empty = {"XDG_CACHE_HOME": folder, "POCL_CACHE_DIR": folder}
            if not _product(device, empty).startswith("right"):
                return verdict, []
    except OSError:  # there is no temporary folder
        return verdict, []
    own = environment.pocl_folder() if "pocl" in device.version.lower() else None
    # other runtimes share a folder with other programs, whose files are theirs
    how = (
        f"Remove them:\n  rm -r {shlex.quote(str(own))}"
        if own
        else ("Name an empty folder for new ones:\n  export XDG_CACHE_HOME=$(mktemp -d)")
    )
    remedy = (
        f"With an empty cache {device.name} computes correctly: compiled kernels are damaged, or "
        f"the disk is full. {how}"
    )
    return verdict, [remedy]


def _product(device: devices.Device, variables: dict[str, str]) -> str:
    command = [sys.executable, "-c", PRODUCT, str(device.index)]
    try:
        done = subprocess.run(
            command,
            env=environment.of_child(**variables),
            capture_output=True,
            text=True,
            errors="replace",
            timeout=PATIENCE,
        )
    except subprocess.TimeoutExpired:
        return f"no answer in {PATIENCE:g} s"
    if done.returncode == 0:
        return done.stdout.strip().splitlines()[-1]
    words = done.stderr.strip().splitlines()[-1:]
    return f"the process died ({done.returncode}): {' '.join(words)}"


def loader_facts() -> Iterator[str]:
    """A line for each platform, for each registered driver, and for each variable that is set."""
    for p in devices.platforms():
        number = 0
        with suppress(cl.Error):  # some runtimes call it an error to have none
            number = len(p.get_devices())
        yield f"platform {p.name.strip()} ({p.version.strip()}): {number or 'no'} devices"
    for file in icd_files():
        yield f"driver {file}: {registered(file)}"
    library, named = devices.intel_library(), os.environ.get("OCL_ICD_VENDORS")
    if library and (named is None or Path(named).is_dir()):
        yield f"driver intel-opencl-rt: {loaded(str(library.resolve()))}"
    for name, value in sorted(os.environ.items()):
        if re.match(VARIABLES, name):
            yield f"variable {name}={value}"


def icd_files() -> list[Path]:
    """The files that register drivers, where the loader looks for them on Linux."""
    named = os.environ.get("OCL_ICD_VENDORS")
    folders = [Path(named) if named else devices.SYSTEM_VENDORS]
    if "CONDA_PREFIX" in os.environ:
        folders.append(Path(os.environ["CONDA_PREFIX"]) / "etc" / "OpenCL" / "vendors")
    if not named or folders[0].is_dir():  # a single file is meant to be alone
        folders.append(Path(cl.__file__).parent / ".libs")  # of drivers from PyPI
    files = [f for folder in folders for f in sorted(folder.glob("*.icd"))]
    return [*([folders[0]] if folders[0].is_file() else []), *files]


def registered(file: Path) -> str:
    """The library that a file registers, and whether the loader can load it."""
    try:
        library = file.read_text(encoding="utf-8").split("\n")[0].strip()
    except (OSError, UnicodeDecodeError) as error:
        return f"it cannot be read: {error}"
    return loaded(library) if library else "it is empty"


def loaded(library: str) -> str:
    try:
        ctypes.CDLL(library)
    except OSError as error:
        return f"{library} cannot be loaded: {error}"
    return f"{library} can be loaded"


def findings() -> Iterator[str]:
    """All problems, a paragraph each, with the command that repairs it."""
    named = os.environ.get("OCL_ICD_VENDORS")
    if named and not Path(named).exists():
        yield f"OCL_ICD_VENDORS={named} is neither a folder nor a file:\n  unset OCL_ICD_VENDORS"
    gpus = [d for d in devices.listed() if d.type & cl.device_type.GPU]
    offered = " ".join(f"{d.vendor} {d.name} {d.platform.name}" for d in gpus).lower()
    library = _nvidia_library()
    if library and "nvidia" not in offered:  # as in many containers
        folder = devices.SYSTEM_VENDORS
        yield (
            f"NVIDIA's OpenCL driver is installed ({library}), but not registered, so no program "
            "finds it. Register it:\n"
            f"  mkdir -p {folder} && echo {library} > {folder}/nvidia.icd\n"
            "or put that file into another folder and set OCL_ICD_VENDORS to that folder."
        )
    yield from idle_gpus(offered)
    yield from limited_systems()
    problem = environment.bad_pocl_folder() or environment.bad_database()
    if problem:
        yield (
            f"Compiled kernels cannot be cached ({problem}). Each process compiles them again, and "
            "without a temporary folder PoCL has no device. Repair that, or name a folder of "
            "yours:\n  export XDG_CACHE_HOME=$(mktemp -d)"
        )


def _nvidia_library() -> str | None:
    candidates = [Path(folder) / "libnvidia-opencl.so.1" for folder in LIBRARY_FOLDERS]
    return next(
        (str(path) for path in candidates if path.exists()),
        ctypes.util.find_library("nvidia-opencl"),
    )


def idle_gpus(offered: str) -> Iterator[str]:
    """GPUs that this user may not open, or that no OpenCL driver offers.

    Args:
        offered: names of the GPUs that drivers offer, in lower case.
    """
    rusticl = next((p for p in devices.platforms() if "rusticl" in p.name.lower()), None)
    fitting = []
    for node in sorted(RENDER_NODES.glob("renderD*")):
        facts = ""
        with suppress(OSError):
            facts = (DRM / node.name / "device" / "uevent").read_text()
        driver = "".join(re.findall(r"^DRIVER=(\S+)", facts, re.MULTILINE))
        if not os.access(node, os.R_OK | os.W_OK):
            yield (
                f"{node} is a GPU that this user may not open. Join its group, then log in again:\n"
                f"  sudo usermod -aG $(stat -c %G {node}) $USER"
            )
        elif driver in GPUS:
            vendor, name, packages = GPUS[driver]
            fitting.append(name)
            if not rusticl and vendor.lower() not in offered:
                yield (
                    f"{node} is a GPU of {vendor}, but no OpenCL driver offers it. On Debian and "
                    f"Ubuntu:\n  sudo apt install {packages}"
                )
    is_idle = rusticl and not any(d.platform == rusticl for d in devices.listed())
    if is_idle and (fitting or not devices.devices()):  # llvmpipe only where nothing else works
        yield (
            "Mesa's rusticl is installed, but enables no driver by itself; radeonsi is for AMD, "
            "iris for Intel, nouveau for NVIDIA, llvmpipe for any CPU:\n"
            f"  export RUSTICL_ENABLE={','.join(dict.fromkeys(fitting)) or 'llvmpipe'}"
        )


def limited_systems() -> Iterator[str]:
    """Drivers of Mesa before 23, and the Windows Subsystem for Linux."""
    for d in devices.listed():
        version = re.match(r"\d+", d.driver_version)
        if "rusticl" in d.platform.name.lower() and version and int(version[0]) < 23:
            yield (
                f"Mesa {d.driver_version} is too old for {d.name.strip()}: it reports wrong limits "
                "of work-groups and wrong times. Products are right, but kernels get small "
                "work-groups, and rates are those of wall-clock times. Install Mesa 23 or later."
            )
    has_gpu = any(d.type & cl.device_type.GPU for d in devices.listed())
    if "microsoft" in platform.release().lower() and not has_gpu:
        yield (
            "This is the Windows Subsystem for Linux. There, Intel's driver offers its GPUs to "
            "OpenCL (sudo apt install intel-opencl-icd), but NVIDIA's and AMD's drivers do not: "
            "for these, install Python and gemmlab in Windows itself."
        )


def no_device() -> str:
    """What to do if no device works: first the command that helps on this system."""
    x86 = platform.machine().lower() in ("x86_64", "amd64")
    intel = environment.install("intel-opencl-rt", "intel-cmplr-lib-rt")
    conda = "conda install -c conda-forge pyopencl pocl"
    commands = []
    if sys.platform.startswith("linux"):
        if x86 and not any(devices.trouble(d) for d in devices.listed()):
            commands += [environment.install("pocl-binary-distribution")]
        commands += [intel] if x86 else []
        commands += ["sudo apt install pocl-opencl-icd"] if shutil.which("apt") else []
    elif sys.platform == "win32" and x86:
        commands += [intel]
    elif sys.platform == "darwin":
        conda += " ocl_icd_wrapper_apple"
    first, *others = dict.fromkeys([*commands, conda])
    lines = ["No OpenCL device works here. This gives you one on the CPU:", f"  {first}"]
    if others:
        lines += ["or one of these:", *(f"  {command}" for command in others)]
    return "\n".join(
        [*lines, "For a GPU, install its vendor's driver; docs/drivers.md says which."]
    )


def another_cpu_runtime() -> bool:
    """Whether a CPU is listed, but its runtime cannot compute on it, as PoCL on a newer CPU."""
    cpus = [d for d in devices.listed() if d.type & cl.device_type.CPU]
    is_intel = any("intel" in d.platform.name.lower() for d in cpus)
    return any(map(devices.trouble, cpus)) and not is_intel

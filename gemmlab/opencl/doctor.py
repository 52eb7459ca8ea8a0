"""Diagnose a set-up: which devices there are, whether each multiplies correctly, and which command
repairs what does not work.
"""

from __future__ import annotations

import os
import platform
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from .. import environment
from ..ladder import sources
from ..version import __version__
from . import devices
from .api import cl

#: Names of environment variables that change what the loader, the runtimes or gemmlab find; not
#: PYOPENCL_HOME, which PyOpenCL sets itself.
VARIABLES = (
    r"(GEMMLAB|OCL|OPENCL|RUSTICL|POCL)_|PYOPENCL_(?!HOME$)|XDG_CACHE_HOME$|\w*_VISIBLE_DEVICES$"
)

#: The folder of the GPUs that Linux knows.
RENDER_NODES = Path("/dev/dri")

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

#: Runtimes for the CPU on PyPI: packages, and for which machines they are.
RUNTIMES = {
    ("pocl-binary-distribution",): "Linux, x86-64; not AMD's processors from 2024 on",
    ("intel-opencl-rt", "intel-cmplr-lib-rt"): "Linux, Windows, x86-64; 0.8 GB, proprietary",
}


def doctor() -> bool:
    """Print the devices, whether each multiplies correctly, and how to repair what is wrong.

    Returns:
        Whether a device works.
    """
    print(f"gemmlab {__version__}, pyopencl {cl.VERSION_TEXT}, Python {platform.python_version()}")
    if sys.platform == "emscripten":
        return _find_gpu_of_browser()
    works, advice = 0, []
    for d in devices.devices():
        verdict, remedy = check_product(d)
        works += verdict.startswith("right")
        advice += remedy
        print(f"device {d.index}: {d}, {d.units} compute units, {d.version}")
        print(f"  a 65 x 33 x 129 product: {verdict}")
    for other in devices.all_devices():
        if devices.device_problem(other):
            print(f"not used: {other.name.strip()}: {devices.device_problem(other)}")
    print(*loader_facts(), sep="\n")
    for paragraph in [*advice, *problems()]:
        print(f"\n{paragraph}")
    print()
    if works:
        default = devices.default_device()
        print(f"The default is {default}; GEMMLAB_DEVICE or device= chooses another.")
    else:
        print(*no_device(), sep="\n")
    return works > 0


def _find_gpu_of_browser() -> bool:
    """Print the GPU of the browser in which Python runs, or why there is none; return whether there
    is one. Only the browser can repair it.
    """
    (browser,) = devices.platforms()
    try:
        (gpu,) = browser.get_devices()
    except cl.Error as error:
        print(error)
        return False
    print(f"This browser's GPU: {gpu.name}. `gemmlab.measure(1, 64)` says whether it is right.")
    return True


def no_device() -> Iterator[str]:
    """List what adds a device, except packages that are installed and do not help."""
    yield "No OpenCL device works here. One of these adds one, on the CPU:"
    yield "  sudo apt install pocl-opencl-icd  # Debian and Ubuntu"
    for packages, machines in RUNTIMES.items():
        if not all(map(environment.is_installed, packages)):
            yield f"  {environment.install_command(*packages)}  # {machines}"
    yield "  conda install -c conda-forge pyopencl pocl  # any; macOS: also ocl_icd_wrapper_apple"
    yield f"For a GPU, install its vendor's driver; {sources.folder('docs')}/drivers.md says which."


def check_product(device: devices.Device) -> tuple[str, list[str]]:
    """Return the verdict on a small product in another process, and a remedy if an empty cache
    helps.
    """
    verdict = _multiply(device, {})
    with suppress(OSError), tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        empty = {"XDG_CACHE_HOME": folder, "POCL_CACHE_DIR": folder}
        if not verdict.startswith("right") and _multiply(device, empty).startswith("right"):
            return verdict, [
                f"With an empty cache {device.name} computes correctly: compiled kernels are "
                "damaged, or the disk is full. Name an empty folder for new ones:\n"
                "  unset POCL_CACHE_DIR; export XDG_CACHE_HOME=$(mktemp -d)"
            ]
    return verdict, []


def _multiply(device: devices.Device, variables: dict[str, str]) -> str:
    command = [sys.executable, "-c", PRODUCT, str(device.index)]
    try:
        done = subprocess.run(
            command,
            env=environment.child_variables(**variables),
            capture_output=True,
            text=True,
            errors="replace",
            timeout=PATIENCE,
        )
    except subprocess.TimeoutExpired:
        return f"no answer in {PATIENCE:g} s"
    if done.returncode == 0:
        return done.stdout.strip().splitlines()[-1]
    last = done.stderr.strip().splitlines()[-1:]
    return f"the process died ({done.returncode}): {' '.join(last)}"


def loader_facts() -> Iterator[str]:
    """List the platforms, the registered drivers, and the variables that are set."""
    for p in devices.platforms():
        number = 0
        with suppress(cl.Error):  # some runtimes call it an error to have none
            number = len(p.get_devices())
        yield f"platform {p.name.strip()} ({p.version.strip()}): {number or 'no'} devices"
    for file in devices.icd_files():
        library = devices.library_in(file)
        yield f"driver {file}: {describe_library(library) if library else 'it is empty'}"
    for library in devices.unregistered_libraries():
        yield f"unregistered driver: {describe_library(library)}"
    for name, value in sorted(os.environ.items()):
        if re.match(VARIABLES, name):
            yield f"variable {name}={value}"


def describe_library(library: str) -> str:
    problem = devices.library_problem(library)
    return f"{library} cannot be loaded: {problem}" if problem else f"{library} can be loaded"


def problems() -> Iterator[str]:
    """Describe all problems, a paragraph each, with the command that repairs it."""
    vendors = os.environ.get("OCL_ICD_VENDORS")
    if vendors and not Path(vendors).exists():
        yield f"OCL_ICD_VENDORS={vendors} is neither a folder nor a file:\n  unset OCL_ICD_VENDORS"
    gpus = [d for d in devices.all_devices() if d.type & cl.device_type.GPU]
    if devices.NVIDIA_LIBRARY in devices.unregistered_libraries():
        yield from unregistered_nvidia(any("nvidia" in d.platform.name.lower() for d in gpus))
    nodes = sorted(RENDER_NODES.glob("renderD*"))
    for node in nodes:
        if not os.access(node, os.R_OK | os.W_OK):
            yield (
                f"{node} is a GPU that this user may not open. Join its group, then log in again:\n"
                f"  sudo usermod -aG $(stat -c %G {node}) $USER"
            )
    if nodes and not gpus:
        yield (
            "There is a GPU, but no OpenCL driver offers it. On Debian and Ubuntu:\n"
            "  sudo apt install intel-opencl-icd   # Intel\n"
            "  sudo apt install nvidia-opencl-icd  # NVIDIA\n"
            "  sudo apt install mesa-opencl-icd && export RUSTICL_ENABLE=radeonsi  # AMD"
        )
    intel = devices.intel_library()
    if intel and " " in str(intel.resolve()):
        yield (
            f"Intel's CPU runtime does not start from a path with a space ({intel.resolve()}). "
            "Use an environment elsewhere; in a clone of gemmlab:\n"
            "  make lab VENV=$HOME/gemmlab-venv"
        )
    problem = environment.pocl_folder_problem() or environment.database_problem()
    if problem:
        yield (
            f"Compiled kernels cannot be cached ({problem}). Each process compiles them again, and "
            "without a temporary folder PoCL has no device. Repair that, or name a folder of "
            "yours:\n  export XDG_CACHE_HOME=$(mktemp -d)"
        )


def unregistered_nvidia(has_gpu: bool) -> Iterator[str]:
    """Explain what it means that no .icd file names NVIDIA's driver, and how to add one."""
    folder, library = devices.icd_folder(), devices.NVIDIA_LIBRARY
    yield (
        "NVIDIA's OpenCL driver is installed, but not registered. gemmlab loads it anyway; other "
        "programs need its registration:\n"
        f"  mkdir -p {folder} && echo {library} > {folder}/nvidia.icd\n"
        "or put that file into another folder and set OCL_ICD_VENDORS to that folder."
    )
    if not has_gpu:
        yield (
            "NVIDIA's OpenCL driver offers no GPU. This shows whether the driver works:\n"
            "  nvidia-smi"
        )


def another_cpu_runtime() -> bool:
    """Whether a CPU is listed, but its runtime cannot compute on it, as PoCL on a newer CPU."""
    cpus = [d for d in devices.all_devices() if d.type & cl.device_type.CPU]
    is_intel = any("intel" in d.platform.name.lower() for d in cpus)
    return any(map(devices.device_problem, cpus)) and not is_intel

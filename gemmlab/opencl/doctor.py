"""Find what is wrong with a set-up, and say in sentences how to repair it."""

from __future__ import annotations

import ctypes.util
import os
import tempfile
from importlib import metadata
from pathlib import Path

from . import devices

#: Where a driver's library may be without being registered, as in containers.
LIBRARY_FOLDERS = (
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib64",
    "/usr/local/nvidia/lib64",
    "/usr/local/nvidia/lib",
)

#: What to do where no device works.
NO_DEVICE = (
    "\nNo OpenCL device works here. Any one of these gives you one on the processor:\n"
    "  pip install 'gemmlab[pocl]'         PoCL (Linux x86-64, processors up to about 2022)\n"
    "  pip install 'gemmlab[intel]'        Intel's CPU runtime (Linux and Windows x86-64, "
    "proprietary, 0.8 GB)\n"
    "  conda install -c conda-forge pocl   a newer PoCL\n"
    "  sudo apt install pocl-opencl-icd    PoCL of Debian or Ubuntu\n"
    "For a GPU install its vendor's driver; on conda also ocl-icd-system, so that it is found."
)


def unregistered_driver() -> str:
    """NVIDIA's OpenCL library is installed but not registered, as in many containers, so that it
    offers no platform.
    """
    if any("nvidia" in d.platform.name.lower() for d in devices.listed()):
        return ""
    name = "libnvidia-opencl.so.1"
    places = [Path(folder) / name for folder in LIBRARY_FOLDERS]
    found = next((str(p) for p in places if p.exists()), None) or ctypes.util.find_library(
        "nvidia-opencl"
    )
    if not found:
        return ""
    return (
        f"NVIDIA's OpenCL driver is installed ({found}), but not registered, so no program finds "
        "it. Register it:\n"
        f"  mkdir -p {devices.SYSTEM_VENDORS} && echo {found} > "
        f"{devices.SYSTEM_VENDORS}/nvidia.icd\n"
        "or put that file into another folder and set OCL_ICD_VENDORS to that folder."
    )


def unwritable_cache() -> str:
    """PoCL keeps compiled kernels in a cache; if it cannot write the cache, it offers no device at
    all.
    """
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    place = Path(os.environ.get("POCL_CACHE_DIR") or Path(base) / "pocl")
    try:
        place.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=place):
            return ""
    except OSError as error:
        return (
            f"PoCL cannot write its cache {place} ({error.strerror}), so it offers no devices. "
            "Make the folder writable, or name another one:\n  export POCL_CACHE_DIR=$(mktemp -d)"
        )


def widgets_out_of_step() -> str:
    """ipywidgets in the kernel and its part in JupyterLab must have matching versions, or sliders
    do not appear.
    """
    try:
        kernel, page = metadata.version("ipywidgets"), metadata.version("jupyterlab_widgets")
    except metadata.PackageNotFoundError as missing:
        return (
            f"{missing.name} is not installed; the notebooks need it for their sliders:\n  pip "
            "install 'gemmlab[lab]'"
        )
    # 8.x matches 3.x, 7.x matches 2.x or 1.x
    if int(kernel.split(".")[0]) - int(page.split(".")[0]) == 5:
        return ""
    return (
        f"ipywidgets {kernel} and its JupyterLab part jupyterlab_widgets {page} do not match, so "
        "sliders will not appear. Upgrade both:\n  pip install --upgrade ipywidgets "
        "jupyterlab_widgets"
    )


def space_in_path() -> str:
    """Intel's CPU runtime does not start if its path contains a space."""
    try:
        place = str(metadata.distribution("intel-opencl-rt").locate_file(""))
    except metadata.PackageNotFoundError:
        return ""
    if " " not in place:
        return ""
    return (
        f"Intel's CPU runtime is installed in {place!r}, and does not start if its path contains a "
        "space. Create the environment elsewhere:\n  python -m venv ~/gemmlab-env"
    )


def findings() -> list[str]:
    """All problems that were found, a paragraph each."""
    return [
        f
        for f in (unregistered_driver(), unwritable_cache(), widgets_out_of_step(), space_in_path())
        if f
    ]

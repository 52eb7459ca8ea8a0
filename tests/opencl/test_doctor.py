"""The doctor explains each situation that keeps people from starting, with the command to type."""

import os
import subprocess
import sys
from types import SimpleNamespace

import pyopencl as cl
import pytest

import gemmlab
from gemmlab import environment
from gemmlab.opencl import devices, doctor

CPU, GPU = cl.device_type.CPU, cl.device_type.GPU


def run_doctor(**environment) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-m", "gemmlab", "doctor"],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
    )


def platform_of(name: str) -> SimpleNamespace:
    return SimpleNamespace(name=name, version="OpenCL 3.0 ", get_devices=lambda: [])


def listed(platform: str, **facts) -> SimpleNamespace:
    """A device that a runtime lists."""
    defaults = {"name": "a device", "vendor": "a vendor", "driver_version": "1.0", "type": 0}
    return SimpleNamespace(platform=platform_of(platform), **(defaults | facts))


def offer(monkeypatch, platform: str | None, *offered) -> None:
    """Make the loader report this platform, and these devices."""
    platforms = () if platform is None else (platform_of(platform),)
    monkeypatch.setattr(devices, "platforms", lambda: platforms)
    monkeypatch.setattr(devices, "listed", lambda: offered)


def test_every_device_multiplies_in_the_end(capsys, any_device):
    assert gemmlab.doctor() is True
    verdict = "a 65 x 33 x 129 product: right"
    assert capsys.readouterr().out.count(verdict) == len(devices.devices())


def test_a_home_that_cannot_be_written_costs_no_device(tmp_path):
    (tmp_path / "file").touch()
    done = run_doctor(XDG_CACHE_HOME=str(tmp_path / "file" / "cache"), POCL_CACHE_DIR="")
    assert done.returncode == 0 and "export XDG_CACHE_HOME=" in done.stdout
    assert done.stdout.count("product: right") == done.stdout.count("\ndevice ")


def test_no_platform_at_all(tmp_path):
    done = run_doctor(OCL_ICD_VENDORS=str(tmp_path / "nothing"))
    assert done.returncode == 1
    for word in ("No OpenCL device works here", "pip install", "conda install", "driver"):
        assert word in done.stdout
    assert "unset OCL_ICD_VENDORS" in done.stdout


@pytest.fixture
def advice(tmp_path, monkeypatch):
    """A function that returns the doctor's advice on a machine with this platform, GPU and devices.

    The GPU is the name of its kernel driver; `accessible` says whether the user may open it.
    """

    def given(platform: str | None, gpu: str = "", *offered, accessible: bool = True) -> str:
        monkeypatch.setattr(doctor, "RENDER_NODES", tmp_path / gpu / "dri")
        monkeypatch.setattr(doctor, "DRM", tmp_path / gpu / "drm")
        if gpu:
            (tmp_path / gpu / "dri").mkdir(parents=True, exist_ok=True)
            (tmp_path / gpu / "dri" / "renderD128").touch()
            node = tmp_path / gpu / "drm" / "renderD128" / "device"
            node.mkdir(parents=True, exist_ok=True)
            (node / "uevent").write_text(f"DRIVER={gpu}\n")
        monkeypatch.setattr(doctor.os, "access", lambda *given: accessible)
        offer(monkeypatch, platform, *offered)
        return "\n".join(doctor.findings())

    monkeypatch.setattr(doctor, "LIBRARY_FOLDERS", (str(tmp_path),))
    monkeypatch.setattr(doctor.ctypes.util, "find_library", lambda name: None)
    return given


def test_a_driver_that_is_not_registered(tmp_path, advice):
    assert advice(None) == ""
    (tmp_path / "libnvidia-opencl.so.1").touch()
    assert f"echo {tmp_path}/libnvidia-opencl.so.1 >" in advice(None)
    assert advice(None, "", listed("NVIDIA CUDA", type=GPU)) == ""


def test_a_cache_that_cannot_be_written(tmp_path, monkeypatch, advice):
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file" / "cache"))
    monkeypatch.delenv("POCL_CACHE_DIR", raising=False)
    environment.bad_pocl_folder.cache_clear()
    try:
        said = advice(None)
    finally:
        environment.bad_pocl_folder.cache_clear()
    assert str(tmp_path / "file") in said and "export XDG_CACHE_HOME=" in said


@pytest.mark.parametrize(
    ("driver", "package", "variable", "platform"),
    [
        ("i915", "intel-opencl-icd", "iris", "Intel(R) OpenCL Graphics"),
        ("amdgpu", "mesa-opencl-icd", "radeonsi", "AMD Accelerated Parallel Processing"),
        ("nouveau", "nvidia-opencl-icd", "nouveau", "NVIDIA CUDA"),
    ],
)
def test_a_gpu_that_no_driver_offers(advice, driver, package, variable, platform):
    # Intel's runtime for CPUs does not support its GPUs
    assert package in advice(None, driver, listed("Intel(R) OpenCL", vendor="Intel", type=CPU))
    assert advice(None, driver, listed(platform, type=GPU)) == ""
    assert f"export RUSTICL_ENABLE={variable}" in advice("rusticl", driver)
    assert "platform rusticl (OpenCL 3.0): no devices" in doctor.loader_facts()
    denied = advice(None, driver, accessible=False)
    assert "renderD128" in denied and "sudo usermod -aG" in denied


def test_a_mesa_that_is_too_old_is_named(monkeypatch):
    offer(monkeypatch, "rusticl", listed("rusticl", driver_version="22.3.6"))
    assert "Mesa 22.3.6 is too old" in "".join(doctor.limited_systems())
    offer(monkeypatch, "rusticl", listed("rusticl", driver_version="23.1.0"))
    assert not [*doctor.limited_systems()]


def test_windows_subsystem_for_linux(monkeypatch):
    offer(monkeypatch, None)
    assert not [*doctor.limited_systems()]
    monkeypatch.setattr(doctor.platform, "release", lambda: "5.15.90.1-microsoft-standard-WSL2")
    assert "Windows Subsystem" in "".join(doctor.limited_systems())
    offer(monkeypatch, None, listed("Intel(R) OpenCL Graphics", type=GPU))
    assert not [*doctor.limited_systems()]


def test_rusticl_without_a_gpu_is_mentioned_only_if_nothing_else_works(monkeypatch, advice):
    monkeypatch.setattr(devices, "devices", lambda: [])
    assert "export RUSTICL_ENABLE=llvmpipe" in advice("rusticl")
    monkeypatch.setattr(devices, "devices", lambda: ["PoCL"])
    assert advice("rusticl") == ""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="other systems have no .icd files")
@pytest.mark.parametrize("text", ["", "libnowhere.so.1\n"])
def test_a_bad_icd_file(tmp_path, text, monkeypatch):
    (tmp_path / "bad.icd").write_text(text)
    monkeypatch.setenv("OCL_ICD_VENDORS", str(tmp_path))
    lines = "\n".join(doctor.loader_facts())
    assert (
        f"driver {tmp_path}/bad.icd: " in lines and f"variable OCL_ICD_VENDORS={tmp_path}" in lines
    )
    assert ("libnowhere.so.1: cannot open" if text else "it is empty") in lines


def test_damaged_kernels_are_the_diagnosis_if_an_empty_cache_helps(monkeypatch, any_device):
    """PoCL aborts the process that loads a damaged library."""
    program = "import os\nif 'POCL_CACHE_DIR' not in os.environ: os.abort()\nprint('right')"
    monkeypatch.setattr(doctor, "PRODUCT", program)
    monkeypatch.delenv("POCL_CACHE_DIR", raising=False)
    verdict, remedy = doctor.product(any_device)
    own = "pocl" in any_device.version.lower()
    assert "the process died" in verdict
    assert ("rm -r " if own else "export XDG_CACHE_HOME=") in remedy[0]
    assert "rm -r" not in remedy[0] or own, "nothing of other programs is removed"


@pytest.mark.parametrize(
    ("system", "machine", "command"),
    [
        ("linux", "x86_64", "-m pip install pocl-binary-distribution"),
        ("linux", "aarch64", "conda install -c conda-forge pyopencl pocl"),
        ("darwin", "arm64", "conda install -c conda-forge pyopencl pocl ocl_icd_wrapper_apple"),
        ("win32", "AMD64", "-m pip install intel-opencl-rt intel-cmplr-lib-rt"),
    ],
)
def test_the_first_command_fits_the_system(monkeypatch, system, machine, command):
    offer(monkeypatch, None)
    monkeypatch.setattr(doctor.sys, "platform", system)
    monkeypatch.setattr(doctor.platform, "machine", lambda: machine)
    monkeypatch.setattr(doctor.shutil, "which", lambda name: None)
    assert command in doctor.no_device().splitlines()[1]


def test_another_runtime_is_added_only_where_one_cannot_compute(monkeypatch):
    offer(monkeypatch, None)
    assert not doctor.another_cpu_runtime()
    pocl, intel = (listed(name, type=CPU) for name in ("Portable Computing Language", "Intel"))
    for trouble in ("", "older than this processor"):
        monkeypatch.setattr(devices, "trouble", lambda device, trouble=trouble: trouble)
        offer(monkeypatch, None, pocl)
        assert doctor.another_cpu_runtime() is bool(trouble), "a full disk needs no other runtime"
        offer(monkeypatch, None, pocl, intel)
        assert not doctor.another_cpu_runtime()

"""The doctor explains each situation that keeps people from starting, with the command to type."""

import sys
from types import SimpleNamespace

import pyopencl as cl
import pytest
from conftest import run_python

import gemmlab
from gemmlab.opencl import devices, doctor

CPU, GPU = cl.device_type.CPU, cl.device_type.GPU


def offer(monkeypatch, *offered: tuple[str, int]) -> None:
    """Make the loader list devices of these platforms and types."""
    found = [SimpleNamespace(platform=SimpleNamespace(name=n), type=kind) for n, kind in offered]
    monkeypatch.setattr(devices, "all_devices", lambda: found)


def test_every_device_multiplies_in_the_end(capsys, any_device):
    assert gemmlab.doctor() is True
    verdict = "a 65 x 33 x 129 product: right"
    assert capsys.readouterr().out.count(verdict) == len(devices.devices())


def test_a_home_that_cannot_be_written_costs_no_device(tmp_path):
    (tmp_path / "file").touch()
    nowhere = {"XDG_CACHE_HOME": str(tmp_path / "file" / "cache"), "POCL_CACHE_DIR": ""}
    done = run_python("-m", "gemmlab", "doctor", **nowhere)
    assert done.returncode == 0 and "export XDG_CACHE_HOME=" in done.stdout
    assert done.stdout.count("product: right") == done.stdout.count("\ndevice ")


@pytest.fixture
def advice(tmp_path, monkeypatch):
    """A function that returns the doctor's advice if these devices are offered."""

    def given(*offered) -> str:
        offer(monkeypatch, *offered)
        return "\n".join(doctor.problems())

    monkeypatch.setattr(doctor, "RENDER_NODES", tmp_path)
    monkeypatch.setattr(devices, "unregistered_libraries", lambda: [])
    monkeypatch.setattr(devices, "intel_library", lambda: None)
    assert given() == ""
    return given


def test_a_driver_that_is_not_registered(monkeypatch, advice):
    monkeypatch.setattr(devices, "unregistered_libraries", lambda: [devices.NVIDIA_LIBRARY])
    register, examine = "echo libnvidia-opencl.so.1 >", "nvidia-smi"
    assert register in advice() and examine in advice()
    with_gpu = advice(("NVIDIA CUDA", GPU))
    assert register in with_gpu and examine not in with_gpu


def test_a_gpu_that_no_driver_offers_or_that_may_not_be_opened(tmp_path, monkeypatch, advice):
    (tmp_path / "renderD128").touch()
    assert "intel-opencl-icd" in advice(("Intel(R) OpenCL", CPU)), "not what offers the GPU"
    assert advice(("Intel(R) OpenCL Graphics", GPU)) == ""
    monkeypatch.setattr(doctor.os, "access", lambda *given: False)
    assert "sudo usermod -aG" in advice()


def test_intels_runtime_in_a_path_with_a_space(tmp_path, monkeypatch, advice):
    for folder, remedy in (("words", False), ("two words", True)):
        library = tmp_path / folder / "libintelocl.so"
        monkeypatch.setattr(devices, "intel_library", lambda library=library: library)
        assert ("make lab VENV=" in advice()) is remedy


def test_no_package_is_advised_that_is_installed(monkeypatch):
    for there in (True, False):
        monkeypatch.setattr(doctor.environment, "is_installed", lambda package, there=there: there)
        assert any("intel-opencl-rt" in line for line in doctor.no_device()) is not there


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
    verdict, remedy = doctor.check_product(any_device)
    assert "the process died" in verdict and "export XDG_CACHE_HOME=" in remedy[0]


def test_another_runtime_is_added_only_where_one_cannot_compute(monkeypatch):
    pocl, intel = ("Portable Computing Language", CPU), ("Intel(R) OpenCL", CPU)
    for trouble in ("", "older than this processor"):
        monkeypatch.setattr(devices, "device_problem", lambda device, trouble=trouble: trouble)
        offer(monkeypatch, pocl)
        assert doctor.another_cpu_runtime() is bool(trouble), "a full disk needs no other runtime"
        offer(monkeypatch, pocl, intel)
        assert not doctor.another_cpu_runtime()
    offer(monkeypatch)
    assert not doctor.another_cpu_runtime()

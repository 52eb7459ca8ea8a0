"""The doctor explains each situation that keeps people from starting, with the command to type."""

import os
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

from gemmlab.opencl import devices, doctor


class Nowhere:
    """A platform list without NVIDIA."""

    platform = type("Platform", (), {"name": "Portable Computing Language"})


def run_doctor(**environment) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-m", "gemmlab", "doctor"],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
    )


def test_no_platform_at_all(tmp_path):
    done = run_doctor(OCL_ICD_VENDORS=str(tmp_path / "nothing"))
    assert done.returncode == 1
    for word in (
        "No OpenCL device works here",
        "pip install",
        "conda install",
        "apt install",
        "driver",
    ):
        assert word in done.stdout


def test_a_driver_that_is_not_registered(tmp_path, monkeypatch):
    monkeypatch.setattr(devices, "listed", lambda: (Nowhere,))
    monkeypatch.setattr(doctor, "LIBRARY_FOLDERS", (str(tmp_path),))
    monkeypatch.setattr(doctor.ctypes.util, "find_library", lambda name: None)
    assert doctor.unregistered_driver() == ""
    (tmp_path / "libnvidia-opencl.so.1").touch()
    said = doctor.unregistered_driver()
    assert (
        f"echo {tmp_path}/libnvidia-opencl.so.1 >" in said
        and "nvidia.icd" in said
        and "OCL_ICD_VENDORS" in said
    )
    Nowhere.platform.name = "NVIDIA CUDA"
    try:
        assert doctor.unregistered_driver() == ""
    finally:
        Nowhere.platform.name = "Portable Computing Language"


@pytest.mark.parametrize("variable", ["POCL_CACHE_DIR", "XDG_CACHE_HOME"])
def test_a_cache_that_cannot_be_written(variable, tmp_path, monkeypatch):
    monkeypatch.delenv("POCL_CACHE_DIR", raising=False)
    monkeypatch.setenv(variable, str(tmp_path / "good"))
    assert doctor.unwritable_cache() == ""
    blocked = tmp_path / "a file"
    blocked.touch()
    monkeypatch.setenv(variable, str(blocked / "cache"))
    said = doctor.unwritable_cache()
    assert str(blocked) in said and "export POCL_CACHE_DIR=" in said


@pytest.mark.parametrize(
    ("kernel", "page", "fine"),
    [("8.1.9", "3.0.17", True), ("7.7.1", "3.0.17", False), ("8.1.9", "1.1.1", False)],
)
def test_widgets_of_two_generations(kernel, page, fine, monkeypatch):
    versions = {"ipywidgets": kernel, "jupyterlab_widgets": page}
    monkeypatch.setattr(doctor.metadata, "version", versions.__getitem__)
    said = doctor.widgets_out_of_step()
    assert (
        said == "" if fine else kernel in said and page in said and "pip install --upgrade" in said
    )


def test_widgets_that_are_not_installed(monkeypatch):
    def missing(name):
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(doctor.metadata, "version", missing)
    assert "pip install 'gemmlab[lab]'" in doctor.widgets_out_of_step()


def test_a_path_with_a_space(monkeypatch):
    class Installed:
        place = Path("/home/me/my environment/lib")

        def locate_file(self, name):
            return self.place

    monkeypatch.setattr(doctor.metadata, "distribution", lambda name: Installed())
    assert "my environment" in doctor.space_in_path() and "python -m venv" in doctor.space_in_path()
    Installed.place = Path("/home/me/environment/lib")
    assert doctor.space_in_path() == ""


def test_every_device_multiplies_in_the_end():
    done = run_doctor()
    assert done.returncode == 0, done.stdout
    assert done.stdout.count("a 65 x 33 x 129 product: right") == len(devices.devices()) > 0

"""Which device is meant, and in which process it can be used."""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np
import pytest
from conftest import lacking, run_python

import gemmlab
from gemmlab.opencl import devices
from gemmlab.opencl.devices import find_device


def test_blanks_around_the_variable(any_device, monkeypatch):
    """Windows' `set GEMMLAB_DEVICE=0 & ...` leaves one, and "0 " is part of "OpenCL 3.0 PoCL"."""
    monkeypatch.setenv("GEMMLAB_DEVICE", "0 ")
    assert gemmlab.default_device().index == 0
    monkeypatch.setenv("GEMMLAB_DEVICE", " ")
    assert gemmlab.default_device() is find_device(np.int64(0))


@pytest.mark.parametrize("name", ["no such thing", 99])
def test_what_fits_no_device_is_named_with_the_devices_that_there_are(
    name, any_device, monkeypatch
):
    x = np.ones((4, 4), np.float32)
    with pytest.raises(gemmlab.NoDeviceError, match=re.escape(f"0: {find_device(0)}")) as error:
        gemmlab.matmul(x, x, device=name)
    assert repr(name) in str(error.value)
    monkeypatch.setattr("gemmlab.opencl.devices._find", lambda: ())
    with pytest.raises(gemmlab.NoDeviceError, match="gemmlab doctor"):
        gemmlab.matmul(x, x)


def test_without_a_device_a_notebook_shows_a_sentence(tmp_path):
    nothing = {"OCL_ICD_VENDORS": str(tmp_path / "nothing"), "IPYTHONDIR": str(tmp_path)}
    done = run_python("-m", "IPython", "-c", "import gemmlab; gemmlab.default_device()", **nothing)
    assert "gemmlab.doctor()" in done.stdout and "Traceback" not in done.stdout + done.stderr


@pytest.mark.system
def test_oclgrind_computes_where_it_is_alone_but_is_no_gpu(tmp_path):
    if not shutil.which("oclgrind"):
        lacking("Oclgrind is not installed")
    text = (
        "import gemmlab; from gemmlab import check; a, b = check.exact_inputs(5, 6, 7)\n"
        "print(gemmlab.default_device().kind, check.exact(gemmlab.matmul(a, b), a, b).ok)"
    )
    nothing = {"OCL_ICD_VENDORS": str(tmp_path / "nothing"), "GEMMLAB_DEVICE": ""}
    command = ["oclgrind", sys.executable, "-c", text]
    done = subprocess.run(command, env={**os.environ, **nothing}, capture_output=True, text=True)
    assert done.stdout.split() == ["other", "True"], done.stderr


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_process_is_told_and_does_not_hang(any_device):
    """PoCL's threads are not in the copy, which would wait for them for ever."""
    a = np.ones((40, 40), np.float32)
    gemmlab.matmul(a, a, device=any_device)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python warns of threads, too
        child = os.fork()
    if child == 0:
        signal.alarm(60)
        try:
            gemmlab.matmul(a, a, device=any_device)
        except RuntimeError as error:
            os._exit(0 if "forked" in str(error) else 1)
        finally:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert np.array_equal(gemmlab.matmul(a, a, device=any_device), a @ a)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="other systems have no .icd files")
@pytest.mark.parametrize(
    ("registered", "loads", "added"),
    [
        ([], True, True),
        ([], False, False),
        (["libother.so.1"], True, True),
        (["libother.so.1", "{nvidia}"], True, False),
        (["/moved/libnvidia-opencl.so.1"], True, True),
    ],
)
def test_nvidias_driver_needs_no_icd_file(registered, loads, added, tmp_path, monkeypatch):
    """The loader gets it besides what is registered, and nothing remains of that."""
    nvidia, vendors, temporary = (tmp_path / name for name in ("libnvidia.so", "icd", "tmp"))
    if loads:
        maps = Path("/proc/self/maps").read_text().split()
        nvidia.symlink_to(next(word for word in maps if re.search(r"/libc[.-]", word)))
    drivers = {name.format(nvidia=nvidia) for name in registered}
    vendors.mkdir()
    for number, driver in enumerate(drivers):
        (vendors / f"{number}.icd").write_text(f"{driver}\n")
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    monkeypatch.setattr(devices, "NVIDIA_LIBRARY", str(nvidia))
    monkeypatch.setattr(devices, "intel_library", lambda: None)
    monkeypatch.setenv("OCL_ICD_VENDORS", str(vendors))
    seen = []

    def get_platforms():
        files = Path(os.environ["OCL_ICD_VENDORS"]).glob("*.icd")
        seen.extend(file.read_text().strip() for file in files)
        return []

    monkeypatch.setattr("pyopencl.get_platforms", get_platforms)
    devices.platforms()
    assert sorted(seen) == sorted(drivers | ({str(nvidia)} if added else set()))
    assert os.environ["OCL_ICD_VENDORS"] == str(vendors) and not any(temporary.iterdir())


@pytest.mark.parametrize("chosen", ["only.icd", "nowhere"])
def test_nothing_is_added_to_a_single_runtime(chosen, tmp_path, monkeypatch):
    (tmp_path / "only.icd").write_text("libother.so.1\n")
    monkeypatch.setattr(devices, "library_problem", lambda library: "")
    monkeypatch.setenv("OCL_ICD_VENDORS", str(tmp_path / chosen))
    assert devices.unregistered_libraries() == []

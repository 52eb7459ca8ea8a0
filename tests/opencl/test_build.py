"""Compiling where PyOpenCL can keep nothing, and errors that travel."""

import os
import pickle

import pyopencl.cache
import pyopencl.characterize
import pytest

import gemmlab
from gemmlab.opencl import build


def test_an_error_travels_to_another_process(any_device):
    with pytest.raises(gemmlab.BuildError) as raised:
        gemmlab.measure(1, 32, source="__kernel void gemm(int M) { wrong }", device=any_device)
    assert raised.value.__context__ is None  # Dask's workers send that, too, and PyOpenCL's errors cannot be sent
    copy = pickle.loads(pickle.dumps(raised.value))
    assert (str(copy), copy.log) == (str(raised.value), raised.value.log) and "wrong" in str(copy)


def test_a_text_that_is_none(any_device):
    with pytest.raises(TypeError, match="source must be OpenCL C text, not int: 3"):
        gemmlab.measure(1, 32, source=3, device=any_device)


@pytest.fixture
def full_disk(monkeypatch):
    """PyOpenCL keeps what the runtime compiles, as it does for those that keep nothing themselves, and fails."""

    def full(*arguments, **options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pyopencl.characterize, "has_src_build_cache", lambda device: False)
    monkeypatch.setattr(pyopencl.cache, "_create_built_program_from_source_cached", full)
    build._build.cache_clear()
    forget = build._keeps_binaries.cache_clear
    forget()
    yield
    forget()


def test_kernels_compile_without_a_folder_for_binaries(any_device, full_disk, tmp_path, monkeypatch, recwarn):
    (tmp_path / "blocked").write_text("no folder")
    monkeypatch.setattr(build, "user_cache_path", lambda *names: tmp_path / "blocked")
    assert gemmlab.kernel(1, {"TS": 4}, any_device).local_size == (4, 4)
    assert not [w for w in recwarn if "caching failed" in str(w.message)]


def test_a_disk_that_is_full_costs_a_warning(any_device, full_disk, monkeypatch):
    monkeypatch.setattr(build, "_keeps_binaries", lambda: True)
    with pytest.warns(UserWarning, match="caching failed"):
        assert gemmlab.kernel(1, {"TS": 4}, any_device).local_size == (4, 4)


def test_a_lock_that_a_killed_process_left_is_removed(any_device, tmp_path, monkeypatch):
    """And one that is another's is left alone: it is not the same for long."""
    lock, slept = tmp_path / "a version" / "lock", []
    lock.parent.mkdir()
    lock.touch()
    monkeypatch.setattr(build, "user_cache_path", lambda *names: tmp_path)
    monkeypatch.setattr(build.time, "sleep", lambda seconds: (slept.append(seconds), os.utime(lock, (1, 1))))
    build._remove_old_lock()
    assert lock.exists() and slept == [0.05]
    monkeypatch.setattr(build.time, "sleep", slept.append)
    assert gemmlab.kernel(1, {"TS": 7}, any_device).local_size == (7, 7)
    assert not lock.exists() and sum(slept) < 5

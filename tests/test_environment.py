"""Products work where a home is missing, read-only or full, and where caches are damaged."""

import contextlib
import os
import sqlite3
import threading
from pathlib import Path

import pytest
from conftest import run_python

import gemmlab
from gemmlab import environment

posix = pytest.mark.skipif(os.name == "nt", reason="folders and permissions are those of Unix")

PRODUCT = """
import sys
import numpy as np
import gemmlab
a = np.ones((9, 9), np.float32)
for device in gemmlab.devices():
    assert (gemmlab.matmul(a, a, device=device) == 9).all()
print(*gemmlab.devices(), sep="; ")
"""


def multiply(**variables: str) -> str:
    """The devices of a process with these variables, all of which multiplied correctly."""
    done = run_python("-c", PRODUCT, PYOPENCL_BUILD_OPTIONS="-cl-opt-disable", **variables)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@posix
def test_products_work_without_any_folder_for_caches(tmp_path, any_device):
    (tmp_path / "file").touch()
    nowhere = str(tmp_path / "file" / "cache")
    found = multiply(XDG_CACHE_HOME=nowhere, POCL_CACHE_DIR=nowhere)
    assert found == "; ".join(map(str, gemmlab.devices()))


def test_products_work_with_a_bad_database_of_pyopencl(tmp_path, caches, any_device):
    """Another process holds it; then it is damaged; then it is no file."""
    variables = {"XDG_CACHE_HOME": str(tmp_path), "POCL_CACHE_DIR": str(caches / "pocl")}
    multiply(**variables)
    (database,) = (tmp_path / "pytools").glob("pdict-*pyopencl-invoker*.sqlite")
    with contextlib.closing(sqlite3.connect(database)) as lock:
        lock.execute("BEGIN EXCLUSIVE")
        multiply(**variables)
    database.write_bytes(b"garbage" * 1000)
    multiply(**variables)
    database.unlink()
    database.mkdir()
    multiply(**variables)


@posix
def test_a_child_gets_no_variable_that_another_thread_sets_for_a_moment():
    found: list[dict[str, str]] = []
    child = threading.Thread(target=lambda: found.append(environment.child_variables(OWN="2")))
    with environment.variables({"GEMMLAB_MOMENT": "1"}):
        child.start()
        child.join(0.2)
    child.join()
    assert "GEMMLAB_MOMENT" not in found[0] and found[0]["OWN"] == "2"


def test_without_a_home_pocl_takes_no_kernels_from_tmp(monkeypatch):
    for name in ("POCL_CACHE_DIR", "XDG_CACHE_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    environment.pocl_folder_problem.cache_clear()
    environment.pocl_variables.cache_clear()
    try:
        folder = Path(environment.pocl_variables()["POCL_CACHE_DIR"])
        assert folder.stat().st_mode & 0o777 == 0o700
    finally:
        environment.pocl_folder_problem.cache_clear()
        environment.pocl_variables.cache_clear()


@posix
def test_folders_that_must_not_be_used(tmp_path, monkeypatch):
    good = tmp_path / "a" / "b"
    assert environment.folder_problem(good) == "" and not good.exists()
    blocked = tmp_path / "file"
    blocked.touch()
    assert str(blocked) in environment.folder_problem(blocked / "cache")
    open_to_all = tmp_path / "open"
    open_to_all.mkdir()
    open_to_all.chmod(0o777)
    assert "every user can write" in environment.folder_problem(open_to_all)
    assert "every user can write" in environment.folder_problem(open_to_all / "pocl")
    good.mkdir(parents=True)
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    if os.getuid():
        assert "another user" in environment.folder_problem(good)
    monkeypatch.setattr(environment, "ROOM", 2**62)
    assert "no space" in environment.folder_problem(tmp_path)


def test_a_missing_package_is_named_with_the_command_that_installs_it():
    code = "import sys, gemmlab; sys.modules['ipywidgets'] = None; gemmlab.Explorer"
    done = run_python("-c", code)
    assert "ModuleNotFoundError" in done.stderr and "-m pip install ipywidgets" in done.stderr

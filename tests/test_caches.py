"""What is remembered in memory, and what on disk."""

import contextlib
import importlib
import pkgutil

import numpy as np
import pytest

import gemmlab
from gemmlab import caches, cli
from gemmlab.generate import candidates
from gemmlab.measurement import peaks

#: Modules whose caches hold what is the same for as long as the process runs.
LASTING = {
    "gemmlab.environment",
    "gemmlab.opencl.devices",
    "gemmlab.sandbox.client",
    "gemmlab.ladder.header",
    "clscope.builtins",
    "clscope.memory",
    "clscope.types",
}


def remembering() -> dict[str, int]:
    """How many results each cache of the package's functions holds, by the function's name."""
    held = {}
    for found in pkgutil.walk_packages(gemmlab.__path__, "gemmlab."):
        if found.name.endswith("__main__"):
            continue
        with contextlib.suppress(ModuleNotFoundError):  # of an optional dependency
            module = importlib.import_module(found.name)
            for name, value in vars(module).items():
                own = hasattr(value, "cache_info") and value.__module__ == module.__name__
                if own and value.__module__ not in LASTING:
                    held[f"{module.__name__}.{name}"] = value.cache_info().currsize
    return held


def test_clearing_empties_every_cache_in_memory(any_device, fresh):
    a = np.ones((8, 8), np.float32)
    gemmlab.matmul(a, a, device=any_device)
    gemmlab.matmul(a, a, device=any_device, kernel="family")
    gemmlab.measure(1, 16, device=any_device, repeats=1)
    assert sum(map(bool, remembering().values())) > 5
    gemmlab.clear_caches()
    assert {name: held for name, held in remembering().items() if held} == {}


@pytest.fixture
def own_folder(tmp_path, monkeypatch):
    monkeypatch.setattr(caches, "folder", lambda: tmp_path / "gemmlab")


def test_only_forgetting_deletes_what_was_measured_and_tuned(own_folder, any_device, fresh):
    one = candidates.kernel_for(any_device, (64, 64, 64))
    candidates.record_winner(any_device, (64, 64, 64), "float32", one)
    peaks.highest.write(any_device.identity, [1e6, 1e6])
    gemmlab.clear_caches()
    assert len(candidates.winners.read()) == len(peaks.highest.read()) == 1
    for _ in range(2):  # also where nothing is left
        assert cli.main(["forget"]) == 0
        assert candidates.winners.read() == peaks.highest.read() == {}

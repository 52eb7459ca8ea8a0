"""The code in README and in the documentation runs as it stands, as a script, on every runtime."""

import re
from pathlib import Path

import pytest
from conftest import run_python

import gemmlab

ROOT = Path(__file__).resolve().parent.parent
#: Other blocks: pages in docs/ quote sources, and tests/distributed runs the product on workers.
DOCUMENTS = ["README.md", "docs/programs.md", "docs/colab.md"]


def blocks(text: str) -> list[str]:
    """The blocks of Python in a document."""
    return re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


ALL = {
    f"{name}-{number}": block
    for name in DOCUMENTS
    for number, block in enumerate(blocks((ROOT / name).read_text(encoding="utf-8")), 1)
}
SCRIPTS = {name: block for name, block in ALL.items() if "import distributed" not in block}
#: What type checkers accept and, in the lines marked with `type: ignore`, refuse.
TYPED = """
import numpy as np
import pyopencl.array as cla

import gemmlab


def on_device(x: cla.Array, y: cla.Array) -> cla.Array:
    return gemmlab.matmul(x, y, out=gemmlab.sgemm(np.float32(2), x, y, trans_b=1))


def mixed(a: np.ndarray, x: cla.Array) -> None:
    gemmlab.matmul(a, x)  # type: ignore


class Tensor:
    def __dlpack__(self, *, stream: int | None = None) -> object:
        return stream


def of_another_library(t: Tensor, a: np.ndarray, x: cla.Array) -> np.ndarray:
    gemmlab.matmul(t, x)  # type: ignore
    return gemmlab.matmul(t, gemmlab.sgemm(2, a, t, 1, t), out=a)


a = np.ones((64, 64), np.float32)
c = gemmlab.matmul(a, a, kernel="warp_tiling", edges="pad", device=0)
c += gemmlab.hgemm(1j, a, a, 1.0, c, overwrite_c=True)
gemmlab.matmul(a, a.tolist())  # type: ignore
gemmlab.matmul(a, a, precison="tf32x3")  # type: ignore
gemmlab.matmul(a, a, precision="tf32x4")  # type: ignore
gemmlab.matmul(a, a, edges="gard")  # type: ignore
gemmlab.matmul(a, a, kernel=6.0)  # type: ignore
gemmlab.gemm(1, a, a, trans_a="X")  # type: ignore
gemmlab.simulate(6, order="wraps")  # type: ignore
gemmlab.auto(64, 64, 64, precision="half")  # type: ignore
gflops: float = gemmlab.measure("warp_tiling", 512).gflops
is_right: bool = gemmlab.trial(6, params={"TSM": 64}, budget=0.5).ok
gemmlab.trial(6, repaets=3)  # type: ignore
"""


def test_blocks_are_found():
    assert blocks("a\n```python\nb\n```\n```sh\nc\n```\n```python\nd\n```\n") == ["b\n", "d\n"]
    assert {name.partition("-")[0] for name in SCRIPTS} == set(DOCUMENTS)


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_block_runs_as_a_script(name, device, tmp_path):
    script = tmp_path / "script.py"
    script.write_text(SCRIPTS[name], encoding="utf-8")
    options, chosen = ["-W", "error::DeprecationWarning:__main__"], str(device.index)
    done = run_python(*options, "script.py", folder=tmp_path, GEMMLAB_DEVICE=chosen)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.system
def test_type_checkers_accept_the_blocks_and_refuse_mistakes(tmp_path, pytestconfig):
    """Of a `type: ignore` that hides no error, mypy says so."""
    pytest.importorskip("mypy")
    chosen = [block for name, block in ALL.items() if "colab" not in name]
    for number, text in enumerate([TYPED, *chosen]):
        (tmp_path / f"script_{number}.py").write_text(text, encoding="utf-8")
    cache = str(pytestconfig.cache.mkdir("mypy"))
    options = ["--strict", "--untyped-calls-exclude", "dask", "--cache-dir", cache]
    done = run_python("-m", "mypy", *options, ".", folder=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_public_name_is_listed():
    page = (ROOT / "docs" / "programs.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| [a-z].*$", page.partition("## What is public")[2], re.MULTILINE)
    listed = re.findall(r"`(\w+)`", " ".join(rows))
    assert sorted(listed) == sorted(gemmlab.__all__)

"""The code in README and in the documentation runs as it stands, as a script, on every runtime."""

import re
from pathlib import Path

import pytest
from conftest import run_python

ROOT = Path(__file__).resolve().parent.parent
#: Other blocks: pages in docs/ quote sources, and tests/distributed runs the product on workers.
DOCUMENTS = ["README.md", "docs/programs.md", "docs/colab.md"]


def blocks(text: str) -> list[str]:
    """The blocks of Python in a document."""
    return re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


SCRIPTS = {
    f"{name}-{number}": block
    for name in DOCUMENTS
    for number, block in enumerate(blocks((ROOT / name).read_text(encoding="utf-8")), 1)
    if "import distributed" not in block
}


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

"""The forge's files: they parse, and what they call is here."""

import json
import re
import subprocess
from pathlib import Path

import pytest

yaml = pytest.importorskip("yaml")
ROOT = Path(__file__).resolve().parent.parent
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
SCRIPTS = sorted((ROOT / ".ci").iterdir()) + [ROOT / "binder" / "postBuild"]


def read(path: Path):
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def commands() -> dict[str, str]:
    """All that the workflows, the scripts and the container run."""
    found = {path.name: path.read_text(encoding="utf-8") for path in SCRIPTS}
    for path in WORKFLOWS:
        steps = [step for job in read(path)["jobs"].values() for step in job["steps"]]
        found[path.name] = "\n".join(step.get("run", "") for step in steps)
    container = json.loads((ROOT / ".devcontainer" / "devcontainer.json").read_text())
    found["devcontainer.json"] = "\n".join(
        container[f"{step}Command"] for step in ("onCreate", "postCreate", "postAttach")
    )
    return found


@pytest.mark.parametrize("where", commands())
def test_every_target_script_and_file_that_is_called_exists(where):
    text = commands()[where]
    targets = re.findall(r"^([\w$()/%.-]+):", (ROOT / "Makefile").read_text(), re.M)
    for target in re.findall(r"(?:^|&& |\btime )make ([\w./-]+)", text, re.M):
        assert target in targets or target == ".venv/lab.done", f"make {target}"
    for name in re.findall(r"(?:bash |^)(\.ci/\w+)", text, re.M):
        assert (ROOT / name).is_file(), name
    for name in re.findall(r"\btests/[\w./]+", text):
        assert (ROOT / name).exists(), name


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
def test_a_script_is_sound_shell(path):
    done = subprocess.run(["bash", "-n", str(path)], capture_output=True, text=True)
    assert done.returncode == 0 and not done.stderr, done.stderr
    assert path.stat().st_mode & 0o111, "it is executable"


def test_binder_installs_the_packages_of_the_environment():
    wanted, binder = (
        [p for p in read(ROOT / name)["dependencies"] if isinstance(p, str) and "python " not in p]
        for name in ("environment.yml", "binder/environment.yml")
    )
    assert binder == wanted

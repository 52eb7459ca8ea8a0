"""On a machine without an OpenCL device, cells that need one are left out, and the others run."""

import os

import pytest
from books import FOLDER, code, read
from IPython.core.interactiveshell import InteractiveShell
from nbclient import NotebookClient

from gemmlab import NoDeviceError
from gemmlab.widgets import without_device


@pytest.fixture
def shell(monkeypatch):
    monkeypatch.setattr(without_device, "devices", lambda: [])
    shell = InteractiveShell()
    without_device.install(shell)
    without_device.install(shell)

    def device():
        raise NoDeviceError("there is none")

    shell.user_ns["device"] = device
    yield shell
    shell.history_manager.end_session()


def run(shell, text: str):
    return shell.run_cell(text, store_history=False)


def test_what_needs_a_device_is_left_out_with_all_that_follows_from_it(shell, capsys):
    done = run(shell, "x = device()\ny = x + 1\nz = 3\nfor i in range(2):\n    device()\nz + 1")
    assert done.success and done.result == 4
    assert capsys.readouterr().out.count(without_device.SENTENCE) == 1
    assert run(shell, "print(x, y)").success
    assert without_device.SENTENCE in capsys.readouterr().out
    assert run(shell, "device()").success
    assert run(shell, "x = 5; y = 6\nx + y").result == 11
    assert run(shell, "(n := 2) + 1").result == 3


def test_other_errors_stay_errors(shell):
    run(shell, "x = device()")
    assert isinstance(run(shell, "1 / 0").error_in_exec, ZeroDivisionError)
    assert isinstance(run(shell, "unknown").error_in_exec, NameError)
    assert isinstance(run(shell, "x = 1\ndel x\nx").error_in_exec, NameError)


def test_a_machine_with_a_device_is_left_alone(monkeypatch):
    monkeypatch.setattr(without_device, "devices", lambda: ["one"])
    shell = InteractiveShell()
    without_device.install(shell)
    assert not shell.ast_transformers
    shell.history_manager.end_session()


def test_in_a_tab_what_needs_a_missing_package_is_left_out(monkeypatch, shell, capsys):
    monkeypatch.setattr(without_device, "IN_TAB", True)
    assert run(shell, "import no_such_package.part as part, os").success
    assert run(shell, "part.f()\ny = os.sep").success
    assert capsys.readouterr().out.count("no no_such_package") == 2
    assert run(shell, "import os\nos.sep").success
    assert "Left out" not in capsys.readouterr().out


@pytest.mark.system
@pytest.mark.parametrize("name", ["00_s", "01_n", "02_t", "03_w", "the_ladder"])
def test_the_first_chapters_and_the_main_line_run(name, tmp_path):
    (path,) = FOLDER.glob(f"{name}*.ipynb")
    book = read(path.name)
    resources = {"metadata": {"path": str(FOLDER)}}
    nothing = {"OCL_ICD_VENDORS": str(tmp_path / "nothing"), "GEMMLAB_DATA": str(tmp_path)}
    NotebookClient(book, timeout=300, resources=resources).execute(env={**os.environ, **nothing})
    texts = [o.get("text", "") for cell in code(book) for o in cell.outputs]
    # chapter 00 has panels alone, which offer the browser's GPU
    assert name == "00_s" or any(without_device.SENTENCE in text for text in texts)

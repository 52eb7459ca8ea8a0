"""Start JupyterLab on the notebooks of a checkout: `make lab`; OPTIONS holds options of Jupyter."""

from __future__ import annotations

import os
import sys
import webbrowser
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
START = "notebooks/00_start_here.ipynb"
NO_BROWSER = """\
There is no browser on this machine: open the address that Jupyter prints below in your browser.
To reach another machine, first forward the port: ssh -L 8888:localhost:8888 that-machine
To reach a container, start it with -p 127.0.0.1:8888:8888, and let Jupyter listen in it:
  make lab OPTIONS=--ServerApp.ip=0.0.0.0"""


def command() -> list[str]:
    """The command line, with what Jupyter needs on this machine; what is unusual is announced."""
    words = [
        sys.executable,
        "-m",
        "jupyterlab",
        f"--ServerApp.root_dir={ROOT}",
        f"--LabApp.default_url=/lab/tree/{START}",
        "--LabApp.expose_app_in_browser=True",  # for the button "Start again"
    ]
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        print("You are root, as in a container: Jupyter is started with --allow-root.")
        words.append("--allow-root")
    if not _has_browser():
        print(NO_BROWSER)
        words.append("--no-browser")
    return words + sys.argv[1:]


def _has_browser() -> bool:
    """Whether `webbrowser` finds a browser with a window to show it in."""
    if sys.platform.startswith("linux") and not (
        os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    ):
        return False
    try:
        webbrowser.get()
        return True
    except webbrowser.Error:
        return False


if __name__ == "__main__":
    words = command()
    sys.stdout.flush()
    os.execv(words[0], words)

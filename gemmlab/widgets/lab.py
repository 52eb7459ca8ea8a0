"""Start JupyterLab on the notebooks of a checkout: `make lab`, with Jupyter's own options in
OPTIONS.
"""

from __future__ import annotations

import os
import sys
import webbrowser
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
START = "notebooks/00_start_here.ipynb"


def command() -> list[str]:
    """The command line, with what Jupyter needs on this machine; it is said where that is
    unusual.
    """
    words = [
        sys.executable,
        "-m",
        "jupyterlab",
        f"--ServerApp.root_dir={ROOT}",
        f"--LabApp.default_url=/lab/tree/{START}",
        "--LabApp.expose_app_in_browser=True",  # for the button "Start again"
    ]
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        print(
            "You are root (as in a container): Jupyter runs as root only if told so, with "
            "--allow-root. So it is told."
        )
        words.append("--allow-root")
    if not _has_browser():
        print(
            "There is no browser on this machine: open the address that Jupyter prints below in a "
            "browser of yours."
        )
        print(
            "From another machine, forward the port first, for example: ssh -L 8888:localhost:8888 "
            "this-machine"
        )
        print(
            "Out of a container, publish port 8888 and let Jupyter listen: make lab "
            "OPTIONS=--ServerApp.ip=0.0.0.0"
        )
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

"""What the tools share: options, refusals, and the head of a record."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyopencl as cl

from gemmlab import cli
from gemmlab.measurement import records
from gemmlab.opencl.devices import Device

ROOT = Path(__file__).resolve().parents[1]

sys.path.insert(0, str(ROOT / "notebooks"))  # for `lessons`


def run(main: Callable[[], int | None]) -> None:
    """Run a tool; print refusals as one sentence instead of a traceback."""
    refusals = ImportError, ValueError, TypeError, MemoryError, RuntimeError, OSError, cl.Error
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("interrupted; what was measured is in the file, and the same command continues")
    except refusals as error:
        sys.exit(f"{Path(sys.argv[0]).name}: {error}")


def command() -> str:
    """What was typed, as a record states it."""
    return cli.typed(f"tools/{Path(sys.argv[0]).name}")


def parser(words: str | None) -> argparse.ArgumentParser:
    """A parser that prints a module's docstring as it is."""
    raw = argparse.RawDescriptionHelpFormatter
    return argparse.ArgumentParser(description=words, formatter_class=raw)


def add_device(parser: argparse.ArgumentParser) -> None:
    words = "an index or part of a name (default: the preferred device)"
    parser.add_argument("--device", help=words)


def head(device: Device, title: str | None = None) -> dict[str, Any]:
    """The first entries of a record: title, command, date, versions, and device."""
    return {"title": title or device.name, **records.origin(command()), "device": device.facts()}


def short(value: float) -> float:
    """Four significant digits."""
    return float(f"{value:.4g}")

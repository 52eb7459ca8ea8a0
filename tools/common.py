"""What the tools share: options, refusals, and the head of a record."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyopencl as cl

from gemmlab import files
from gemmlab.cli import output_file
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
    """The command line, as a record states it; of paths only the file names."""
    words = [Path(word).name if "/" in word else word for word in sys.argv[1:]]
    return " ".join([f"python tools/{Path(sys.argv[0]).name}", *words])


def parser(words: str | None) -> argparse.ArgumentParser:
    """A parser that prints a module's docstring as it is."""
    raw = argparse.RawDescriptionHelpFormatter
    return argparse.ArgumentParser(description=words, formatter_class=raw)


def add_device(parser: argparse.ArgumentParser) -> None:
    words = "an index or part of a name (default: the preferred device)"
    parser.add_argument("--device", help=words)


def record_file(text: str) -> Path:
    """The name of a record to write or to continue; any other file stays as it is."""
    path = output_file(text)
    if path.exists():
        try:
            is_record = files.load_json(path, dict).keys() >= {"command", "date"}
        except files.DamagedError:
            is_record = False
        if not is_record:
            raise argparse.ArgumentTypeError(f"{path} exists and is no record; it stays as it is")
    return path


def head(device: Device, title: str | None = None) -> dict[str, Any]:
    """The first entries of a record: title, command, date, versions, and device."""
    return {"title": title or device.name, **records.origin(command()), "device": device.facts()}


def short(value: float) -> float:
    """Four significant digits."""
    return float(f"{value:.4g}")

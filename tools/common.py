"""What the tools share: options, refusals, and how a record begins and continues."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from math import inf
from pathlib import Path
from typing import Any, TypeVar

import pyopencl as cl
from tqdm import tqdm

from gemmlab import cli, files
from gemmlab.measurement import records
from gemmlab.opencl.devices import Device

Item = TypeVar("Item")

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
    return cli.command_line(f"tools/{Path(sys.argv[0]).name}")


def parser(words: str | None) -> argparse.ArgumentParser:
    """A parser that prints a module's docstring as it is."""
    raw = argparse.RawDescriptionHelpFormatter
    return argparse.ArgumentParser(description=words, formatter_class=raw)


def add_seconds(parser: argparse.ArgumentParser) -> None:
    """Add the option --seconds."""
    words = "begin nothing new after so many seconds"
    parser.add_argument("--seconds", type=float, default=inf, help=words)


def session(device: Device, title: str | None = None) -> dict[str, Any]:
    """What the rows that this command records share (see `records.session`)."""
    return records.session(device, command(), title)


def head(device: Device) -> dict[str, Any]:
    """The first entries of a file of candidates: title, command, date, versions, and device."""
    names = ("title", "command", "date", "versions")
    return {name: session(device)[name] for name in names} | {"device": device.facts()}


def continued(path: Path, device: Device) -> dict[str, Any]:
    """The file of candidates to continue; {} if there is none. Raises ValueError for one of another
    device.
    """
    found = files.load_json(path, dict)
    if found and found.get("device") != device.facts():
        raise ValueError(
            f"{path} was recorded with {found.get('device')}, not with {device.facts()}; "
            "name another file"
        )
    return found


def begun(items: Iterable[Item], end: float, unit: str) -> Iterator[Item]:
    """The items, with a bar of progress, as long as `time.monotonic()` is before the end."""
    for item in tqdm(items, unit=unit, disable=None):
        if time.monotonic() >= end:
            break
        yield item


def short(value: float) -> float:
    """Four significant digits."""
    return float(f"{value:.4g}")

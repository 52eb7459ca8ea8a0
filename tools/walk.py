"""Print the files and functions of gemmlab that a product enters: a first one, and a later one.

    python tools/walk.py [--device DEVICE]

For NumPy arrays and for arrays on the device, with `sys.setprofile`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import common
import numpy as np

import gemmlab
from gemmlab.cli import device_option
from gemmlab.opencl import cla
from gemmlab.opencl.devices import Device, find_device

#: M, N and K of the product.
SIZES = 40, 20, 30


def walk(call: Callable[[], object]) -> dict[str, list[str]]:
    """Return the functions of gemmlab that a call enters, in their order, by file."""
    entered: dict[str, list[str]] = {}
    package = Path(gemmlab.__file__).parent

    def note(frame: FrameType, event: str, _: Any) -> None:
        code, path = frame.f_code, Path(frame.f_code.co_filename)
        # a comprehension or a lambda is part of its function
        if event != "call" or package not in path.parents or code.co_name.startswith("<"):
            return
        functions = entered.setdefault(path.relative_to(package).as_posix(), [])
        name = getattr(code, "co_qualname", code.co_name)  # from Python 3.11 on
        if name not in functions:
            functions.append(name)

    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
    return entered


def walks(device: Device) -> dict[str, dict[str, list[str]]]:
    """Return the walks of a first and a later product, in NumPy and on a device."""
    m, n, k = SIZES
    a, b = np.ones((m, k), np.float32), np.ones((k, n), np.float32)
    operands: dict[str, tuple[Any, ...]] = {"NumPy arrays": (a, b)}
    operands["device arrays"] = tuple(cla.to_device(device.queue, x) for x in (a, b))
    entered = {}
    for name, (x, y) in operands.items():
        options = {"device": device} if name == "NumPy arrays" else {}

        def call(x: Any = x, y: Any = y, options: Any = options) -> object:
            return gemmlab.matmul(x, y, **options)

        call()  # imports
        gemmlab.clear_caches()
        for turn in ("first", "later"):
            entered[f"{turn} product of {name}"] = walk(call)
    return entered


def main(arguments: list[str] | None = None) -> None:
    parser = common.parser(__doc__)
    device_option(parser)
    device = find_device(parser.parse_args(arguments).device)
    for title, files in walks(device).items():
        count = sum(map(len, files.values()))
        print(f"{title} on {device}: {len(files)} files, {count} functions")
        for path, functions in sorted(files.items()):
            print(f"  {path}: {', '.join(functions)}")


if __name__ == "__main__":
    common.run(main)

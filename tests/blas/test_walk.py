"""How much of this package a product passes through: little enough to be read."""

import sys
from pathlib import Path

import numpy as np
import pytest

import gemmlab
from gemmlab.opencl.devices import devices

#: Files and functions at most, for the first product of these sizes and for later ones.
BOUNDS = {"NumPy": ((12, 60), (5, 13)), "device arrays": ((12, 60), (4, 12))}


def walk(call) -> tuple[list[str], list[str]]:
    """The files and the functions of gemmlab that `call` passes through."""
    files, functions = set(), set()
    package = Path(gemmlab.__file__).parent

    def note(frame, event, _):
        path, name = Path(frame.f_code.co_filename), frame.f_code.co_name
        # a comprehension is part of its function
        if event == "call" and package in path.parents and not name.startswith("<"):
            file = path.relative_to(package).as_posix()
            files.add(file)
            functions.add(f"{file}:{frame.f_code.co_qualname}")

    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
    return sorted(files), sorted(functions)


@pytest.mark.skipif(sys.version_info < (3, 11), reason="the qualified names of functions")
@pytest.mark.parametrize("side", ["NumPy", "device arrays"])
def test_the_walk_of_a_product(side, capsys):
    """Of NumPy arrays on a CPU, as most begin; of device arrays on any device."""
    found = [d for d in devices() if d.kind == "CPU" or side != "NumPy"]
    if not found:
        pytest.skip("no CPU among the OpenCL devices")
    device = found[0]
    a, b = np.ones((40, 30), np.float32), np.ones((30, 20), np.float32)
    options = {"device": device}
    if side != "NumPy":
        from pyopencl import array

        a, b, options = array.to_device(device.queue, a), array.to_device(device.queue, b), {}
    gemmlab.matmul(a, b, **options)  # imported
    gemmlab.clear_caches()
    walks = [walk(lambda: gemmlab.matmul(a, b, **options)) for _ in range(3)]
    with capsys.disabled():
        for title, (files, functions) in zip(("first", "later"), (walks[0], walks[2]), strict=True):
            print(
                f"\n{title} product of {side} on {device}: "
                f"{len(files)} files, {len(functions)} functions"
            )
            print("  " + ", ".join(files) + "\n  " + " ".join(functions))
    first, later = BOUNDS[side]
    for (files, functions), (most_files, most_functions) in zip(
        walks, (first, later, later), strict=True
    ):
        assert len(files) <= most_files and len(functions) <= most_functions

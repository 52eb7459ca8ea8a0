"""How much of this package a product passes through: little enough to be read."""

import sys
from pathlib import Path

import numpy as np
import pytest
from pyopencl import array

import gemmlab
from gemmlab.generate.choice import model
from gemmlab.opencl.devices import devices

#: Files and functions at most, for the first product of these sizes and for later ones.
BOUNDS = {"NumPy": ((12, 60), (4, 12)), "device arrays": ((12, 60), (3, 10))}
#: For the first one where a model chooses the kernel.
MODEL_BOUNDS = 18, 120


def walk(call) -> tuple[set[str], set[str]]:
    """The files and the functions of gemmlab that `call` passes through."""
    files, functions, package = set(), set(), Path(gemmlab.__file__).parent

    def note(frame, event, _):
        path, name = Path(frame.f_code.co_filename), frame.f_code.co_name
        # a comprehension is part of its function
        if event == "call" and package in path.parents and not name.startswith("<"):
            files.add(path.relative_to(package).as_posix())
            functions.add(f"{path.stem}.{frame.f_code.co_qualname}")

    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
    return files, functions


@pytest.mark.skipif(sys.version_info < (3, 11), reason="the qualified names of functions")
@pytest.mark.parametrize("side", BOUNDS)
def test_the_walk_of_a_product(side, capsys):
    """Of NumPy arrays on a CPU, as most begin; of device arrays on any device."""
    device = next((d for d in devices() if d.kind == "CPU" or side != "NumPy"), None)
    if device is None:
        pytest.skip("no CPU among the OpenCL devices")
    arrays, options = [np.ones((40, 30), np.float32), np.ones((30, 20), np.float32)], {}
    if side == "NumPy":
        options = {"device": device}
    else:
        arrays = [array.to_device(device.queue, x) for x in arrays]
    gemmlab.matmul(*arrays, **options)  # imported
    gemmlab.clear_caches()
    first, second, later = (walk(lambda: gemmlab.matmul(*arrays, **options)) for _ in range(3))
    for title, (files, functions) in (("first", first), ("later", later)):
        with capsys.disabled():
            print(f"\n{title} product of {side} on {device}: ", end="")
            print(f"{len(files)} files, {len(functions)} functions\n  " + ", ".join(sorted(files)))
    for (files, functions), bounds in zip((first, second, later), (0, 1, 1), strict=True):
        most_files, most_functions = BOUNDS[side][bounds]
        if bounds == 0 and model(device):
            most_files, most_functions = MODEL_BOUNDS
        assert len(files) <= most_files, sorted(files)
        assert len(functions) <= most_functions, sorted(functions)

"""How much of this package a product passes through: little enough to be read."""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from pyopencl import array
from texts import H200

import gemmlab
from gemmlab.generate.choice import model
from gemmlab.opencl.devices import devices

#: Files and functions at most, for the first product of these sizes and for later ones.
BOUNDS = {
    "NumPy arrays": ((12, 60), (4, 13)),
    "device arrays": ((12, 60), (4, 11)),
    "NumPy arrays, chosen by a model": ((15, 104), (4, 13)),
}


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


@pytest.mark.optimised(False)
@pytest.mark.parametrize("side", BOUNDS)
def test_the_walk_of_a_product(side, capsys):
    """Of NumPy arrays on a CPU, as most begin; of device arrays on any device; and as on an H200,
    whose constants the table has.
    """
    device = next((d for d in devices() if d.kind == "CPU" or side != "NumPy arrays"), None)
    if device is None:
        pytest.skip("no CPU among the OpenCL devices")
    arrays, options = [np.ones((40, 30), np.float32), np.ones((30, 20), np.float32)], {}
    if "model" in side:
        device = replace(device, **H200 | {"features": device.features})
    if "NumPy" in side:
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
    by_a_model = model(device) is not None
    for (files, functions), turn in zip((first, second, later), (0, 1, 1), strict=True):
        bounds = BOUNDS["NumPy arrays, chosen by a model" if by_a_model and not turn else side]
        most_files, most_functions = bounds[turn]
        assert len(files) <= most_files, sorted(files)
        assert len(functions) <= most_functions, sorted(functions)

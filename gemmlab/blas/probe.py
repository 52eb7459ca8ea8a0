"""Which settings of the packed kernel suit a processor: tried once, in about two seconds, and remembered on disk.

The size of the register block is a question of how well a runtime's compiler uses the processor's registers, and no
property that OpenCL reports answers it. So a few candidates multiply matrices, and the fastest is kept in the user's
cache folder, by device, driver and version of this package. `gemmlab.clear_caches()` forgets it.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from math import prod

import numpy as np
import pyopencl as cl

from ..caches import Notes, on_clear
from ..family.configuration import PRECISIONS
from ..family.packed import Packed, candidates
from ..opencl.build import BuildError
from ..opencl.devices import Device
from ..version import __version__
from .passes import Matrix, Session
from .problem import Layout, Problem

#: Seconds after which no third or further candidate is tried, as compiling one takes half a second or more; and those
#: in which they multiply by turns. The shortest time of each counts: at times a runtime's threads share a core.
_BUDGET, _TURNS_SECONDS = 1.3, 0.4
#: The size of the matrices of the probe, and how often each candidate multiplies them after the first time.
_SIZE, _TURNS = 384, 4
#: Multiply-adds up to which a product is too small to be kept waiting by a probe, if nothing is known yet.
_SMALL = 256**3 - 1

#: Multiplies with these settings: see `gemmlab.blas.packed.run`, whose arguments it takes.
Run = Callable[..., None]

#: Names of settings by device, driver, version and precision (see `_place`), as are those that follow.
notes = Notes("processors.json")
_settled: dict[str, Packed] = {}
#: What small products take meanwhile; the file is read only once for them.
_unsettled: dict[str, Packed] = {}
_forgetting: list[Callable[[], None]] = []
_lock = threading.Lock()


def settled(device: Device, precision: str, sizes: tuple[int, int, int], run: Run) -> Packed:
    """The settings for a device and a precision: remembered ones, or those that a probe finds.

    As long as there are none, small products take the first candidate without any probe.
    """
    key, small = _place(device, precision), prod(sizes) <= _SMALL
    found = _settled.get(key) or (_unsettled.get(key) if small else None)
    if found is None:
        with _lock:  # one thread tries, the others wait for what it finds
            found = _settled.get(key)
            if found is None:
                tried = candidates(precision, vector_of(device, precision), device.limits)
                known = notes.read().get(key)
                found = next((c for c in tried if c.name == known), None)
                if found is None:
                    if small:
                        return _unsettled.setdefault(key, tried[0])
                    found = _fastest(device, precision, tried, run)
                    notes.write(key, found.name)
                _settled[key] = found
                for forget in _forgetting:
                    forget()
    return found


def when_settled(forget: Callable[[], None]) -> None:
    """Have `forget` called when settings are found: small products have been worked out with others until then."""
    _forgetting.append(forget)


def vector_of(device: Device, precision: str) -> int:
    """Elements of the device's own vectors. ("Preferred" ones are 1 where the compiler makes vectors by itself.)

    They may be wider than `limits.vector`, which keeps PoCL 3.0 from kernels of many work-items that it cannot compile.
    Those of a single one it can, but on some processors it cuts vectors of 16 floats in two: see `packed.candidates`.
    """
    return max(1, device.cl.native_vector_width_float * 4 // PRECISIONS[precision].size)


def _fastest(device: Device, precision: str, tried: list[Packed], run: Run) -> Packed:
    """The fastest of the candidates for which there is time; the first one, should none of them run."""
    print(f"gemmlab: trying kernels on {device}, once: about 2 seconds", file=sys.stderr, flush=True)
    start = time.perf_counter()
    seconds: dict[Packed, float] = {}
    for c in tried:
        if len(seconds) > 1 and time.perf_counter() - start > _BUDGET:
            break
        with suppress(cl.Error, BuildError):
            seconds[c] = _seconds(device, c, run)
    start = time.perf_counter()
    while len(seconds) > 1 and time.perf_counter() - start < _TURNS_SECONDS:
        for c in seconds:
            seconds[c] = min(seconds[c], _seconds(device, c, run))
    return min(seconds, key=lambda c: seconds[c]) if seconds else tried[0]


def _seconds(device: Device, c: Packed, run: Run) -> float:
    """The shortest time of a product, packing included, in seconds; the first one, which compiles, is not counted."""
    problem, layout = Problem.compact(_SIZE, _SIZE, _SIZE), Layout.compact(_SIZE, _SIZE)
    best = float("inf")
    with Session(device.queue, device, dtype=PRECISIONS[c.precision].dtype) as session:
        a, b, out = (session.new(layout) for _ in "abc")
        size_bytes = session.dtype.itemsize * layout.room  # a pool's buffer has more, which no command may touch
        for x in (a, b):
            cl.enqueue_fill_buffer(session.queue, x.buffer, np.ones(1, session.dtype), 0, size_bytes)
        for turn in range(1 + _TURNS):
            session.queue.finish()
            start = time.perf_counter()
            run(session, c, problem, (a.buffer, b.buffer), 1.0, 0.0, None, Matrix(out.buffer, layout))
            session.queue.finish()
            if turn:
                best = min(best, time.perf_counter() - start)
    return best


def _place(device: Device, precision: str) -> str:
    """What settings are remembered by; a device and its `in_caller` share them."""
    return " | ".join((device.name, device.platform, device.version, device.driver, __version__, precision))


on_clear(lambda: _settled.clear())
on_clear(lambda: _unsettled.clear())

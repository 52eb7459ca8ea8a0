"""Time the best few candidates of the model on the device at hand, and remember the winner for all
shapes of its class.

A model knows the device that it was fitted to; trials know yours. They take seconds, since every
candidate has to be compiled, so that `matmul` makes them only if the environment variable
GEMMLAB_TUNE is 1. `gemmlab.tune` makes them ahead. Published trials of this kind: ISAAC (Tillet and
Cox, 2017), which times the best candidates of a predictor.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress

import numpy as np
import pyopencl as cl

from ..catalog import find
from ..generate import choice
from ..generate.ranking import text_of
from ..generate.selection import Choice
from ..opencl.build import BuildError
from ..opencl.devices import Device
from ..opencl.launch import Kernel
from .plan import Builder, Matrix, Plan, placed
from .problem import Layout, Problem

#: Candidates that are timed, and at most so many of the same text, which differ in how work is
#: shared.
BEST, OF_A_TEXT = 8, 3
#: Seconds of launches in a round, and rounds of which the shortest counts.
_ROUND, _ROUNDS = 2e-3, 3


def are_enabled() -> bool:
    """Whether `matmul` itself is to try candidates when it meets a class of shapes for the first
    time.
    """
    return os.environ.get("GEMMLAB_TUNE") == "1"


def contenders(
    device: Device, sizes: tuple[int, int, int], precision: str = "float32"
) -> list[choice.Ranked]:
    """The candidates that a trial times, those first that the model finds quickest."""
    found: list[choice.Ranked] = []
    for one in choice.ranked(device, sizes, precision):
        alike = [other for other in found if text_of(other.choice) == text_of(one.choice)]
        if len(found) < BEST and len(alike) < OF_A_TEXT:
            found.append(one)
    return found


def try_out(
    device: Device, sizes: tuple[int, int, int], precision: str = "float32"
) -> Choice | None:
    """The quickest candidate for M, N, K of a column-major product, timed now or before; None
    without candidates.
    """
    known = choice.recorded_winner(device, sizes, precision)
    if known:
        return known
    times: dict[Choice, float] = {}
    for one in contenders(device, sizes, precision):
        # what does not run does not win
        with suppress(cl.Error, BuildError, ValueError, MemoryError):
            times[one.choice] = seconds(device, sizes, one.choice)
    if not times:
        return None
    winner = min(times, key=lambda taken: times[taken])
    choice.record_winner(device, sizes, precision, winner)
    return winner


def seconds(device: Device, sizes: tuple[int, int, int], taken: Choice) -> float:
    """Seconds of a product by the host's clock, as one of many that follow each other; of TF32 with
    the look at the operands that decides whether it suits them.
    """
    kernel = Kernel(find(taken[0]), dict(taken[1]), device, device.context)
    m, n, k = sizes
    queue = cl.CommandQueue(device.context, device.cl)
    a, b, out = (
        cl.Buffer(device.context, cl.mem_flags.READ_WRITE, 4 * size)
        for size in (m * k, k * n, m * n)
    )
    for x in (a, b):
        cl.enqueue_fill_buffer(queue, x, np.ones(1, np.float32), 0, x.size)
    builder, problem = Builder(queue, device), Problem.compact(*sizes)
    if kernel.spec.tensor:
        builder.look_for_unsplittable(placed(a, problem.a), placed(b, problem.b))
    builder.multiply(kernel, problem, a, b, Matrix(out, Layout.compact(m, n)))
    plan = builder.plan(otherwise=lambda: Plan(()))  # as a call would wait for the answer

    def products(count: int) -> float:
        queue.finish()
        start = time.perf_counter()
        for _ in range(count):
            plan(queue)
        queue.finish()
        return (time.perf_counter() - start) / count

    products(1)  # compiles what else it needs
    count = int(np.clip(_ROUND / products(1), 1, 50))
    return min(products(count) for _ in range(_ROUNDS))

"""The jobs of a sandbox: to measure, to compare, to simulate."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

from ..measurement import comparison, peaks, rungs, timing
from ..opencl.devices import find_device
from . import look

#: Takes the step that begins, or what the simulator has seen in a kernel.
OnStep = Callable[[str | look.Seen | None], None]
#: What a job answers: the `result`, and how a rate `compared`.
Answer = dict[str, Any]


def _measure(arguments: dict[str, Any], on_step: OnStep) -> Answer:
    """Measure, or compare with a `budget`; simulate an edited kernel first, since it may end this
    process, or never end.
    """
    compared = seen = case = None
    if look.is_edited(arguments["kernel"], arguments.get("source")):
        on_step("look")
        about: dict[str, Any] = {name: arguments.get(name) for name in look.ARGUMENTS}
        memory = find_device(arguments.get("device")).limits.local_memory
        case = look.Case.of(**about)
        seen = look.look(case, local_memory=memory)
        if seen and seen.endless:
            raise look.Refused(seen.why)
        on_step(seen)
    if "budget" in arguments:
        result, compared = comparison.compare(**arguments, on_step=on_step)
    else:
        result = timing.measure(**arguments, on_step=on_step)
    if case and not result.ok:
        on_step("look")
        on_step(look.explain(case, seen, result.first_wrong))
    return {"result": result, "compared": compared}


def _context(arguments: dict[str, Any], on_step: OnStep) -> Answer:
    """Find what a rate is compared with: the peak of the device, if there is one, and what the
    model allows some kernels on an H200; None for what fails, since a rate can be shown without it.
    """
    peak = None
    ceilings: list[Any] = [None] * len(arguments["texts"])
    on_step("compile")
    if arguments["device"] is not None:
        with contextlib.suppress(Exception):
            peak = peaks.peaks(device=arguments["device"]).gflops
    on_step("look")
    for i, text in enumerate(arguments["texts"]):
        with contextlib.suppress(Exception):
            ceilings[i] = rungs.allowed(**text)
    return {"result": (peak, ceilings)}


def _look(arguments: dict[str, Any], on_step: OnStep) -> Answer:
    on_step("look")
    on_step(look.look(look.Case.of(**arguments)))
    return {}


def _simulate(arguments: dict[str, Any], on_step: OnStep) -> Answer:
    on_step("look")
    return {"result": look.simulate_small(**arguments)}


JOBS = {"measure": _measure, "context": _context, "look": _look, "simulate": _simulate}

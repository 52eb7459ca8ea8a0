"""Clocks: the device's own, through events of a profiling queue, and wall-clock time.

Some drivers' clocks are wrong: Mesa 22.3 says that every kernel takes a nanosecond. `credible`
compares them with wall-clock time, which is used instead where they contradict each other.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

from ..opencl import cl
from ..opencl.devices import Device

#: Calls that `call_seconds` makes in a row at most.
MOST_CALLS = 50

#: Nanoseconds between two steps of a clock that can time single launches.
LONGEST_STEP = 20_000
#: Seconds of a run by another clock.
RUN_SECONDS = 25e-3

#: Seconds that every command takes on a device, at least.
SHORTEST = 100e-9


def device_seconds(*events: cl.Event) -> float:
    """Wait for events of a profiling queue; the sum of their times on the device."""
    cl.wait_for_events(list(events))
    return 1e-9 * sum(event.profile.end - event.profile.start for event in events)


def launches_a_run(device: Device, wall: float) -> int:
    """Return of how many launches a run is the mean, if one takes `wall` seconds with the host's
    part. Browsers' clocks have steps of 0.1 ms: there a run takes 25 ms.
    """
    is_coarse = device.cl.profiling_timer_resolution > LONGEST_STEP
    return max(1, int(RUN_SECONDS / wall)) if is_coarse else 1


def credible(seconds: float, wall: float) -> bool:
    """Whether a command's seconds on the device agree with those of the clock on the host."""
    return SHORTEST <= seconds <= 1.1 * wall


def launch_seconds(launch: Callable[[], cl.Event], runs: int = 10) -> list[float]:
    """Seconds of launches after a first one; by the host if the device's clock is not credible."""
    device_seconds(launch())
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        seconds = device_seconds(launch())
        times.append((seconds, time.perf_counter() - start))
    trusted = all(credible(*one) for one in times)
    return [seconds if trusted else wall for seconds, wall in times]


def wall_seconds(call: Callable[[], object], wait: Callable[[], object], calls: int = 1) -> float:
    """Wall-clock seconds per call, from before the first until `wait` returns after the last."""
    wait()
    start = time.perf_counter()
    for _ in range(calls):
        call()
    wait()
    return (time.perf_counter() - start) / calls


def call_seconds(
    call: Callable[[], object], wait: Callable[[], object], seconds: float = 0.1
) -> float:
    """The median of three rounds of about so many seconds in all, after a call that compiles."""
    wall_seconds(call, wait)
    calls = max(1, min(MOST_CALLS, int(seconds / 3 / wall_seconds(call, wait))))
    return statistics.median(wall_seconds(call, wait, calls) for _ in range(3))

"""Sweeps: one parameter varies, the others stay."""

from __future__ import annotations

from collections.abc import Iterable

from ..ladder import Key, ParameterError, find
from ..ladder.spec import positive
from ..opencl.devices import Device, find_device
from . import timing
from .records import Result, pooled


def sweep(  # noqa: PLR0913
    kernel: Key,
    name: str,
    values: Iterable[int],
    size: int = 256,
    params: dict[str, int] | None = None,
    device: Device | int | str | None = None,
    repeats: int | None = None,
    rounds: int = 1,
) -> dict[int, Result]:
    """Measure a kernel for several values of one parameter.

    Args:
        kernel: its number or name.
        name: a parameter, several that get the same value ("WPTM WPTN"), or "size".
        values: its values; any that the kernel or the device refuses are left out, and the reason
            is printed.
        size: of the square matrices.
        params: the other parameters.
        device, repeats: as in `gemmlab.measure`.
        rounds: how often all values are measured, one after the other. With more than one, whatever
            else the machine does meets all values alike, and shows in their spread.

    Returns:
        The result for each value that was measured.
    """
    spec, device, rounds = find(kernel), find_device(device), positive("rounds", rounds)
    base = spec.complete(params) if params or name != "size" else spec.fit(device.limits)
    found: dict[int, list[Result]] = {value: [] for value in values}
    for _ in range(rounds):
        for value in list(found):
            moved = {} if name == "size" else dict.fromkeys(name.split(), value)
            try:
                side = value if name == "size" else size
                run = timing.measure(
                    kernel, side, params={**base, **moved}, device=device, repeats=repeats
                )
                found[value].append(run)
            except ParameterError as error:
                print(f"{name}={value} is left out: {error}")
                del found[value]
    return {value: pooled(runs) for value, runs in found.items()}

"""The open challenge at the end of the series, and a board of the reader's own tries."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from datetime import date
from pathlib import Path

import numpy as np

from gemmlab import default_device, files, model, trial
from gemmlab.ladder import Key, sources
from gemmlab.measurement.clock import wall_seconds

ROUNDS = 3  # goal and try alternate so often; the best of each counts
#: Seconds after which a rate is taken from fewer calls: NumPy in a browser has no BLAS.
ENOUGH = 2.0
#: The goal on a GPU, the most lines of code that may pass it, and its size.
KERNEL, LINES, SIZE = 9, 60, 2048
#: M = N = K of the goal on a CPU, which is NumPy's product, in any number of lines.
NUMPY_SIZE = 512


@dataclass(frozen=True)
class Try:
    """A try that was right; `share` is its rate divided by the goal's."""

    challenge: str
    share: float
    lines: int
    device: str
    when: str = field(default_factory=lambda: date.today().isoformat())

    def __str__(self) -> str:
        return f"{self.share:.2f} of the goal, {self.lines} lines, {self.when}, {self.device}"


def attempt(kernel: Key, params: Mapping[str, int] | None, text: str) -> Try:
    """Check and time a text, alternating with what it is to pass: on a CPU NumPy's product, on a
    GPU kernel 9 in at most 60 lines. Its launch is that of a `kernel` with these `params`.

    Raises ValueError for too many lines, a text that cannot be compiled, or a wrong product.
    """
    device, lines = default_device(), sources.code_lines(text)
    on_cpu = device.kind == "CPU"
    name = "pass NumPy on your processor" if on_cpu else f"pass kernel {KERNEL} in {LINES} lines"
    size = NUMPY_SIZE if on_cpu else SIZE
    if not on_cpu and lines > LINES:
        raise ValueError(f"the kernel has {lines} lines of code; {LINES} are allowed")
    goal, own = [], []
    for _ in range(ROUNDS):
        outcome = trial(kernel, size, params=dict(params or {}), source=text)
        if not outcome.ok or outcome.result is None:
            raise ValueError(outcome.verdict)
        own.append(outcome.result.gflops)
        goal.append(rate_of(np.matmul, size) if on_cpu else trial(KERNEL, size).result.gflops)
    return Try(name, max(own) / max(goal), lines, device.name)


def rate_of(multiply: Callable, size: int) -> float:
    """GFLOPS of whole calls `multiply(a, b)`, float32, size x size: the best of some."""
    a, b = np.random.default_rng(0).standard_normal((2, size, size)).astype(np.float32)
    runs: list[float] = []
    while len(runs) <= ROUNDS and sum(runs) < ENOUGH:
        runs.append(wall_seconds(lambda: multiply(a, b), lambda: None))
    return model.gflops(size, size, size, min(runs))


class Board:
    """The reader's own tries, best first, kept in ``tries.json`` in the user's own folder."""

    def __init__(self, path: str | Path | None = None):
        self.path = Path(path or sources.own_folder() / "tries.json")

    @property
    def tries(self) -> list[Try]:
        """Raises ValueError if the file is damaged."""
        found = (Try(**entry) for entry in files.load_json(self.path, list))
        return sorted(found, key=lambda one: -one.share)

    def add(self, one: Try) -> None:
        """Keep a try; raises OSError if the file cannot be written."""
        files.change_json(self.path, list, lambda tries: [*tries, asdict(one)])

    def clear(self) -> None:
        self.path.unlink(missing_ok=True)

    def __repr__(self) -> str:
        lines = []
        for name in dict.fromkeys(one.challenge for one in self.tries):
            lines += [name, *(f"  {one}" for one in self.tries if one.challenge == name)]
        return "\n".join(lines or ["No tries yet."])

"""The GPU of a browser, as `clscope.webgpu` needs it. What waits for it suspends Python's stack,
which browsers call JSPI, so that a call returns its result while the page goes on.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from .. import wgsl
from ..wgsl import Shader

FILES = Path(wgsl.__file__).with_name("runner.js"), Path(__file__).with_name("gpu.js")
#: Nanoseconds between two steps of the clock that browsers offer to pages.
CLOCK_STEP = 100_000


class NoGPUError(Exception):
    """There is no GPU for Python; the message is a sentence that says why."""


class GPU(Protocol):
    """A GPU; buffers are handles of its own.

    Attributes:
        is_cpu: whether the browser's CPU plays it.
        limits: what the page's adapter reports, by WebGPU's names.
        opened: how often it was opened. What was made before, buffers and pipelines, is lost.
        most_timed: launches that are timed before `times` must be called; 0 if none can be.
    """

    name: str
    is_cpu: bool
    limits: dict[str, int]
    opened: int
    most_timed: int

    def create(self, size_bytes: int) -> Any:
        """Return a buffer."""

    def destroy(self, buffer: Any) -> None:
        """Free a buffer, when no launch uses it any more."""

    def write(self, buffer: Any, at: int, data: np.ndarray) -> None:
        """Copy bytes to byte `at` of a buffer."""

    def read(self, buffer: Any, at: int, data: np.ndarray) -> None:
        """Fill an array of bytes from byte `at` of a buffer; wait. Raise ValueError, in WebGPU's
        words, if they are not what commands should have put there.
        """

    def copy(self, source: Any, start: int, target: Any, at: int, size_bytes: int) -> None:
        """Copy bytes from one buffer to another one."""

    def build(self, shader: Shader) -> Any:
        """Return the pipeline of a shader; raise ValueError with the compiler's words."""

    def launch(
        self, pipeline: Any, bindings: list[tuple[Any, int, int]], scalars: bytes,
        groups: Sequence[int], timed: bool,
    ) -> None:  # fmt: skip
        """Launch a pipeline; a binding is a buffer, the first byte of it and the bytes."""

    def times(self) -> list[int]:
        """Return begin and end, in ns, of each timed launch since the last call; wait. Raise
        ValueError if the GPU is lost.
        """

    def finish(self) -> None:
        """Wait for everything that was submitted."""

    def problem(self) -> str:
        """Return what has gone wrong since the last call; an empty string if nothing. A GPU that
        was lost is opened again.
        """


class BrowserGPU:
    """The GPU that the browser offers to the page or the worker in which Python runs."""

    def __init__(self, module: Any, gpu: Any):
        self._module, self._gpu = module, gpu
        self.name: str = gpu.name
        self.is_cpu: bool = gpu.cpu
        self.limits: dict[str, int] = gpu.limits.to_py()
        self.opened: int = 1
        self.most_timed: int = module.most if gpu.timed else 0

    def create(self, size_bytes: int) -> Any:
        return self._module.create(self._gpu, size_bytes)

    def destroy(self, buffer: Any) -> None:
        buffer.destroy()

    def write(self, buffer: Any, at: int, data: np.ndarray) -> None:
        self._module.send(self._gpu, buffer, at, data)

    def read(self, buffer: Any, at: int, data: np.ndarray) -> None:
        _wait(self._module.receive(self._gpu, buffer, at, data))

    def copy(self, source: Any, start: int, target: Any, at: int, size_bytes: int) -> None:
        self._module.copy(self._gpu, source, start, target, at, size_bytes)

    def build(self, shader: Shader) -> Any:
        buffers = [{"name": b.name, "written": b.written} for b in shader.buffers]
        parts = {
            "code": shader.code,
            "entry": shader.entry,
            "watched": shader.watched,
            "buffers": buffers,
            "scalars": shader.scalars,
            "lines": shader.lines,
        }
        return _wait(self._module.compile(self._gpu, _to_js(parts)))

    def launch(
        self, pipeline: Any, bindings: list[tuple[Any, int, int]], scalars: bytes,
        groups: Sequence[int], timed: bool,
    ) -> None:  # fmt: skip
        arguments = map(_to_js, (bindings, scalars, groups))
        self._module.launch(self._gpu, pipeline, *arguments, timed)

    def times(self) -> list[int]:
        return _wait(self._module.times(self._gpu)).to_py()

    def finish(self) -> None:
        _wait(self._module.finish(self._gpu))

    def problem(self) -> str:
        gpu = self._gpu
        problem, gpu.problem = gpu.problem, ""
        if not gpu.lost:
            return problem
        again = _wait(self._module.open())
        if not hasattr(again, "device"):
            return f"{gpu.lost} It could not be opened again: {again.words}"
        if self._gpu is gpu:  # nobody else has opened it meanwhile
            self._gpu = again
            self.opened += 1
        return f"{gpu.lost} It is open again, without what was on it: run the cell once more."


@cache
def gpu() -> GPU:
    """Return the GPU, which is opened by the first call. Raise NoGPUError if there is none."""
    try:
        from pyodide.code import run_js
        from pyodide.ffi import can_run_sync
    except ImportError:
        raise NoGPUError("Only Python in a browser (Pyodide) has the browser's GPU.") from None
    if not can_run_sync():
        raise NoGPUError(
            "In this browser Python cannot wait for the GPU: Chrome and Edge can, from version 137."
        )
    text = "\n".join(file.read_text(encoding="utf-8") for file in FILES)
    url = run_js("text => URL.createObjectURL(new Blob([text], {type: 'text/javascript'}))")(text)
    module = _wait(run_js("url => import(url)")(url))
    opened = _wait(module.open())
    if not hasattr(opened, "device"):
        raise NoGPUError(opened.words)
    return BrowserGPU(module, opened)


def _wait(promise: Any) -> Any:
    """Return what a promise of JavaScript resolves to. Raise ValueError for `failed` words."""
    from pyodide.ffi import run_sync

    answer = run_sync(promise)
    if words := getattr(answer, "failed", ""):
        raise ValueError(words)
    return answer


def _to_js(value: Any) -> Any:
    """Return a value of JavaScript, dictionaries as objects."""
    import js
    from pyodide.ffi import to_js

    return to_js(value, dict_converter=js.Object.fromEntries)

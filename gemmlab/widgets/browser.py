"""The GPU of the reader's browser as a device of an explorer: the page runs its products.

A cell cannot wait for a page: messages of widgets arrive when no cell is running.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from statistics import median
from typing import Any

import traitlets

from clscope import TextError, wgsl

from ..ladder import find
from ..ladder.spec import Limits
from ..measurement.comparison import summary
from ..measurement.records import Result
from ..model import gflops
from ..sandbox import client
from ..sandbox.client import Outcome
from ..sandbox.look import ARGUMENTS, Seen
from ..webgpu import LEAST, job, limits
from .shell import Act, Listener, script

#: The value of `device` that means it.
NAME = "browser"
WORDS = "this browser's GPU"
RUNNER = Path(wgsl.__file__).with_name("runner.js")


class Browser(Listener):
    """What an explorer needs of a device, and of the worker that measures on it. The page that
    shows it opens its GPU.

    Attributes:
        gpu: name and limits of the GPU, once it is open; or `words` that say why there is none.
        request: what the page is to run. Its answer has the same `id`: whether the product is `ok`,
            a `verdict`, the seconds of `all` runs and of those of the `other`, the reference; or an
            `error`.
        limits: those of any browser's GPU, until the page has opened it.
    """

    _esm = f"{RUNNER.read_text(encoding='utf-8')}\n{script('talk.js', 'browser.js')}"
    request: Any = traitlets.Dict().tag(sync=True)
    kind: str = "GPU"
    index: None = None

    def __init__(self, opened: Callable[[], None]):
        super().__init__(self._act)
        self.gpu: Act = {}
        self.limits: Limits = LEAST
        self._opened = opened
        #: the arguments of the newest request, and who waits for its answer
        self._waiting: tuple[dict[str, Any], Callable[[Outcome], None]] | None = None
        self._page = 0  # the id that its result will have; 0 before the page is asked
        self._simulated = ""  # what the simulator says about a text that the page may run

    @property
    def name(self) -> str:
        """What the page says the GPU is called; its rates are those of a page."""
        name = self.gpu.get("name", "")
        return name and f"{name}, with a browser's bounds checks"

    def __str__(self) -> str:
        return WORDS

    def _act(self, act: Act) -> None:
        match act:
            case {"gpu": gpu}:
                self.gpu = gpu
                if "limits" in gpu and self.limits != limits(gpu["limits"], gpu["name"]):
                    self.limits = limits(gpu["limits"], gpu["name"])
                    self._opened()
            case {"result": result}:
                self._answered(result)

    # As `client.Sandbox`.

    def submit(
        self,
        name: str,
        arguments: dict[str, Any],
        done: Callable[[Outcome], None],
        step: Callable[[str | Seen], None],
    ) -> None:
        """Ask the page for a comparison; an older request is forgotten. A reader's text runs in
        the simulator before: what does not end there, or breaks a rule, never reaches the page.
        """
        self._waiting, self._page = (waiting := (arguments, done)), 0
        try:
            product, reference = _job(arguments), arguments["reference"]
            options = {"job": product, "reference": reference and _job(reference)}
        except ValueError as error:
            self._refuse(f"{'line ' * isinstance(error, TextError)}{error}")
            return
        options |= {"budget": arguments["budget"], "most": arguments["most_seconds"]}

        def looked(outcome: Outcome) -> None:
            problem, seen = outcome.problem, outcome.seen
            if self._waiting is not waiting:
                return
            if seen and seen.unread:
                problem = f"The simulator could not run it, so the page does not: {seen.unread}"
            elif seen and seen.why:
                problem = str(seen)
            if problem:
                self._refuse(problem)
            else:
                self._simulated = ""
                if arguments["source"] is not None:
                    limits = f" ({seen})" if seen else ""
                    self._simulated = f" The simulator finds nothing wrong{limits}."
                step("page")
                self._page = self.request.get("id", 0) + 1
                self.request = {"id": self._page, **options}

        if arguments["source"] is None:
            looked(Outcome(arguments))
        else:
            given = {name: arguments[name] for name in ARGUMENTS}
            client.shared_sandbox().submit(f"{name}, look", given, looked, step, "look")

    def stop(self, name: str) -> None:
        """Forget what runs: the page cannot interrupt it."""
        client.shared_sandbox().stop(f"{name}, look")
        self._refuse("stopped, as requested; the page ends what it has begun", "stopped")

    def _refuse(self, problem: str, kind: str = "refused") -> None:
        self._end(lambda arguments: Outcome(arguments, problem=problem, kind=kind))

    def _answered(self, result: Mapping[str, Any]) -> None:
        if "error" in result:
            result = {**result, "error": f"{result['error']}{self._simulated}"}
        if result.get("id") == self._page:
            self._end(lambda arguments: outcome(arguments, result))

    def _end(self, answer: Callable[[dict[str, Any]], Outcome]) -> None:
        if self._waiting:
            (arguments, done), self._waiting = self._waiting, None
            done(answer(arguments))


def _job(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The product as the page runs it."""
    kernel, params = arguments["kernel"], arguments["params"]
    sizes = arguments["m"], arguments["n"], arguments["k"]
    m, n, k = find(kernel).supported_sizes(*sizes, params)
    return asdict(job(kernel, m, n, k, params, text=arguments["source"]))


def outcome(arguments: dict[str, Any], found: Mapping[str, Any]) -> Outcome:
    """What the page has found, as the worker would say it."""
    if "error" in found:
        return Outcome(arguments, problem=found["error"], kind="page")
    m, n, k = arguments["m"], arguments["n"], arguments["k"]
    times = found["all"] or [1e-3 * found["ms"]]
    ms = 1e3 * median(times), 1e3 * min(times), 1e3 * max(times)
    result = Result(
        kernel=arguments["kernel"],
        params=arguments["params"],
        m=m,
        n=n,
        k=k,
        ok=found["ok"],
        verdict=found["verdict"],
        error=0.0,
        bound=0.0,
        kernel_ms=ms,
        pipeline_ms=ms,
        passes_ms={},
        repeats=len(times),
        build_seconds=found["build"],
        path="plain",
        device={"device": found["gpu"], "kind": "GPU"},
    )
    if not found["ok"]:
        return Outcome(arguments, result)
    mine, other = ([gflops(m, n, k, s) for s in found[key]] for key in ("all", "other"))
    return Outcome(arguments, result, compared=summary(mine, other))

"""The GPU of the reader's browser as a device in JupyterLab.

    gpu = gemmlab.web.BrowserGPU()    # show it in a cell: it opens the GPU and says which it is
    gpu.product(6, 512)               # runs in the page; the result arrives in `gpu.result`
    gemmlab.web.run(6, 512)           # both at once

A cell cannot wait for a page: messages of widgets arrive when no cell is running. Results therefore
come to the functions given to `on_result`, and to the panel itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import anywidget
import traitlets

from ..catalog import catalog
from ..catalog.spec import Limits
from .plan import Job, job, jobs, limits
from .shader import TINT, translate
from .statements import Style

FOLDER = Path(__file__).parent
#: What every GPU offers that a browser gives to pages.
LEAST = Limits("a browser", 256, (256, 256), 16384, asynchronous=False, warpgroups=False)


class BrowserGPU(anywidget.AnyWidget):
    """Runs products on the GPU of the browser that shows it.

    Attributes:
        gpu: name and limits once the page has opened it, or `reason` and `words` why there is
            none.
        brief: whether it says only which GPU there is, as others show the results.
        result: of the last request: `id`, `label`, `ok`, `verdict`, `gflops`, `ms`, `style`, the
            seconds of `all` runs and of those of the `other`, the reference; or
            `error` in words, with the `line` of the kernel where one is to blame. `note` is there
            where the GPU was lost before and had to be opened again.
    """

    _esm = "\n".join(
        (FOLDER / name).read_text(encoding="utf-8") for name in ("runner.js", "panel.js")
    )
    brief = traitlets.Bool(False).tag(sync=True)
    gpu = traitlets.Dict().tag(sync=True)
    request = traitlets.Dict().tag(sync=True)
    result = traitlets.Dict().tag(sync=True)

    def limits(self) -> Limits | None:
        """What the GPU allows, for the catalog; None before it is known."""
        return limits(self.gpu["limits"], self.gpu["name"]) if "limits" in self.gpu else None

    def product(
        self,
        kernel: int,
        m: int,
        n: int | None = None,
        k: int | None = None,
        params: Mapping[str, int] | None = None,
        *,
        text: str | None = None,
    ) -> int:
        """Ask the page for a product of m x k and k x n; returns the id that `result` will have.

        `params` default to what the GPU allows; before it is known, to what any GPU does. An edited
        `text` first runs in the simulator and then in the page, both times small and with every
        access checked.

        Raises:
            ParameterError: parameters or sizes are illegal.
            ValueError: the simulator finds a mistake in `text`; the message names the line.
        """
        n, k = n or m, k or m
        spec, allowed = catalog[kernel], self.limits()
        if params is None:
            params = spec.fit(allowed or LEAST)
        full = spec.validate(params, allowed)
        watched = None if text is None else self._watched(kernel, full, text)
        return self.ask(jobs(kernel, m, n, k, full, text=text), watched=watched)

    def ask(
        self,
        jobs: Mapping[str, Job],
        *,
        watched: Job | None = None,
        reference: Mapping[str, Job] | None = None,
        budget: float = 0.6,
        most_seconds: float = 10.0,
    ) -> int:
        """Ask the page for a product; returns the id that `result` will have.

        Args:
            jobs: the product in each of `STYLES`.
            watched: a small product with every access checked, which must go well before.
            reference: a product whose runs alternate with those of the first.
            budget: seconds for the runs of both.
            most_seconds: a launch that is predicted to take longer is refused.
        """
        first = next(iter(jobs.values()))
        identifier = self.request.get("id", 0) + 1
        self.request = {
            "id": identifier,
            "kernel": first.kernel,
            "label": f"kernel {first.kernel}, {first.m} x {first.n} x {first.k}",
            "watched": watched and watched.as_dict(),
            "jobs": _plain(jobs),
            "reference": reference and _plain(reference),
            "budget": budget,
            "most": most_seconds,
        }
        return identifier

    @staticmethod
    def _watched(kernel: int, params: dict[str, int], text: str) -> Job:
        """A small product with every access checked; the simulator has run it to its end."""
        from ..simt import simulate

        m, n, k = catalog[kernel].units(params)
        translate(text, "gemm", params, TINT)  # refused before anything runs
        small = simulate(kernel, m, n, k, params, text)
        if not small.ok:
            raise ValueError(small.verdict)
        return job(kernel, m, n, k, params, text=text, style=Style(watched=True))

    def on_result(self, function: Callable[[dict], None]) -> None:
        """Call a function with each result that arrives."""
        self.observe(lambda change: function(change["new"]), "result")


def _plain(jobs: Mapping[str, Job]) -> dict[str, dict]:
    return {label: one.as_dict() for label, one in jobs.items()}


def run(kernel: int, m: int, n: int | None = None, k: int | None = None, **options) -> BrowserGPU:
    """A panel that runs one product on the browser's GPU and shows verdict and rate.

    Takes what `BrowserGPU.product` takes.
    """
    panel = BrowserGPU()
    panel.product(kernel, m, n, k, **options)
    return panel

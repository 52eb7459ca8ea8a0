"""The GPU of the reader's browser as a device in JupyterLab.

    gpu = gemmlab.web.BrowserGPU()    # show it in a cell: it opens the GPU and says which it is
    gpu.product(6, 512)               # runs in the page; the result arrives in `gpu.result`
    gemmlab.web.run(6, 512)           # both at once

A cell cannot wait for a page: messages of widgets arrive when no cell is running. Results therefore
come to the functions given to `on_result`, and to the panel itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path

import anywidget
import traitlets

from ..catalog import catalog
from ..catalog.spec import Limits
from .plan import Job, jobs, limits

#: Seconds that the simulator may take for an edited text.
LONGEST = 5.0

FOLDER = Path(__file__).parent
#: What every GPU offers that a browser gives to pages.
LEAST = Limits("a browser", 256, (256, 256), 16384, 4, asynchronous=False, warpgroups=False)


class BrowserGPU(anywidget.AnyWidget):
    """Runs products on the GPU of the browser that shows it.

    Attributes:
        gpu: name and limits once the page has opened it, or `reason` and `words` why there is
            none.
        brief: whether it says only which GPU there is, as others show the results.
        result: of the last request: `id`, `label`, `ok`, `verdict`, `gflops`, `ms`, `style`, the
            seconds of `all` runs and of those of the `other`, the reference; or `error` in words.
            `note` is there where the GPU was lost before and had to be opened again.
    """

    _esm = "\n".join(
        (FOLDER / name).read_text(encoding="utf-8") for name in ("runner.js", "panel.js")
    )
    brief = traitlets.Bool(False).tag(sync=True)
    gpu = traitlets.Dict().tag(sync=True)
    request = traitlets.Dict().tag(sync=True)
    result = traitlets.Dict().tag(sync=True)

    def limits(self) -> Limits | None:
        """What the GPU allows, for the catalog; None before the page has opened it."""
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

        `params` default to what the GPU allows; before the page has opened it, to what any GPU
        does. An edited `text` first runs in the simulator, on a tile.

        Raises:
            ParameterError: parameters or sizes are illegal.
            ValueError: the simulator finds a mistake in `text`; the message names the line.
            TimeoutError: the simulator takes too long.
        """
        n, k = n or m, k or m
        spec, allowed = catalog[kernel], self.limits()
        full = spec.validate(spec.fit(allowed or LEAST) if params is None else params, allowed)
        requested = jobs(kernel, m, n, k, full, text=text)
        if text is not None:
            from ..simt import simulate

            small = simulate(kernel, *spec.units(full), full, text, seconds=LONGEST)
            if not small.ok:
                raise ValueError(small.verdict)
        return self.ask(requested)

    def ask(
        self,
        jobs: Mapping[str, Job],
        *,
        reference: Mapping[str, Job] | None = None,
        budget: float = 0.6,
        most_seconds: float = 10.0,
    ) -> int:
        """Ask the page for a product; returns the id that `result` will have.

        Args:
            jobs: the product in each of `STYLES`.
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
            "jobs": _plain(jobs),
            "reference": reference and _plain(reference),
            "budget": budget,
            "most": most_seconds,
        }
        return identifier

    def on_result(self, function: Callable[[dict], None]) -> None:
        """Call a function with each result that arrives."""
        self.observe(lambda change: function(change["new"]), "result")


def _plain(jobs: Mapping[str, Job]) -> dict[str, dict]:
    return {label: asdict(one) for label, one in jobs.items()}


def run(kernel: int, m: int, n: int | None = None, k: int | None = None, **options) -> BrowserGPU:
    """A panel that runs one product on the browser's GPU and shows verdict and rate.

    Takes what `BrowserGPU.product` takes.
    """
    panel = BrowserGPU()
    panel.product(kernel, m, n, k, **options)
    return panel

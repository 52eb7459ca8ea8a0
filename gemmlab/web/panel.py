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
from .plan import job, limits
from .shader import STYLES, TINT, translate
from .statements import Style

_PANEL = """
const TRIES = new Map(); // the quickest style on this GPU, by kernel
export default { async render({ model, el }) {
  const line = document.createElement("div");
  line.setAttribute("role", "status");
  line.textContent = "Looking for this browser's GPU";
  el.append(line);
  const send = (name, value) => { model.set(name, value); model.save_changes(); };
  const open = async () => {
    const found = await openGPU();
    const cpu = found.cpu ? " (its CPU plays it)" : "";
    line.textContent = found.words ?? `This browser's GPU: ${found.name}${cpu}`;
    const { name, limits, features, reason, words } = found;
    send("gpu", found.device ? { name, cpu: found.cpu, limits, features } : { reason, words });
    return found;
  };
  let gpu = await open(), busy = Promise.resolve();
  async function work({ id, label, watched, jobs }) {
    if (gpu.lost) gpu = await open();
    if (!gpu.device) return { id, error: gpu.words };
    line.textContent = `${label}: running`;
    if (watched) {
      const seen = await product(gpu, watched, { timed: false });
      const at = Number(/^line (\\d+)/.exec(seen.error)?.[1] ?? 0);
      if (!seen.exact) return { id, error: verdict(seen), line: at };
    }
    const key = `${gpu.name} ${label}`;
    let best = null;
    for (const [style, one] of Object.entries(jobs)) {
      if (TRIES.has(key) && TRIES.get(key) !== style) continue;
      const result = await product(gpu, one);
      if (result.error) return { id, error: result.error };
      if (!best || result.gflops > best.gflops) best = { ...result, style };
    }
    TRIES.set(key, best.style);
    const { exact: ok, gflops, seconds, style } = best;
    return { id, ok, verdict: verdict(best), gflops, ms: 1e3 * seconds, style };
  }
  const go = () => {
    const request = model.get("request");
    if (!request?.id) return;
    busy = busy.then(async () => {
      if (model.get("request").id !== request.id) return; // a newer request wins
      const result = await work(request);
      const words = result.error ?? `${result.verdict}, ${result.gflops.toFixed(1)} GFLOPS`;
      line.textContent = `${request.label}: ${words}`;
      send("result", { ...result, label: request.label, gpu: gpu.name ?? "" });
    });
  };
  model.on("change:request", go);
  go();
  return () => { model.off("change:request", go); gpu.device?.destroy(); };
} };
"""


class BrowserGPU(anywidget.AnyWidget):
    """Runs products on the GPU of the browser that shows it.

    Attributes:
        gpu: name, limits and features once the page has opened it, or `reason` and `words` why
            there is none.
        result: of the last request: `id`, `label`, `ok`, `verdict`, `gflops`, `ms` and `style`, or
            `error` in words, with the `line` of the kernel where one is to blame.
    """

    _esm = (Path(__file__).parent / "runner.js").read_text(encoding="utf-8") + _PANEL
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

        `params` default to what the GPU allows. An edited `text` first runs in the simulator and
        then in the page, both times small and with every access checked.

        Raises:
            ParameterError: parameters or sizes are illegal.
            ValueError: the simulator finds a mistake in `text`; the message names the line.
        """
        n, k = n or m, k or m
        spec, allowed = catalog[kernel], self.limits()
        if params is None and allowed is not None:
            params = spec.fit(allowed)
        full = spec.validate(params, allowed)
        watched = None
        if text is not None:
            watched = self._watched(kernel, full, text)
        jobs = {
            label: job(kernel, m, n, k, full, text=text, style=style).as_dict()
            for label, style in STYLES.items()
        }
        identifier = self.request.get("id", 0) + 1
        label = f"kernel {kernel}, {m} x {n} x {k}"
        self.request = {"id": identifier, "label": label, "watched": watched, "jobs": jobs}
        return identifier

    @staticmethod
    def _watched(kernel: int, params: dict[str, int], text: str) -> dict:
        """A small product with every access checked; the simulator has run it to its end."""
        from ..simt import simulate

        m, n, k = catalog[kernel].units(params)
        translate(text, "gemm", params, TINT)  # refused before anything runs
        small = simulate(kernel, m, n, k, params, text)
        if not small.ok:
            raise ValueError(small.verdict)
        return job(kernel, m, n, k, params, text=text, style=Style(watched=True)).as_dict()

    def on_result(self, function: Callable[[dict], None]) -> None:
        """Call a function with each result that arrives."""
        self.observe(lambda change: function(change["new"]), "result")


def run(kernel: int, m: int, n: int | None = None, k: int | None = None, **options) -> BrowserGPU:
    """A panel that runs one product on the browser's GPU and shows verdict and rate.

    Takes what `BrowserGPU.product` takes. Parameters default to those that any browser's GPU
    allows, as the page has not yet said what its GPU does.
    """
    panel = BrowserGPU()
    least = Limits("a browser", 256, (256, 256), 16384, asynchronous=False, warpgroups=False)
    options.setdefault("params", catalog[kernel].fit(least))
    panel.product(kernel, m, n, k, **options)
    return panel

"""Record how fast the kernels run through WebGPU, with the checks that a browser makes.

    python tools/web_rates.py --json results/nvidia_h200_webgpu.json  # PyPI's wgpudawn (tint)
    python tools/web_rates.py --backend wgpu --size 256               # PyPI's wgpu (naga)

Every product is checked: inputs are small integers, C starts as NaN and has a frame of NaN.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import product
from typing import Any

import common
import numpy as np

from clscope import wgsl
from clscope.wgsl import host
from gemmlab import check, model, webgpu
from gemmlab.cli import count, kernel_numbers, record_file
from gemmlab.ladder import catalog
from gemmlab.measurement import clock, records

FRAME = 64  # floats of NaN behind C that no kernel may touch
SECONDS = 0.2  # of work in one submission


class Host(host.Host):
    """A GPU that multiplies matrices."""

    def allowed(self):
        """Its limits as the catalog takes them; JavaScript's names are in camel case."""
        names = {key: key.title().replace("-", "") for key in self.limits}
        of = {name[0].lower() + name[1:]: self.limits[key] for key, name in names.items()}
        return webgpu.limits(of, "this GPU")

    def product(self, job, a, b) -> tuple[np.ndarray, bool]:
        """C = A B in the job's one style, and whether the frame behind C is untouched."""
        (shader,) = job.shaders.values()
        got = self.run(shader, *arguments(job, a, b), job.groups)["C"]
        untouched = bool(np.isnan(got[job.m * job.n :]).all())
        return got[: job.m * job.n].reshape(job.n, job.m).T, untouched

    def seconds(self, ready: host.Ready) -> list[float]:
        """Wall-clock seconds per launch of three submissions."""

        def wait() -> None:  # reading waits for what was submitted
            self.device.queue.read_buffer(ready.buffers["C"], 0, 4)

        def one(times: int) -> float:
            return clock.wall_seconds(partial(self.launch, ready, times), wait) / times

        one(1)
        times = max(1, min(5000, int(SECONDS / one(1))))
        return [one(times) for _ in range(3)]


def arguments(job, a, b) -> tuple[dict[str, np.ndarray], dict[str, int]]:
    """The arrays, column-major, and the sizes of a product."""
    c = np.full(job.m * job.n + FRAME, np.nan, np.float32)
    arrays = {"A": a.ravel("F"), "B": (b.T if job.transposed else b).ravel("F"), "C": c}
    return arrays, {"M": job.m, "N": job.n, "K": job.k}


def rates(gpu: Host, kernels: Iterable[int], size: int) -> Iterator[dict[str, Any]]:
    """Check and time kernels at M = N = K = size, in each style."""
    a, b = check.exact_inputs(size, size, size)
    for kernel, (label, style) in product(kernels, wgsl.STYLES.items()):
        params = catalog[kernel].fit(gpu.allowed())
        job = webgpu.job(kernel, size, size, size, params, styles={label: style})
        c, untouched = gpu.product(job, a, b)
        shader = job.shaders[label]
        times = gpu.seconds(gpu.prepare(shader, *arguments(job, a, b), job.groups))
        yield {
            "kernel": kernel,
            "params": params,
            "style": label,
            "m": size,
            "n": size,
            "k": size,
            "exact": untouched and check.exact(c, a, b).ok,
            "gflops": model.gflops(size, size, size, statistics.median(times)),
            "kernel_ms": [1e3 * t for t in times],
        }


def main() -> None:
    parser = common.parser(__doc__)
    parser.add_argument("--backend", default="wgpudawn", choices=("wgpudawn", "wgpu"))
    parser.add_argument("--device", default="", help="part of its name")
    parser.add_argument("--kernels", type=kernel_numbers, default=range(1, 14))
    parser.add_argument("--size", type=count, default=4096)
    parser.add_argument("--json", type=record_file)
    given = parser.parse_args()
    gpu = Host(given.backend, given.device)
    print(gpu.adapter.summary, flush=True)
    compiler = "tint" if given.backend == "wgpudawn" else "naga"
    name = gpu.adapter.info["device"]
    record: dict[str, Any] = {
        "title": f"{name}, Vulkan, {compiler}, checked as in a browser",
        **records.origin(common.command()),
        "device": {
            "device": name,
            "platform": "Vulkan",
            "version": f"{compiler}, {given.backend} {gpu.wgpu.__version__}",
            "driver": gpu.adapter.info.get("description", ""),
            "kind": "GPU",
        },
        "limits": gpu.limits,
        "rates": [],
    }
    for row in rates(gpu, given.kernels, given.size):
        verdict = "exact" if row["exact"] else "WRONG"
        print(row["kernel"], row["style"], verdict, f"{row['gflops']:.1f} GFLOPS", flush=True)
        record["rates"].append(row)
        if given.json:
            records.write(given.json, record)


if __name__ == "__main__":
    common.run(main)

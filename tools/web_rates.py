"""Record how fast the kernels run through WebGPU, with the checks that a browser makes.

    python tools/web_rates.py --json results/nvidia_h200_webgpu.json  # PyPI's wgpudawn (tint)
    python tools/web_rates.py --backend wgpu --size 256               # PyPI's wgpu (naga)

Every product is checked: inputs are small integers, C starts as NaN and has a frame of NaN.
"""

from __future__ import annotations

import importlib
import statistics
import struct
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import product
from typing import Any, NamedTuple

import common
import numpy as np

from clscope import wgsl
from gemmlab import check, model, webgpu
from gemmlab.cli import count, kernel_numbers, record_file
from gemmlab.ladder import catalog
from gemmlab.measurement import clock, records

FRAME = 64  # floats of NaN behind C that no kernel may touch
SECONDS = 0.2  # of work in one submission


class Ready(NamedTuple):
    """A kernel with its arguments: what a pass needs."""

    pipeline: Any
    bindings: Any
    groups: tuple[int, ...]
    buffers: dict[str, Any]


class Host:
    """A GPU through wgpu (naga, the compiler of Firefox) or wgpudawn (tint, that of Chrome)."""

    def __init__(self, backend: str = "wgpu", name: str = ""):
        self.wgpu = importlib.import_module(backend)
        adapters = self.wgpu.gpu.enumerate_adapters_sync()
        adapters = [a for a in adapters if a.info["backend_type"] == "Vulkan"]
        adapters = [a for a in adapters if name.lower() in a.summary.lower()]
        if not adapters:
            raise RuntimeError(f"{backend} offers no Vulkan device named {name!r}")
        self.adapter = adapters[0]
        self.limits = dict(self.adapter.limits)
        self.device = self.adapter.request_device_sync(required_limits=self.limits)

    def allowed(self):
        """Its limits as the catalog takes them; JavaScript's names are in camel case."""
        names = {key: key.title().replace("-", "") for key in self.limits}
        of = {name[0].lower() + name[1:]: self.limits[key] for key, name in names.items()}
        return webgpu.limits(of, "this GPU")

    def buffer(self, data, usage: str = "STORAGE"):
        use = self.wgpu.BufferUsage
        flags = getattr(use, usage) | use.COPY_SRC | use.COPY_DST
        return self.device.create_buffer_with_data(data=data, usage=flags)

    def read(self, buffer, dtype=np.float32) -> np.ndarray:
        return np.frombuffer(self.device.queue.read_buffer(buffer), dtype)

    def prepare(self, shader, arrays, values, groups) -> Ready:
        """Compile a shader of `wgsl.translate` and copy its arguments, by name, to the GPU."""
        buffers = {b.name: self.buffer(arrays[b.name]) for b in shader.buffers}
        kinds = ["storage" if b.written else "read-only-storage" for b in shader.buffers]
        bound = [*buffers.values()]
        if shader.scalars:
            letters = {"f32": "f", "u32": "I", "i32": "i"}
            data = b"".join(struct.pack(letters[kind], values[n]) for n, kind in shader.scalars)
            bound.append(self.buffer(data + b"\0" * (-len(data) % 16), "UNIFORM"))
            kinds.append("uniform")
        if shader.watched:
            buffers["watch"] = self.buffer(np.zeros(4, np.int32))
            bound.append(buffers["watch"])
            kinds.append("storage")
        compute = self.wgpu.ShaderStage.COMPUTE
        # the layout "auto" would leave out unused bindings
        layout = self.device.create_bind_group_layout(
            entries=[
                {"binding": i, "visibility": compute, "buffer": {"type": kind}}
                for i, kind in enumerate(kinds)
            ]
        )
        module = self.device.create_shader_module(code=shader.code)
        pipeline = self.device.create_compute_pipeline(
            layout=self.device.create_pipeline_layout(bind_group_layouts=[layout]),
            compute={"module": module, "entry_point": shader.entry},
        )
        entries = [
            {"binding": i, "resource": {"buffer": b, "offset": 0, "size": b.size}}
            for i, b in enumerate(bound)
        ]
        bindings = self.device.create_bind_group(layout=layout, entries=entries)
        return Ready(pipeline, bindings, groups, buffers)

    def launch(self, ready: Ready, times: int = 1) -> None:
        """Submit so many launches."""
        encoder = self.device.create_command_encoder()
        compute = encoder.begin_compute_pass()
        compute.set_pipeline(ready.pipeline)
        compute.set_bind_group(0, ready.bindings)
        for _ in range(times):
            compute.dispatch_workgroups(*ready.groups)
        compute.end()
        self.device.queue.submit([encoder.finish()])

    def run(self, shader, arrays, values, groups) -> dict[str, np.ndarray]:
        """Run a kernel once, with the arguments of `prepare`; what its arrays hold then, and the
        "watch" of a watched one.
        """
        ready = self.prepare(shader, arrays, values, groups)
        self.launch(ready)
        dtypes = {name: array.dtype for name, array in arrays.items()} | {"watch": np.int32}
        return {name: self.read(b, dtypes[name]) for name, b in ready.buffers.items()}

    def product(self, job, a, b) -> tuple[np.ndarray, bool]:
        """C = A B in the job's one style, and whether the frame behind C is untouched."""
        (shader,) = job.shaders.values()
        got = self.run(shader, *arguments(job, a, b), job.groups)["C"]
        untouched = bool(np.isnan(got[job.m * job.n :]).all())
        return got[: job.m * job.n].reshape(job.n, job.m).T, untouched

    def seconds(self, ready: Ready) -> list[float]:
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


def rates(host: Host, kernels: Iterable[int], size: int) -> Iterator[tuple[dict[str, Any], bool]]:
    """Check and time kernels at M = N = K = size, in each style: a row of the record, and whether
    the product is exact.
    """
    a, b = check.exact_inputs(size, size, size)
    for kernel, (label, style) in product(kernels, wgsl.STYLES.items()):
        params = catalog[kernel].fit(host.allowed())
        job = webgpu.job(kernel, size, size, size, params, styles={label: style})
        c, untouched = host.product(job, a, b)
        shader = job.shaders[label]
        times = host.seconds(host.prepare(shader, *arguments(job, a, b), job.groups))
        row = {"kernel": kernel, **params, "variant": label, "m": size, "n": size, "k": size}
        row |= {"metric": "ms", "values": [1e3 * t for t in times]}
        yield row, untouched and check.exact(c, a, b).ok


def main() -> None:
    parser = common.parser(__doc__)
    parser.add_argument("--backend", default="wgpudawn", choices=("wgpudawn", "wgpu"))
    parser.add_argument("--device", default="", help="part of its name")
    parser.add_argument("--kernels", type=kernel_numbers, default=range(1, 14))
    parser.add_argument("--size", type=count, default=4096)
    parser.add_argument("--json", type=record_file)
    given = parser.parse_args()
    host = Host(given.backend, given.device)
    print(host.adapter.summary, flush=True)
    compiler = "tint" if given.backend == "wgpudawn" else "naga"
    name = host.adapter.info["device"]
    head = {
        "title": f"{name}, Vulkan, {compiler}, checked as in a browser",
        "device": name,
        "platform": "Vulkan",
        "version": f"{compiler}, {given.backend} {host.wgpu.__version__}",
        "driver": host.adapter.info.get("description", ""),
        "kind": "GPU",
        **records.origin(common.command()),
        "limits": host.limits,
    }
    for row, exact in rates(host, given.kernels, given.size):
        rate = model.gflops(row["m"], row["n"], row["k"], 1e-3 * statistics.median(row["values"]))
        verdict = "exact" if exact else "WRONG"
        print(row["kernel"], row["variant"], verdict, f"{rate:.1f} GFLOPS", flush=True)
        if given.json and exact:
            records.append(given.json, head, [row])


if __name__ == "__main__":
    common.run(main)

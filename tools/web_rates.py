"""Record how fast the kernels run through WebGPU, with the checks that a browser makes.

    python tools/web_rates.py --json results/nvidia_h200_webgpu.json  # PyPI's wgpudawn (tint)
    python tools/web_rates.py --backend wgpu --size 256               # PyPI's wgpu (naga)

Every product is checked: inputs are small integers, C starts as NaN and has a frame of NaN.
"""

from __future__ import annotations

import argparse
import importlib
import statistics
import struct
import time

import common
import numpy as np

from gemmlab import web
from gemmlab.catalog import catalog
from gemmlab.cli import output_file
from gemmlab.measurement import records

FRAME = 64  # floats of NaN behind C that no kernel may touch
SECONDS = 0.2  # of work in one submission
LIMITS = (
    "max-compute-invocations-per-workgroup",
    "max-compute-workgroup-size-x",
    "max-compute-workgroup-size-y",
    "max-compute-workgroup-storage-size",
    "max-storage-buffer-binding-size",
    "max-buffer-size",
)


class Host:
    """A GPU through wgpu (naga, the compiler of Firefox) or wgpudawn (tint, that of Chrome)."""

    def __init__(self, backend: str = "wgpu", name: str = ""):
        self.wgpu = importlib.import_module(backend)
        self.backend = backend
        adapters = self.wgpu.gpu.enumerate_adapters_sync()
        adapters = [a for a in adapters if a.info["backend_type"] == "Vulkan"]
        adapters = [a for a in adapters if name.lower() in a.summary.lower()]
        if not adapters:
            raise RuntimeError(f"{backend} offers no Vulkan device named {name!r}")
        self.adapter = adapters[0]
        self.limits = {key: self.adapter.limits[key] for key in LIMITS}
        self.features = [f for f in ("timestamp-query",) if f in self.adapter.features]
        self.device = self.adapter.request_device_sync(
            required_features=self.features, required_limits=self.limits
        )

    def allowed(self, name: str = "this GPU"):
        """Its limits as the catalog takes them."""
        of = {
            "".join(p.capitalize() if i else p for i, p in enumerate(key.split("-"))): value
            for key, value in self.limits.items()
        }
        return web.limits(of, name)

    def buffer(self, data, usage: str = "STORAGE"):
        use = self.wgpu.BufferUsage
        flags = getattr(use, usage) | use.COPY_SRC | use.COPY_DST
        return self.device.create_buffer_with_data(data=data, usage=flags)

    def read(self, buffer, dtype=np.float32) -> np.ndarray:
        return np.frombuffer(self.device.queue.read_buffer(buffer), dtype)

    def wait(self) -> None:
        if self.backend == "wgpu":
            self.device._poll_wait()
        else:
            self.device.queue.on_submitted_work_done_sync()

    def build(self, shader):
        """The pipeline, and the layout of its bindings: "auto" would leave out unused ones."""
        kinds = ["storage" if b.written else "read-only-storage" for b in shader.buffers]
        kinds += ["uniform"] * bool(shader.scalars) + ["storage"] * shader.watched
        see = self.wgpu.ShaderStage.COMPUTE
        layout = self.device.create_bind_group_layout(
            entries=[
                {"binding": i, "visibility": see, "buffer": {"type": kind}}
                for i, kind in enumerate(kinds)
            ]
        )
        pipeline = self.device.create_compute_pipeline(
            layout=self.device.create_pipeline_layout(bind_group_layouts=[layout]),
            compute={
                "module": self.device.create_shader_module(code=shader.code),
                "entry_point": shader.entry,
            },
        )
        return pipeline, layout

    def bind(self, layout, buffers):
        entries = [
            {"binding": i, "resource": {"buffer": b, "offset": 0, "size": b.size}}
            for i, b in enumerate(buffers)
        ]
        return self.device.create_bind_group(layout=layout, entries=entries)

    def uniform(self, shader, values):
        letters = {"f32": "f", "u32": "I", "i32": "i"}
        data = b"".join(struct.pack("<" + letters[kind], values[n]) for n, kind in shader.scalars)
        return self.buffer(data + b"\0" * (-len(data) % 16), "UNIFORM")

    def launch(self, pipeline, group, groups, times: int = 1, stamps=None) -> None:
        encoder = self.device.create_command_encoder()
        if stamps is None:
            compute = encoder.begin_compute_pass()
        else:
            compute = encoder.begin_compute_pass(
                timestamp_writes={
                    "query_set": stamps[0],
                    "beginning_of_pass_write_index": 0,
                    "end_of_pass_write_index": 1,
                }
            )
        compute.set_pipeline(pipeline)
        compute.set_bind_group(0, group)
        for _ in range(times):
            compute.dispatch_workgroups(*groups)
        compute.end()
        if stamps is not None:
            encoder.resolve_query_set(stamps[0], 0, 2, stamps[1], 0)
        self.device.queue.submit([encoder.finish()])

    def run(self, shader, arrays, values, groups) -> dict[str, np.ndarray]:
        """Run a kernel once: `arrays` by the names of its pointer arguments; returns what they
        hold then, and `watch` of a watched one.
        """
        pipeline, layout = self.build(shader)
        buffers = {b.name: self.buffer(arrays[b.name]) for b in shader.buffers}
        everything = list(buffers.values())
        if shader.scalars:
            everything.append(self.uniform(shader, values))
        if shader.watched:
            buffers["watch"] = self.buffer(np.zeros(4, np.int32))
            everything.append(buffers["watch"])
        self.launch(pipeline, self.bind(layout, everything), groups)
        dtypes = {name: array.dtype for name, array in arrays.items()} | {"watch": np.int32}
        return {name: self.read(b, dtypes[name]) for name, b in buffers.items()}

    def product(self, job, a, b) -> tuple[np.ndarray, bool]:
        """C = A B, and whether the frame behind C is untouched."""
        c = np.full(job.m * job.n + FRAME, np.nan, np.float32)
        arrays = {"A": flat(a), "B": flat(b.T if job.transposed else b), "C": c}
        sizes = {"M": job.m, "N": job.n, "K": job.k}
        got = self.run(job.shader, arrays, sizes, job.groups)["C"]
        untouched = bool(np.isnan(got[job.m * job.n :]).all())
        return got[: job.m * job.n].reshape(job.n, job.m).T, untouched

    def seconds(self, pipeline, group, groups) -> list[float]:
        """Seconds per launch, three times, from timestamps or from the wall clock."""
        use, stamps = self.wgpu.BufferUsage, None
        if "timestamp-query" in self.features:
            memory = self.device.create_buffer(size=16, usage=use.QUERY_RESOLVE | use.COPY_SRC)
            stamps = (self.device.create_query_set(type="timestamp", count=2), memory)

        def one(times: int) -> float:
            start = time.perf_counter()
            self.launch(pipeline, group, groups, times, stamps)
            self.wait()
            wall = time.perf_counter() - start
            if stamps is None:
                return wall / times
            begin, end = self.read(stamps[1], np.uint64)
            return float(end - begin) * 1e-9 / times

        one(1)
        times = max(1, min(50, int(SECONDS / max(one(1), 1e-5))))
        return [one(times) for _ in range(3)]


def flat(matrix: np.ndarray) -> np.ndarray:
    """Column-major."""
    return np.ascontiguousarray(matrix.T, np.float32).ravel()


def integers(rows: int, cols: int, seed: int) -> np.ndarray:
    """Integers small enough for a product without any rounding error."""
    return np.random.default_rng(seed).integers(-4, 5, (rows, cols)).astype(np.float32)


def record(host: Host, kernels, size: int, styles) -> list[dict]:
    a, b = integers(size, size, 1), integers(size, size, 2)
    held = {False: host.buffer(flat(b)), True: host.buffer(flat(b.T))}
    memory_a, want = host.buffer(flat(a)), flat(a @ b)
    blank = np.full(size * size + FRAME, np.nan, np.float32)
    memory_c = host.buffer(blank)
    rows = []
    for kernel in kernels:
        spec = catalog[kernel]
        params = spec.fit(host.allowed())
        for label in styles:
            job = web.job(kernel, size, size, size, params, style=web.STYLES[label])
            start = time.perf_counter()
            pipeline, layout = host.build(job.shader)
            build = time.perf_counter() - start
            host.device.queue.write_buffer(memory_c, 0, blank)
            sizes = host.uniform(job.shader, {"M": size, "N": size, "K": size})
            group = host.bind(layout, [memory_a, held[job.transposed], memory_c, sizes])
            host.launch(pipeline, group, job.groups)
            c = host.read(memory_c)
            exact = np.array_equal(c[: size * size], want) and np.isnan(c[size * size :]).all()
            times = host.seconds(pipeline, group, job.groups)
            gflops = 2e-9 * size**3 / statistics.median(times)
            print(f"{kernel:>2} {label:<8} {'exact' if exact else 'WRONG'} {gflops:9.1f} GFLOPS "
                  f"build {build:.2f} s {params}", flush=True)  # fmt: skip
            rows.append(
                {
                    "kernel": kernel,
                    "params": params,
                    "style": label,
                    "m": size,
                    "n": size,
                    "k": size,
                    "exact": bool(exact),
                    "gflops": gflops,
                    "kernel_ms": [1e3 * t for t in times],
                    "build_s": build,
                }
            )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--backend", default="wgpudawn", choices=("wgpudawn", "wgpu"))
    parser.add_argument("--device", default="", help="part of its name")
    parser.add_argument("--kernels", default=",".join(map(str, range(1, 14))))
    parser.add_argument("--size", type=int, default=4096)
    parser.add_argument("--styles", default=",".join(web.STYLES))
    parser.add_argument("--json", type=output_file)
    args = parser.parse_args()
    host = Host(args.backend, args.device)
    print(host.adapter.summary, host.features, host.limits, flush=True)
    kernels = [int(k) for k in args.kernels.split(",")]
    rows = record(host, kernels, args.size, args.styles.split(","))
    if args.json:
        compiler = "tint" if args.backend == "wgpudawn" else "naga"
        name = host.adapter.info["device"]
        found = {
            "title": f"{name}, Vulkan, {compiler}, checked as in a browser",
            **records.origin(common.command()),
            "device": {
                "device": name,
                "platform": "Vulkan",
                "version": f"{compiler}, {args.backend} {host.wgpu.__version__}",
                "driver": host.adapter.info.get("description", ""),
                "kind": "GPU",
            },
            "limits": host.limits,
            "rates": rows,
        }
        records.write(args.json, found)


if __name__ == "__main__":
    common.run(main)

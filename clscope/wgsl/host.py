"""Run a `Shader` on a GPU from Python, through wgpu (naga, the compiler of Firefox) or wgpudawn
(tint, that of Chrome), both from PyPI. In a page, `runner.js` does it.
"""

from __future__ import annotations

import importlib
import struct
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from .shader import Shader


class Ready(NamedTuple):
    """A compiled shader with its arguments: what a pass needs."""

    pipeline: Any
    bindings: Any
    groups: Sequence[int]
    buffers: dict[str, Any]


class Host:
    """A GPU that Vulkan offers.

    Args:
        backend: "wgpu" or "wgpudawn"; name: a part of the device's name.

    Raises:
        ImportError: if the backend is not installed; RuntimeError: if it has no such device.
    """

    def __init__(self, backend: str = "wgpu", name: str = ""):
        self.wgpu: Any = importlib.import_module(backend)
        adapters = self.wgpu.gpu.enumerate_adapters_sync()
        adapters = [a for a in adapters if a.info["backend_type"] == "Vulkan"]
        adapters = [a for a in adapters if name.lower() in a.summary.lower()]
        if not adapters:
            raise RuntimeError(f"{backend} offers no Vulkan device named {name!r}")
        self.adapter: Any = adapters[0]
        self.limits: dict[str, int] = dict(self.adapter.limits)
        self.device: Any = self.adapter.request_device_sync(required_limits=self.limits)

    def buffer(self, data: Any, usage: str = "STORAGE") -> Any:
        """Copy data to the GPU."""
        use = self.wgpu.BufferUsage
        flags = getattr(use, usage) | use.COPY_SRC | use.COPY_DST
        return self.device.create_buffer_with_data(data=data, usage=flags)

    def read(self, buffer: Any, dtype: Any = np.float32) -> np.ndarray:
        """Copy a buffer from the GPU."""
        return np.frombuffer(self.device.queue.read_buffer(buffer), dtype)

    def prepare(self, shader: Shader, arrays: Mapping[str, np.ndarray],
                values: Mapping[str, float], groups: Sequence[int]) -> Ready:  # fmt: skip
        """Compile a shader, and copy its arguments, by name, to the GPU."""
        buffers = {b.name: self.buffer(arrays[b.name]) for b in shader.buffers}
        kinds = ["storage" if b.written else "read-only-storage" for b in shader.buffers]
        bound = [*buffers.values()]
        if shader.watched:
            buffers["watch"] = self.buffer(np.zeros(4, np.int32))
            bound.append(buffers["watch"])
            kinds.append("storage")
        if shader.scalars:
            letters = {"f32": "f", "u32": "I", "i32": "i"}
            data = b"".join(struct.pack(letters[kind], values[n]) for n, kind in shader.scalars)
            bound.append(self.buffer(data + b"\0" * (-len(data) % 16), "UNIFORM"))
            kinds.append("uniform")
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
        """Submit launches, and do not wait for them."""
        encoder = self.device.create_command_encoder()
        compute = encoder.begin_compute_pass()
        compute.set_pipeline(ready.pipeline)
        compute.set_bind_group(0, ready.bindings)
        for _ in range(times):
            compute.dispatch_workgroups(*ready.groups)
        compute.end()
        self.device.queue.submit([encoder.finish()])

    def run(self, shader: Shader, arrays: Mapping[str, np.ndarray], values: Mapping[str, float],
            groups: Sequence[int]) -> dict[str, np.ndarray]:  # fmt: skip
        """Run a kernel once.

        Args:
            arrays, values: its arguments by name: the pointers', and the others; groups: three
                numbers of work-groups.

        Returns:
            What the arrays hold then; of a watched shader also "watch", see `Shader`.
        """
        ready = self.prepare(shader, arrays, values, groups)
        self.launch(ready)
        dtypes = {name: array.dtype for name, array in arrays.items()} | {"watch": np.int32}
        return {name: self.read(b, dtypes[name]) for name, b in ready.buffers.items()}

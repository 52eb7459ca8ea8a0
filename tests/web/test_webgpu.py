"""PyOpenCL's names over WebGPU, on a GPU that wgpu offers instead of a browser's."""

import numpy as np
import pytest
from conftest import lacking

import clscope.webgpu as cl
import clscope.webgpu.array as cla
from clscope.webgpu import queue as queues
from clscope.webgpu.gpu import NoGPUError
from clscope.wgsl.host import Host

pytestmark = pytest.mark.system

TEXT = """\
#define HALF 0.5f
__kernel void scale(const float alpha, __global const float* x, __global float* y)
{
    y[get_global_id(0)] = alpha * x[get_global_id(0)] * HALF * 2.0f;
}

__kernel __attribute__((reqd_work_group_size(8, 1, 1)))
void reverse(const int n, __global const float4* x, __global float4* y)
{
    y[n - 1 - get_global_id(0)] = x[get_global_id(0)];
}
"""


def _in_camel_case(name: str) -> str:
    first, *others = name.split("-")
    return first + "".join(map(str.capitalize, others))


class HostGPU:
    """`clscope.webgpu.gpu.GPU` on wgpu."""

    name, is_cpu, opened, most_timed = "wgpu", True, 1, 0

    def __init__(self, host: Host):
        self.host, self.device = host, host.device
        self.last = self.create(16)
        self.limits = {_in_camel_case(name): limit for name, limit in host.limits.items()}

    def create(self, size_bytes):
        use = self.host.wgpu.BufferUsage
        size = 16 * max(1, -(-size_bytes // 16))
        usage = use.STORAGE | use.COPY_SRC | use.COPY_DST
        return self.device.create_buffer(size=size, usage=usage)

    def destroy(self, buffer):
        buffer.destroy()

    def write(self, buffer, at, data):
        self.device.queue.write_buffer(buffer, at, np.resize(data, -(-data.size // 4) * 4))

    def read(self, buffer, at, data):
        size = -(-data.size // 4) * 4
        memory = self.device.queue.read_buffer(buffer, at, size)
        data[:] = np.frombuffer(memory, np.uint8)[: data.size]

    def copy(self, source, start, target, at, size_bytes):
        encoder = self.device.create_command_encoder()
        encoder.copy_buffer_to_buffer(source, start, target, at, size_bytes)
        self.device.queue.submit([encoder.finish()])

    def build(self, shader):
        arrays = {b.name: np.zeros(4, np.float32) for b in shader.buffers}
        values = dict.fromkeys((name for name, _ in shader.scalars), 0)
        return self.host.prepare(shader, arrays, values, (1, 1, 1)).pipeline

    def launch(self, pipeline, bindings, scalars, groups, timed):
        resources = [
            {"buffer": b, "offset": at, "size": 16 * -(-size // 16)} for b, at, size in bindings
        ]
        if scalars:
            data = scalars + b"\0" * (-len(scalars) % 16)
            uniform = self.host.buffer(data, "UNIFORM")
            resources.append({"buffer": uniform, "offset": 0, "size": len(data)})
        entries = [{"binding": i, "resource": r} for i, r in enumerate(resources)]
        layout = pipeline.get_bind_group_layout(0)
        group = self.device.create_bind_group(layout=layout, entries=entries)
        encoder = self.device.create_command_encoder()
        compute = encoder.begin_compute_pass()
        compute.set_pipeline(pipeline)
        compute.set_bind_group(0, group)
        compute.dispatch_workgroups(*groups)
        compute.end()
        self.device.queue.submit([encoder.finish()])

    def finish(self):
        self.device.queue.read_buffer(self.last)  # comes after everything before

    def problem(self):
        return ""


@pytest.fixture(scope="module")
def queue():
    try:
        gpu = HostGPU(Host())
    except (ImportError, RuntimeError) as error:
        lacking(str(error))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(queues, "gpu", lambda: gpu)
        queues._device.cache_clear()
        (device,) = cl.get_platforms()[0].get_devices()
        yield cl.CommandQueue(cl.Context([device]))
        queues._device.cache_clear()


@pytest.fixture
def program(queue):
    return cl.Program(queue.context, TEXT).build("-DUNUSED=1")


def test_a_kernel_takes_the_work_group_of_its_launch(queue, program):
    x = np.arange(64, dtype=np.float32)
    for local in (8, 32):
        a, b = cla.to_device(queue, x), cla.empty(queue, x.shape, x.dtype)
        scale = program.scale
        scale.set_scalar_arg_dtypes([np.float32, None, None])
        scale(queue, x.shape, (local,), 3, a.data, b.data).wait()
        np.testing.assert_array_equal(b.get(), 3 * x)


def test_parts_of_buffers_fills_and_copies(queue, program):
    x = np.arange(128, dtype=np.float32)
    whole = cl.Buffer(queue.context, cl.mem_flags.READ_WRITE, 2048)
    cl.enqueue_fill_buffer(queue, whole, np.array(7, np.float32), 0, 2048)
    part = whole[512:1024]
    assert part.get_info(cl.mem_info.ASSOCIATED_MEMOBJECT) is whole
    assert part.get_info(cl.mem_info.OFFSET) == 512
    flags = cl.mem_flags.READ_ONLY | cl.mem_flags.COPY_HOST_PTR
    source = cl.Buffer(queue.context, flags, hostbuf=x)
    cl.enqueue_copy(queue, part, source, byte_count=256, dst_offset=256)
    after = np.empty(512, np.float32)
    cl.enqueue_copy(queue, after, whole)
    np.testing.assert_array_equal(after[192:256], x[:64])
    assert (np.delete(after, np.s_[192:256]) == 7).all()
    reverse = program.reverse
    for index, value in enumerate((np.int32(32), source, part)):
        reverse.set_arg(index, value)
    cl.enqueue_nd_range_kernel(queue, reverse, (32,), (8,))
    cl.enqueue_copy(queue, after, whole)
    np.testing.assert_array_equal(after[128:256], x.reshape(-1, 4)[::-1].ravel())


def test_memory_of_the_host(queue, program):
    """A kernel that reads what it writes, and a result that is mapped."""
    x = np.arange(64, dtype=np.float32)
    flags = cl.mem_flags.READ_WRITE | cl.mem_flags.USE_HOST_PTR
    buffer = cl.Buffer(queue.context, flags, hostbuf=x)
    program.scale(queue, (64,), (8,), np.float32(2), buffer, buffer)
    shown, event = cl.enqueue_map_buffer(
        queue, buffer, cl.map_flags.READ, 0, x.shape, x.dtype, is_blocking=False
    )
    event.wait()
    assert np.shares_memory(shown, x) and shown.tolist() == (2 * np.arange(64)).tolist()
    shown.base.release(queue)


def test_arrays_keep_their_layout(queue):
    x = np.asfortranarray(np.arange(12, dtype=np.float32).reshape(3, 4))
    a = cla.to_device(queue, x)
    assert a.flags.f_contiguous and a.strides == x.strides and a.T.flags.c_contiguous
    np.testing.assert_array_equal(a.get(), x)
    np.testing.assert_array_equal(a.T.get(), x.T)


def test_events_of_a_timed_queue(queue, program):
    timed = cl.CommandQueue(queue.context, properties=cl.command_queue_properties.PROFILING_ENABLE)
    a, b = (cla.empty(timed, 64, np.float32) for _ in range(2))
    event = program.scale(timed, (64,), (8,), np.float32(1), a.data, b.data)
    assert event.profile.end > event.profile.start


def test_what_is_refused(queue, program):
    a = cla.empty(queue, 64, np.float32)
    with pytest.raises(cl.RuntimeError, match=r":1:36: error: .*'y'"):
        cl.Program(queue.context, "__kernel void f(__global int* x) { y[0] = 1; }").build()
    with pytest.raises(cl.RuntimeError, match="error: "):
        cl.Program(queue.context, "__kernel void f(__global double* x) { x[0] = 1; }").build()
    with pytest.raises(cl.LogicError, match="requires"):
        program.reverse(queue, (64,), (16,), np.int32(16), a.data, a.data)
    with pytest.raises(cl.LogicError, match="whole work-groups"):
        program.scale(queue, (60,), (8,), np.float32(1), a.data, a.data)
    with pytest.raises(cl.LogicError, match="is a buffer"):
        program.scale.set_arg(1, np.float32(1))
    with pytest.raises(cl.LogicError, match="no kernel"):
        cl.Kernel(program, "missing")
    with pytest.raises(cl.Error, match="words of 4 bytes"):
        cl.enqueue_copy(queue, a.data, np.zeros(2, np.uint8))


def test_a_loop_that_does_not_end_is_an_error_and_the_gpu_goes_on(queue, program, monkeypatch):
    monkeypatch.setattr("clscope.wgsl.statements.MOST_UNPROVED", 1000)  # Mesa ends loops at 65,535
    endless = cl.Program(
        queue.context,
        "__kernel void wait(__global float* x, const int n)\n"
        "{\n    for (int k = 0; k != n; k += 3) x[k & 7] += 1.0f;\n}",
    ).build()
    a = cla.to_device(queue, np.zeros(64, np.float32))
    endless.wait(queue, (8,), (8,), a.data, np.int32(9)).wait()
    endless.wait(queue, (8,), (8,), a.data, np.int32(10))
    with pytest.raises(cl.EndlessError, match="line 3: this loop did not end"):
        a.get()
    program.scale(queue, (64,), (8,), np.float32(1), a.data, a.data).wait()


def test_without_a_browser_there_is_no_gpu(monkeypatch):
    def no_gpu():
        raise NoGPUError("There is none.")

    monkeypatch.setattr(queues, "gpu", no_gpu)
    queues._device.cache_clear()
    with pytest.raises(cl.Error, match="There is none."):
        cl.get_platforms()[0].get_devices()

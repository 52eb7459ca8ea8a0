// The GPU behind clscope.webgpu. runner.js precedes this in one module: `openGPU` and `build` are its.

const USAGE = GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_SRC | GPUBufferUsage.COPY_DST;
const STAMPS = 1024; // launches that are timed before their times must be read
const words = (bytes) => 4 * Math.ceil(bytes / 4); // what WebGPU copies
const padded = (bytes) => 16 * Math.max(1, Math.ceil(bytes / 16)); // shaders read whole vectors

// A function whose failure is an answer: a promise that is rejected ends the cell even if Python catches it.
const answering = (work) => (...args) => work(...args).catch((error) => ({ failed: error.message }));

export const compile = answering(build);

export async function open() {
  const gpu = await openGPU();
  if (!gpu.device) return gpu;
  gpu.problem = "";
  gpu.device.addEventListener("uncapturederror", ({ error }) => { gpu.problem ||= error.message; });
  if (gpu.timed) gpu.stamps = gpu.device.createQuerySet({ type: "timestamp", count: 2 * STAMPS });
  gpu.stamped = 0;
  return gpu;
}

// Do `work`, which fills buffers. If WebGPU refuses it, they hold zeros or old numbers, and all looks well:
// so note the refusal on them, for `receive`.
function filling(gpu, buffers, work) {
  const refusals = ["validation", "out-of-memory"];
  const note = (error) => {
    if (error) for (const x of [gpu, ...buffers]) x.problem ||= error.message;
  };
  for (const kind of refusals) gpu.device.pushErrorScope(kind);
  try {
    work();
  } finally {
    for (const _ of refusals) gpu.device.popErrorScope().then(note, () => {}); // or it is lost
  }
}

export function create(gpu, bytes) {
  const made = [];
  filling(gpu, made, () => made.push(gpu.device.createBuffer({ size: padded(bytes), usage: USAGE })));
  return made[0];
}

// `array` is memory of Python.
export function send(gpu, buffer, at, array) {
  const { queue } = gpu.device;
  const view = array.getBuffer("u8"), rest = new Uint8Array(4), whole = view.data.length & ~3;
  filling(gpu, [buffer], () => {
    if (whole) queue.writeBuffer(buffer, at, view.data, 0, whole);
    if (whole === view.data.length) return;
    rest.set(view.data.subarray(whole));
    queue.writeBuffer(buffer, at + whole, rest);
  });
  view.release();
}

async function mapped(gpu, size, fill) {
  const { device } = gpu;
  const copy = device.createBuffer({ size, usage: GPUBufferUsage.MAP_READ | GPUBufferUsage.COPY_DST });
  const encoder = device.createCommandEncoder();
  fill(encoder, copy);
  device.queue.submit([encoder.finish()]);
  try {
    await copy.mapAsync(GPUMapMode.READ);
  } catch (error) {
    await finish(gpu); // says whether the GPU is lost
    throw new Error(gpu.lost || error.message);
  }
  const data = copy.getMappedRange().slice(0);
  copy.destroy();
  return data;
}

export const receive = answering(async (gpu, buffer, at, array) => {
  const size = words(array.nbytes);
  const data = await mapped(gpu, size, (encoder, copy) => encoder.copyBufferToBuffer(buffer, at, copy, 0, size));
  if (buffer.problem) throw new Error(buffer.problem);
  const view = array.getBuffer("u8"); // only now: Python's memory may have moved
  view.data.set(new Uint8Array(data, 0, view.data.length));
  view.release();
});

export function copy(gpu, from, start, to, at, bytes) {
  filling(gpu, [to], () => {
    const encoder = gpu.device.createCommandEncoder();
    encoder.copyBufferToBuffer(from, start, to, at, words(bytes));
    gpu.device.queue.submit([encoder.finish()]);
  });
}

export async function finish(gpu) {
  try {
    await gpu.device.queue.onSubmittedWorkDone();
  } catch {
    gpu.lost ||= WORDS.lost;
  }
}

// Launch a kernel; its time, if it is `timed`, is one of the next `times`.
export function launch(gpu, built, bindings, scalars, groups, timed) {
  const written = bindings.map(([buffer]) => buffer).filter((_, i) => built.kinds[i] === "storage");
  filling(gpu, written, () => submit(gpu, built, bindings, scalars, groups, timed));
}

function submit(gpu, { pipeline, layout }, bindings, scalars, groups, timed) {
  const { device, stamps } = gpu;
  const resources = bindings.map(([buffer, offset, size]) => ({ buffer, offset, size: padded(size) }));
  let args;
  if (scalars.length) {
    args = device.createBuffer({ size: padded(scalars.length), usage: GPUBufferUsage.UNIFORM | GPUBufferUsage.COPY_DST });
    device.queue.writeBuffer(args, 0, scalars);
    resources.push({ buffer: args });
  }
  const entries = resources.map((resource, binding) => ({ binding, resource }));
  const encoder = device.createCommandEncoder(), at = 2 * gpu.stamped;
  const pass = encoder.beginComputePass(timed ? {
    timestampWrites: { querySet: stamps, beginningOfPassWriteIndex: at, endOfPassWriteIndex: at + 1 } } : {});
  if (timed) gpu.stamped += 1;
  pass.setPipeline(pipeline);
  pass.setBindGroup(0, device.createBindGroup({ layout, entries }));
  pass.dispatchWorkgroups(...groups);
  pass.end();
  device.queue.submit([encoder.finish()]);
  args?.destroy(); // what was submitted keeps it
}

// Begin and end of each timed launch since the last call, in nanoseconds.
export const times = answering(async (gpu) => {
  const count = 2 * gpu.stamped, size = 8 * count;
  gpu.stamped = 0;
  const ticks = gpu.device.createBuffer({ size, usage: GPUBufferUsage.QUERY_RESOLVE | GPUBufferUsage.COPY_SRC });
  const data = await mapped(gpu, size, (encoder, copy) => {
    encoder.resolveQuerySet(gpu.stamps, 0, count, ticks, 0);
    encoder.copyBufferToBuffer(ticks, 0, copy, 0, size);
  });
  ticks.destroy();
  return Array.from(new BigInt64Array(data), Number);
});

export const most = STAMPS;

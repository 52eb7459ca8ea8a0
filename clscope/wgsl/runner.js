// Runs translated kernels on the GPU that the browser offers, and checks what they compute.
// No framework and nothing of Jupyter: the site and the panel in JupyterLab both use it.

const WANTED = ["maxComputeInvocationsPerWorkgroup", "maxComputeWorkgroupSizeX",
  "maxComputeWorkgroupSizeY", "maxComputeWorkgroupStorageSize", "maxStorageBufferBindingSize",
  "maxBufferSize"];
const BUDGET = 0.2; // seconds of work in one submission; systems reset a GPU after about 2
const BATCH = 0.025; // the same where timestamps are at hand: their steps are of 0.1 ms
const MOST_LAUNCHES = 2000; // in one run
const FRAME = 64; // floats of NaN behind C that no kernel may touch

export const WORDS = {
  insecure: "This page came by plain http from another host. Browsers give WebGPU only to https "
    + "pages, to localhost and to files.",
  missing: "This browser has no WebGPU. Chrome and Edge have it since 113, Safari since 26, Firefox "
    + "since 141 on Windows and 145 on Apple silicon.",
  adapter: "This browser has WebGPU but offers no GPU. On Linux, Chrome needs 144 (Intel) or 147 "
    + "(NVIDIA), or the flag chrome://flags/#enable-unsafe-webgpu; a virtual machine has no GPU.",
  silent: "The browser's GPU process does not answer. Restarting the browser helps.",
  device: "The browser refused to open its GPU",
  lost: "The GPU was lost: it was reset, went to sleep, or was taken away by the browser.",
  cpu: "This browser has no GPU at hand: its CPU plays one. Results are real, rates are not.",
};

function within(promise, seconds) {
  const late = new Promise((_, fail) => setTimeout(() => fail(new Error("silent")), 1000 * seconds));
  return Promise.race([promise, late]);
}

// The GPU, or {reason, words}. `lost` of the result is set when the device goes away.
export async function openGPU() {
  if (!globalThis.navigator?.gpu) {
    const reason = globalThis.isSecureContext === false ? "insecure" : "missing";
    return { reason, words: WORDS[reason] };
  }
  try {
    const request = navigator.gpu.requestAdapter({ powerPreference: "high-performance" });
    const adapter = await within(request, 10);
    if (!adapter) return { reason: "adapter", words: WORDS.adapter };
    const requiredLimits = Object.fromEntries(WANTED.map((name) => [name, adapter.limits[name]]));
    const timed = adapter.features.has("timestamp-query");
    const requiredFeatures = timed ? ["timestamp-query"] : [];
    const device = await within(adapter.requestDevice({ requiredLimits, requiredFeatures }), 10);
    const { vendor, architecture, description, isFallbackAdapter } = adapter.info ?? {};
    const cpu = Boolean(isFallbackAdapter) || /swiftshader|llvmpipe/i.test(`${architecture} ${description}`);
    const name = description || [vendor, architecture].filter(Boolean).join(" ") || "GPU";
    const gpu = { device, name, cpu, limits: requiredLimits, timed, lost: "" };
    device.lost.then(() => { gpu.lost = WORDS.lost; });
    return gpu;
  } catch (error) {
    if (error.message === "silent") return { reason: "silent", words: WORDS.silent };
    return { reason: "device", words: `${WORDS.device}: ${error.message}` };
  }
}

// What a shader needs and the GPU does not have, in words; "" if it can run.
export function beyond(gpu, shader) {
  const items = shader.size.reduce((a, b) => a * b);
  const most = gpu.limits.maxComputeInvocationsPerWorkgroup;
  const local = gpu.limits.maxComputeWorkgroupStorageSize;
  if (items > most) return `a work-group of ${items} work-items; this GPU takes ${most}`;
  if (shader.local_bytes > local) {
    return `${shader.local_bytes} bytes of local memory per work-group; this GPU has ${local}`;
  }
  return "";
}

// Small integers, the same in every run: products of them have no rounding error.
export function integers(count, seed) {
  const out = new Float32Array(count);
  let x = seed >>> 0 || 1;
  for (let i = 0; i < count; i++) {
    x ^= x << 13; x >>>= 0; x ^= x >>> 17; x ^= x << 5; x >>>= 0;
    out[i] = (x % 9) - 4;
  }
  return out;
}

// Is C = A B? Multiplies both sides by random integer vectors, exactly, in doubles: a wrong element
// escapes with a chance of 2^-40. Returns null, or the first wrong element that it can name.
export function wrongElement({ a, b, c, m, n, k, transposed }) {
  const at = transposed ? (p, j) => b[p * n + j] : (p, j) => b[j * k + p];
  for (let trial = 0; trial < 2; trial++) {
    const v = Float64Array.from({ length: n }, () => Math.floor(Math.random() * 2 ** 20) - 2 ** 19);
    const bv = new Float64Array(k), left = new Float64Array(m), right = new Float64Array(m);
    for (let j = 0; j < n; j++) for (let p = 0; p < k; p++) bv[p] += at(p, j) * v[j];
    for (let p = 0; p < k; p++) for (let i = 0; i < m; i++) right[i] += a[p * m + i] * bv[p];
    for (let j = 0; j < n; j++) for (let i = 0; i < m; i++) left[i] += c[j * m + i] * v[j];
    const row = left.findIndex((x, i) => !(x === right[i]));
    if (row < 0) continue;
    for (let j = 0; j < n; j++) {
      let want = 0;
      for (let p = 0; p < k; p++) want += a[p * m + row] * at(p, j);
      if (!(c[j * m + row] === want)) return { row, column: j, got: c[j * m + row], want };
    }
  }
  return null;
}

function storage(device, data) {
  const usage = GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_SRC | GPUBufferUsage.COPY_DST;
  const buffer = device.createBuffer({ size: Math.max(data.byteLength, 16), usage });
  device.queue.writeBuffer(buffer, 0, data);
  return buffer;
}

async function read(device, buffer, size = buffer.size) {
  const usage = GPUBufferUsage.MAP_READ | GPUBufferUsage.COPY_DST;
  const copy = device.createBuffer({ size, usage });
  const encoder = device.createCommandEncoder();
  encoder.copyBufferToBuffer(buffer, 0, copy, 0, size);
  device.queue.submit([encoder.finish()]);
  await copy.mapAsync(GPUMapMode.READ);
  const data = copy.getMappedRange().slice(0);
  copy.destroy();
  return data;
}

// What the browser's compiler says, with the line of the kernel's text.
function explained(message, shader) {
  const line = shader.lines?.[message.lineNum - 1];
  const words = /uniform control flow/.test(message.message)
    ? "the browser's compiler cannot see that all work-items of a work-group reach this barrier"
    : message.message.split("\n")[0];
  return line ? `line ${line}: ${words}` : words;
}

// The pipeline of a shader, and the layout of its bindings. Throws an Error in words.
export async function build({ device }, shader) {
  const kinds = shader.buffers.map((b) => (b.written ? "storage" : "read-only-storage"));
  if (shader.watched) kinds.push("storage");
  if (shader.scalars.length) kinds.push("uniform");
  device.pushErrorScope("validation");
  const module = device.createShaderModule({ code: shader.code });
  const info = await module.getCompilationInfo();
  const error = info.messages.find((message) => message.type === "error");
  try {
    if (error) throw new Error(explained(error, shader));
    // not layout "auto": it leaves out what the kernel does not use, and the group has too many
    const layout = device.createBindGroupLayout({ entries: kinds.map((type, binding) => (
      { binding, visibility: GPUShaderStage.COMPUTE, buffer: { type } })) });
    const pipeline = await device.createComputePipelineAsync({
      layout: device.createPipelineLayout({ bindGroupLayouts: [layout] }),
      compute: { module, entryPoint: shader.entry },
    });
    return { pipeline, layout, kinds };
  } finally {
    await device.popErrorScope();
  }
}

// The arguments that are no pointers, as the bytes of a uniform buffer.
function packed(shader, values) {
  const bytes = new DataView(new ArrayBuffer(Math.ceil(shader.scalars.length / 4) * 16));
  shader.scalars.forEach(([name, type], i) => {
    const set = { f32: "setFloat32", u32: "setUint32", i32: "setInt32" }[type];
    bytes[set](4 * i, values[name], true);
  });
  return bytes.buffer;
}

// A kernel with its buffers, ready to be launched; `free` gives its memory back.
export async function prepare(gpu, shader, arrays, values) {
  const { device, timed } = gpu;
  const { pipeline, layout } = await build(gpu, shader);
  const buffers = Object.fromEntries(shader.buffers.map(({ name }) => [name, storage(device, arrays[name])]));
  const all = Object.values(buffers);
  const given = packed(shader, values);
  const size = given.byteLength, uniform = GPUBufferUsage.UNIFORM | GPUBufferUsage.COPY_DST;
  const scalars = size && device.createBuffer({ size, usage: uniform });
  const set = (now) => device.queue.writeBuffer(scalars, 0, packed(shader, now));
  if (shader.watched) all.push(buffers.watch = storage(device, new Int32Array(4)));
  if (size) all.push(scalars), set(values);
  const entries = all.map((buffer, binding) => ({ binding, resource: { buffer } }));
  const group = device.createBindGroup({ layout, entries });
  const stamps = timed && device.createQuerySet({ type: "timestamp", count: 2 });
  const usage = GPUBufferUsage.QUERY_RESOLVE | GPUBufferUsage.COPY_SRC;
  const ticks = timed && device.createBuffer({ size: 16, usage });

  // Seconds for so many launches: by timestamps where the GPU has them, else by the wall clock.
  async function launch(groups, times = 1) {
    const encoder = device.createCommandEncoder();
    const timestampWrites = { querySet: stamps, beginningOfPassWriteIndex: 0, endOfPassWriteIndex: 1 };
    const pass = encoder.beginComputePass(timed ? { timestampWrites } : {});
    pass.setPipeline(pipeline);
    pass.setBindGroup(0, group);
    for (let i = 0; i < times; i++) pass.dispatchWorkgroups(...groups);
    pass.end();
    if (timed) encoder.resolveQuerySet(stamps, 0, 2, ticks, 0);
    const start = performance.now();
    device.queue.submit([encoder.finish()]);
    await device.queue.onSubmittedWorkDone();
    const wall = (performance.now() - start) / 1000;
    if (gpu.lost) throw new Error(gpu.lost);
    if (!timed) return wall;
    const [begin, end] = new BigInt64Array(await read(device, ticks));
    return end > begin ? Number(end - begin) / 1e9 : wall;
  }
  const free = () => { for (const x of [...all, ticks, stamps]) if (x) x.destroy(); };
  const write = (name, data) => device.queue.writeBuffer(buffers[name], 0, data);
  return { launch, set, write, free, read: (name) => read(device, buffers[name]) };
}

// Run a kernel once. Returns the arrays afterwards, and `watch` of a watched one.
export async function runOnce(gpu, shader, arrays, values, groups) {
  const ready = await prepare(gpu, shader, arrays, values);
  try {
    await ready.launch(groups);
    const after = {};
    for (const { name } of shader.buffers) {
      after[name] = new arrays[name].constructor(await ready.read(name)).subarray(0, arrays[name].length);
    }
    if (shader.watched) after.watch = new Int32Array(await ready.read("watch"));
    return after;
  } finally {
    ready.free();
  }
}

// What a watched kernel did wrong, in words with its line; "" if nothing.
export function mistake(watch) {
  const [line, index, size, endless] = watch;
  if (endless) return `line ${endless}: this loop did not end`;
  if (!line) return "";
  return `line ${line}: element ${index} of an array of ${size} does not exist`;
}

// A product on the GPU, with its inputs: `check` runs it once, `launch` so many times.
async function load(gpu, job) {
  const { shader, m, n, k, transposed } = job;
  const missing = beyond(gpu, shader);
  if (missing) throw new Error(`This setting needs ${missing}.`);
  const names = [...shader.buffers.map((b) => b.name), ...shader.scalars.map((s) => s[0])];
  if (names.sort().join() !== "A,B,C,K,M,N") {
    throw new Error("the kernel's arguments must stay M, N, K, A, B and C");
  }
  const a = integers(m * k, 12345), b = integers(k * n, 678);
  const blank = new Float32Array(m * n + (shader.watched ? 0 : FRAME)).fill(NaN);
  const groups = job.groups ?? [Math.ceil(m / job.tile[0]), Math.ceil(n / job.tile[1]), 1];
  const values = { M: m, N: n, K: k };
  const start = performance.now();
  const ready = await prepare(gpu, shader, { A: a, B: b, C: blank }, values);
  const build = (performance.now() - start) / 1000;

  // Seconds that a launch will take, from one with few steps of k: what takes too long is not begun.
  async function predicted() {
    const few = job.step ?? k;
    if (few >= k || shader.watched) return 0;
    ready.set({ ...values, K: few });
    const seconds = await ready.launch(groups);
    ready.set(values);
    ready.write("C", blank); // nothing of it may help the product
    return (seconds * k) / few;
  }
  async function check() {
    const seconds = await ready.launch(groups);
    if (shader.watched) {
      const words = mistake(new Int32Array(await ready.read("watch")));
      if (words) return { error: words };
    }
    const c = new Float32Array(await ready.read("C"));
    const wrong = wrongElement({ a, b, c, m, n, k, transposed });
    const untouched = c.subarray(m * n).every(Number.isNaN);
    return { exact: !wrong && untouched, wrong, untouched, seconds, build };
  }
  return { predicted, check, launch: (times) => ready.launch(groups, times), free: ready.free };
}

// Seconds per launch of one or two products; two alternate, in random order within each pair.
async function alternate(gpu, mine, other, budget) {
  const batch = gpu.timed ? BATCH : BUDGET;
  async function timer(one) {
    // in small steps, as a clock with steps of 0.1 ms says nothing about one quick launch
    let times = 1, seconds = await one.launch(1);
    while (seconds < batch / 2 && times < MOST_LAUNCHES) {
      const factor = Math.min(16, batch / Math.max(seconds, 1e-6));
      times = Math.min(MOST_LAUNCHES, Math.ceil(factor * times));
      seconds = await one.launch(times);
    }
    return async (list) => { list.push(await one.launch(times) / times); };
  }
  const run = await timer(mine), compare = other && await timer(other);
  const seconds = [], reference = [], begin = performance.now();
  const more = () => {
    const spent = (performance.now() - begin) / 1000, runs = seconds.length;
    if (runs < 3) return true;
    // 11 pairs are the fewest that can show a difference, and 11 runs give a rate an interval
    if (runs < 11) return spent < (other ? 3 : 1) * budget;
    return spent < budget && runs < (other ? 200 : (11 * budget) / 0.6);
  };
  while (more()) {
    const first = Math.random() < 0.5;
    if (other && first) await compare(reference);
    await run(seconds);
    if (other && !first) await compare(reference);
  }
  return { all: seconds, reference };
}

// A product with a kernel: {exact, wrong, gflops, seconds} or {error}. `job` has shader, m, n, k,
// transposed, and groups or the tile of a work-group. Where it is timed, `all` has the seconds of
// each run, and `reference` those of the job that it alternates with.
export async function product(gpu, job, { timed = true, reference = null, budget = 0.6, most = 10 } = {}) {
  const held = [];
  const hold = async (one) => { held.push(await load(gpu, one)); return held.at(-1); };
  try {
    const mine = await hold(job), guess = await mine.predicted();
    if (guess > most) {
      return { error: `One launch would take about ${guess.toPrecision(2)} s; ${most} s are allowed.` };
    }
    const result = await mine.check();
    if (result.error) return result;
    if (timed && result.exact) {
      Object.assign(result, await alternate(gpu, mine, reference && await hold(reference), budget));
      result.seconds = [...result.all].sort((x, y) => x - y)[result.all.length >> 1];
    }
    result.gflops = (2e-9 * job.m * job.n * job.k) / result.seconds;
    return result;
  } catch (error) {
    return { error: gpu.lost || error.message };
  } finally {
    if (!gpu.lost) held.forEach((one) => one.free());
  }
}

const fastest = new Map(); // the quickest style, by GPU and kernel

// A job in each style of its `shaders`, by their names.
export const inStyles = ({ shaders, ...job }) => Object.fromEntries(
  Object.entries(shaders).map(([style, shader]) => [style, { ...job, shader }]));

// The quickest exact style of a kernel on this GPU, and its `result` where it has just been measured.
export async function quickest(gpu, kernel, jobs, options) {
  const key = `${gpu.name} ${kernel}`;
  const styles = Object.keys(jobs);
  // a CPU takes seconds to build a kernel, and runs all styles equally fast
  let style = gpu.cpu ? styles[0] : fastest.get(key);
  let result = null;
  const untried = style ? [] : styles;
  for (const one of untried) {
    const tried = await product(gpu, jobs[one], options);
    if (tried.error) return { style: one, result: tried };
    const better = !result?.exact || tried.gflops > result.gflops;
    if (!result || (tried.exact && better)) [style, result] = [one, tried];
  }
  if (!result || result.exact) fastest.set(key, style);
  return { style, result };
}

// The verdict on a product, in words.
export function verdict(result) {
  if (result.error) return result.error;
  if (result.exact) return "right: every element exact";
  if (!result.wrong) return "wrong: it wrote behind the end of C";
  const { row, column, got, want } = result.wrong;
  const shown = Number.isNaN(got) ? "was never written" : `is ${got}`;
  return `wrong: C[row ${row}, column ${column}] ${shown}; it should be ${want}`;
}

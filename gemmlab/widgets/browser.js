// The browser's GPU as a device of an explorer: opens it and runs what the notebook requests.
// runner.js stands before this in the same module.

const quickest = new Map(); // the quickest style on this GPU, by kernel

// A product in the quickest style, alternating with a reference.
async function answer(gpu, { job, reference, budget, most }) {
  const key = `${gpu.name} ${job.kernel}`, styles = Object.keys(job.shaders);
  const inStyle = (one, label) => one && { ...one, shader: one.shaders[label] };
  // a CPU takes seconds to build a kernel, and all styles are alike to it
  let style = gpu.cpu ? styles[0] : quickest.get(key), best = null;
  for (const label of style ? [] : styles) {
    const result = await product(gpu, inStyle(job, label), { most });
    if (result.error) return { error: result.error };
    const quicker = !best || !best.exact || result.gflops > best.gflops;
    if (!best || (result.exact && quicker)) [best, style] = [result, label];
  }
  if (!best || best.exact) quickest.set(key, style);
  if (!best || reference) {
    const options = { budget, most, reference: inStyle(reference, style) };
    best = await product(gpu, inStyle(job, style), options);
  }
  if (best.error) return { error: best.error };
  const { exact, seconds, build, all = [], reference: other = [] } = best;
  return { ok: exact, verdict: verdict(best), ms: 1e3 * seconds, build, all, other };
}

export default {
  async render({ model, el }) {
    const line = document.createElement("div");
    line.setAttribute("role", "status");
    line.textContent = "Looking for this browser's GPU";
    line.className = "gemmlab-note";
    el.append(line);
    const send = (name, value) => { model.set(name, value); model.save_changes(); };
    let gpu = null, closed = false, who = "";

    async function open() {
      gpu = await openGPU();
      const { name, cpu, limits, words } = gpu;
      who = words ?? `This browser's GPU: ${name}${cpu ? " (its CPU plays it)" : ""}`;
      line.textContent = who;
      send("gpu", words ? { words } : { name, limits });
      gpu.device?.lost.then(() => {
        if (closed) return;
        line.textContent = `${WORDS.lost} The next product opens it again.`;
      });
    }

    async function work(request) {
      const again = Boolean(gpu.lost);
      if (again) await open();
      if (!gpu.device) return { error: gpu.words };
      const result = await answer(gpu, request);
      line.textContent = again ? `${who}. The GPU had been lost and was opened again.` : who;
      return result;
    }

    let busy = open();
    const go = () => {
      const request = model.get("request");
      if (!request?.id) return;
      busy = busy.then(async () => {
        if (model.get("request").id !== request.id) return; // a newer request wins
        send("result", { ...await work(request), id: request.id, gpu: gpu.name ?? "" });
      });
    };
    model.on("change:request", go);
    go();
    return () => { closed = true; model.off("change:request", go); gpu?.device?.destroy(); };
  },
};

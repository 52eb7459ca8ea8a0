// The panel in JupyterLab: opens the GPU and runs what the notebook requests. runner.js stands
// before this in the same module.

const quickest = new Map(); // the quickest style on this GPU, by kernel

// A product in the quickest style, alternating with a reference.
async function answer(gpu, { kernel, jobs, reference, budget, most }) {
  const key = `${gpu.name} ${kernel}`;
  // a CPU takes seconds to build a kernel, and all styles are alike to it
  let style = gpu.cpu ? Object.keys(jobs)[0] : quickest.get(key), best = null;
  for (const label of style ? [] : Object.keys(jobs)) {
    const result = await product(gpu, jobs[label], { most });
    if (result.error) return { error: result.error };
    const quicker = !best || !best.exact || result.gflops > best.gflops;
    if (!best || (result.exact && quicker)) [best, style] = [result, label];
  }
  if (!best || best.exact) quickest.set(key, style);
  if (!best || reference) {
    best = await product(gpu, jobs[style], { budget, most, reference: reference?.[style] });
  }
  if (best.error) return { error: best.error };
  const { exact, gflops, seconds, build, all = [], reference: other = [] } = best;
  return { ok: exact, verdict: verdict(best), gflops, ms: 1e3 * seconds, style, build, all, other };
}

export default {
  async render({ model, el }) {
    const line = document.createElement("div");
    line.setAttribute("role", "status");
    line.textContent = "Looking for this browser's GPU";
    const brief = model.get("brief"); // others show the results
    if (brief) line.className = "gemmlab-note";
    else line.style.padding = "0 8px";
    el.append(line);
    const send = (name, value) => { model.set(name, value); model.save_changes(); };
    let gpu = null, closed = false, who = "";

    async function open() {
      gpu = await openGPU();
      const { name, cpu, limits, reason, words } = gpu;
      who = words ?? `This browser's GPU: ${name}${cpu ? " (its CPU plays it)" : ""}`;
      line.textContent = who;
      send("gpu", words ? { reason, words } : { name, cpu, limits });
      gpu.device?.lost.then(() => {
        if (closed) return;
        line.textContent = `${WORDS.lost} The next product opens it again.`;
        send("gpu", { ...model.get("gpu"), reason: "lost", words: line.textContent });
      });
    }

    async function work(request) {
      const again = Boolean(gpu.lost);
      if (again) await open();
      if (!gpu.device) return { error: gpu.words };
      if (!brief) line.textContent = `${request.label}: running`;
      const result = await answer(gpu, request);
      return again ? { ...result, note: "The GPU had been lost and was opened again." } : result;
    }

    let busy = open();
    const go = () => {
      const request = model.get("request");
      if (!request?.id) return;
      busy = busy.then(async () => {
        if (model.get("request").id !== request.id) return; // a newer request wins
        const result = await work(request);
        const rate = result.ok ? `, ${result.gflops.toFixed(1)} GFLOPS on ${gpu.name}` : "";
        const words = `${result.error ?? result.verdict}${rate}`;
        const all = [`${request.label}: ${words}`, result.note].filter(Boolean).join(". ");
        line.textContent = brief ? [who, result.note].filter(Boolean).join(". ") : all;
        send("result", { ...result, id: request.id, label: request.label, gpu: gpu.name ?? "" });
      });
    };
    model.on("change:request", go);
    go();
    return () => { closed = true; model.off("change:request", go); gpu?.device?.destroy(); };
  },
};

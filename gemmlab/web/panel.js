// The panel in JupyterLab: opens the GPU and runs what the notebook requests. runner.js stands
// before this in the same module.

const quickest = new Map(); // the quickest style on this GPU, by kernel

// A product in all styles that may be the quickest; `watched` is a small product to run first.
async function answer(gpu, { kernel, watched, jobs }) {
  if (watched) {
    const seen = await product(gpu, watched, { timed: false });
    if (!seen.exact) {
      const words = verdict(seen);
      return { error: words, line: Number(/^line (\d+)/.exec(words)?.[1] ?? 0) };
    }
  }
  const key = `${gpu.name} ${kernel}`;
  const style = quickest.get(key);
  let best = null;
  for (const label of style in jobs ? [style] : Object.keys(jobs)) {
    const result = await product(gpu, jobs[label]);
    if (result.error) return { error: result.error };
    if (!best || result.gflops > best.gflops) best = { ...result, style: label };
  }
  quickest.set(key, best.style);
  const { exact, gflops, seconds } = best;
  return { ok: exact, verdict: verdict(best), gflops, ms: 1e3 * seconds, style: best.style };
}

export default {
  async render({ model, el }) {
    const line = document.createElement("div");
    line.setAttribute("role", "status");
    line.style.padding = "0 8px";
    line.textContent = "Looking for this browser's GPU";
    el.append(line);
    const send = (name, value) => { model.set(name, value); model.save_changes(); };
    let gpu = null, closed = false;

    async function open() {
      gpu = await openGPU();
      const { name, cpu, limits, reason, words } = gpu;
      line.textContent = words ?? `This browser's GPU: ${name}${cpu ? " (its CPU plays it)" : ""}`;
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
      line.textContent = `${request.label}: running`;
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
        line.textContent = [`${request.label}: ${words}`, result.note].filter(Boolean).join(". ");
        send("result", { ...result, id: request.id, label: request.label, gpu: gpu.name ?? "" });
      });
    };
    model.on("change:request", go);
    go();
    return () => { closed = true; model.off("change:request", go); gpu?.device?.destroy(); };
  },
};

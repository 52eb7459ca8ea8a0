// The browser's GPU as a device of an explorer: opens it and runs what the notebook requests.
// runner.js and talk.js precede this in the same module.

// A product in the quickest style, alternating with a reference.
async function answer(gpu, { job, reference, budget, most }) {
  const jobs = inStyles(job);
  let { style, result } = await quickest(gpu, job.kernel, jobs, { most });
  if (!result || (result.exact && reference)) {
    const other = reference && inStyles(reference)[style];
    result = await product(gpu, jobs[style], { budget, most, reference: other });
  }
  if (result.error) return { error: result.error };
  const { exact, seconds, build, all = [], reference: other = [] } = result;
  return { ok: exact, verdict: verdict(result), ms: 1e3 * seconds, build, all, other };
}

export default {
  async render({ model, el }) {
    const line = document.createElement("div");
    line.setAttribute("role", "status");
    line.textContent = "Looking for this browser's GPU";
    line.className = "gemmlab-note";
    el.append(line);
    const { say, end } = talk(model);
    let gpu = null, closed = false, who = "";

    async function open() {
      gpu = await openGPU();
      const { name, cpu, limits, words } = gpu;
      who = words ?? `This browser's GPU: ${name}${cpu ? " (emulated by its CPU)" : ""}`;
      line.textContent = who;
      say({ gpu: words ? { words } : { name, limits } });
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
        say({ result: { ...await work(request), id: request.id, gpu: gpu.name ?? "" } });
      });
    };
    model.on("change:request", go);
    go();
    return () => { closed = true; end(); model.off("change:request", go); gpu?.device?.destroy(); };
  },
};

// The page: editors, the ladder, the puzzles. runner.js stands before this in the same script.

const $ = (id) => document.getElementById(id);
const make = (tag, props = {}, ...children) => {
  const node = Object.assign(document.createElement(tag), props);
  node.append(...children);
  return node;
};

async function unpacked(text) {
  const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}

// ---- an editor: a text area over its own coloured copy
const WORDS_OF_C = /(\/\/[^\n]*|\/\*[\s\S]*?\*\/)|(#\s*\w+)|\b(__kernel|__attribute__|__global|__local|const|restrict|for|if|else|while|do|return|break|continue|switch|case|default)\b|\b(void|int|uint|long|float\d*|size_t|double|char|floatX)\b|\b(0x[\da-f]+|\d+\.?\d*f?)\b/gi;

function coloured(text, bad) {
  const safe = (s) => s.replace(/[&<>]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;" }[c]));
  let html = "", at = 0;
  for (const found of text.matchAll(WORDS_OF_C)) {
    const kind = ["com", "key", "key", "type", "num"][found.slice(1).findIndex((x) => x !== undefined)];
    // a comment over several lines is closed and opened again at each end
    const words = safe(found[0]).split("\n").map((x) => `<span class="${kind}">${x}</span>`).join("\n");
    html += safe(text.slice(at, found.index)) + words;
    at = found.index + found[0].length;
  }
  html += safe(text.slice(at));
  return html.split("\n").map((line, i) => (
    `<span class="row${i + 1 === bad ? " bad" : ""}" data-n="${i + 1}">${line || " "}</span>`)).join("");
}

function editor(text, label, changed) {
  const pre = make("pre", { ariaHidden: "true" });
  const area = make("textarea", { value: text, spellcheck: false, ariaLabel: label });
  area.setAttribute("autocapitalize", "off");
  const scroll = make("div", { className: "scroll" }, make("div", { className: "holder" }, pre, area));
  const node = make("div", { className: "editor" }, scroll);
  const draw = (bad = 0) => { pre.innerHTML = coloured(area.value, bad); };
  area.addEventListener("input", () => { draw(); changed(); });
  area.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); changed("run"); }
  });
  draw();
  return {
    node,
    get text() { return area.value; },
    set text(value) { area.value = value; draw(); changed(); },
    mark(line) {
      draw(line);
      const row = line && pre.children[line - 1];
      if (row) scroll.scrollTop = Math.max(0, row.offsetTop - 120);
    },
    show(line) { scroll.scrollTop = pre.children[line]?.offsetTop ?? 0; },
  };
}

// ---- the translator, in a worker; nothing is loaded before the first edited text is run
const WORKER = `
let translate;
async function start({ base, files }) {
  const { loadPyodide } = await import(base + "pyodide.mjs");
  const python = await loadPyodide({ indexURL: base });
  for (const [name, text] of Object.entries(files)) {
    python.FS.mkdirTree("/site/" + name.replace(/[^/]*$/, ""));
    python.FS.writeFile("/site/" + name, text);
  }
  translate = python.runPython(\`
import json, sys
from dataclasses import asdict
sys.path.insert(0, "/site")
from clscope import TextError
from clscope.wgsl.shader import STYLES, translate
from clscope.wgsl.memory import Style

def run(request):
    given = json.loads(request)
    try:
        return json.dumps({label: asdict(translate(given["text"], given["kernel"], given["defines"], style))
                           for label, style in {**STYLES, "watched": Style(watched=True)}.items()})
    except TextError as error:
        return json.dumps({"error": error.message, "line": error.line})
    except RecursionError:
        return json.dumps({"error": "this text is nested too deeply", "line": 1})
run
\`);
}
onmessage = async ({ data }) => {
  try {
    if (data.base) { await start(data); postMessage({ ready: true }); return; }
    postMessage({ id: data.id, answer: JSON.parse(translate(JSON.stringify(data.request))) });
  } catch (error) { postMessage({ id: data.id, failed: String(error.message ?? error) }); }
};`;

const translator = {
  worker: null, waiting: new Map(), count: 0,
  get place() {
    const local = GEMMLAB_PLACE.local && location.protocol !== "file:";
    return local ? new URL(GEMMLAB_PLACE.local, location.href).href : GEMMLAB_PLACE.pyodide;
  },
  get host() { return new URL(this.place).host; },
  async start() {
    if (!globalThis.GEMMLAB_PYTHON) {
      await new Promise((done, fail) => document.body.append(
        make("script", { src: "translator.js", onload: done, onerror: () => fail(new Error("translator.js is missing")) })));
    }
    const files = await unpacked(GEMMLAB_PYTHON);
    // A page in a folder may start no module from a blob; from a data URL it may, but that module
    // then belongs to no host and could not load Pyodide from the page's own.
    const source = location.protocol === "file:" ? `data:text/javascript,${encodeURIComponent(WORKER)}`
      : URL.createObjectURL(new Blob([WORKER], { type: "text/javascript" }));
    const worker = new Worker(source, { type: "module" });
    await new Promise((done, fail) => {
      worker.onmessage = ({ data }) => (data.ready ? done() : fail(new Error(data.failed)));
      worker.onerror = (event) => fail(new Error(event.message ?? ""));
      worker.postMessage({ base: this.place, files });
    });
    worker.onmessage = ({ data }) => { this.waiting.get(data.id)?.(data); this.waiting.delete(data.id); };
    return worker;
  },
  async translate(request, say) {
    if (!this.worker) {
      say(`loading the translator from ${this.host} (once, about 6 MB) …`);
      this.worker = this.start();
    }
    let worker;
    try {
      worker = await this.worker;
    } catch (error) {
      this.worker = null;
      return { error: `The translator could not be loaded from ${this.host}, so edits cannot run; the `
        + `texts that came with the page can. ${error.message ? `(${error.message})` : ""}` };
    }
    const id = ++this.count;
    const reply = await new Promise((done) => { this.waiting.set(id, done); worker.postMessage({ id, request }); });
    return reply.answer ?? { error: reply.failed };
  },
};

// ---- running a text
let gpu = null, opening = null;
const tidy = (text) => text.replace(/\s+/g, " ").trim();

async function openedGPU() {
  if (gpu?.lost) gpu = null;
  opening = gpu ? opening : openGPU();
  const found = await opening;
  const line = $("gpu");
  if (found.device) gpu = found;
  line.className = `gpu ${found.device ? (found.cpu ? "cpu" : "on") : "off"}`;
  line.textContent = found.device
    ? (found.cpu ? WORDS.cpu : `Your GPU: ${found.name}`)
    : `${found.words} You see what an NVIDIA H200 has reached instead.`;
  return found;
}

const lineOf = (words) => Number(/^line (\d+)/.exec(words)?.[1] ?? 0);

// The shaders of a text: those that came with the page, or a translation of an edit.
async function shadersOf({ text, known, kernel = null, defines = {} }, say) {
  const found = known.find((one) => tidy(one.text) === tidy(text));
  if (found) return found.shaders;
  const answer = await translator.translate({ text, kernel, defines }, say);
  if (answer.line) return { error: `line ${answer.line}: ${answer.error}` };
  return answer;
}

// A product with a text: first watched and small, then exact at 256, then as large as takes 0.1 s.
async function runProduct(request, say) {
  const here = await openedGPU();
  if (!here.device) return { error: here.words, none: true };
  say("translating …");
  const shaders = await shadersOf(request, say);
  if (shaders.error) return shaders;
  const { tile, transposed, known } = request;
  const [launched, wanted] = [known[0].shaders, shaders].map(({ watched }) => watched.size.slice(0, 2).join(" × "));
  if (launched !== wanted) {
    return { error: `The page launches work-groups of ${launched}. In your text they are ${wanted}, so parts of C would have no work-item.` };
  }
  const { watched, ...others } = shaders;
  const sized = (n, k = n) => ({ m: n, n, k, tile, transposed });
  const small = Math.max(64, 2 * tile[0], 2 * tile[1]);
  say("checking every access …");
  const seen = await product(gpu, { ...sized(small, 64), shader: watched }, { timed: false });
  if (!seen.exact) return { ...seen, error: seen.error ?? `At ${small} × ${small}: ${verdict(seen)}` };
  say("running …");
  const jobs = inStyles({ ...sized(256), shaders: others });
  const options = { timed: !here.cpu };
  const { style, result } = await quickest(gpu, request.name, jobs, options);
  const first = result ?? await product(gpu, jobs[style], options);
  if (!first.exact) return { ...first, error: verdict(first) };
  const n = [2048, 1024, 512].find((size) => first.seconds * (size / 256) ** 3 < 0.1) ?? 256;
  const { shader } = jobs[style];
  const last = await product(gpu, { ...sized(n), shader });
  return last.error ? last : { ...last, n, style, shader };
}

const rateWords = (gflops) => (gflops >= 1000 ? `${(gflops / 1000).toFixed(gflops < 1e4 ? 2 : 1)} TFLOPS`
  : `${gflops.toPrecision(3)} GFLOPS`);

// What a visitor has written, by the label of its editor; an undefined text is forgotten.
function written() {
  try { return JSON.parse(localStorage.getItem("gemmlab-texts") ?? "{}"); } catch { return {}; }
}

function write(label, text) {
  try { localStorage.setItem("gemmlab-texts", JSON.stringify({ ...written(), [label]: text })); } catch { /* a private window */ }
}

// An editor with a button that runs its text: `work` returns the outcome as {words, kind}.
function bench(holder, { label, button = "Run", original, work, more = [] }) {
  const words = make("span", { className: "words" }), note = make("p", { className: "note" });
  words.setAttribute("role", "status");
  const run = make("button", { className: "run", type: "button", textContent: button });
  const say = (text, kind = "") => { words.textContent = text; words.className = `words ${kind}`; };
  const reset = make("button", { className: "plain", type: "button", textContent: "Reset", hidden: true });
  const edit = editor(written()[label] ?? original(), label, (event) => {
    const changed = tidy(edit.text) !== tidy(original());
    reset.hidden = !changed;
    write(label, changed ? edit.text : undefined);
    words.classList.add("older"); // they are about another text
    note.textContent = changed && !translator.worker
      ? `To run your edit, this page loads Python for the browser (about 6 MB, once) from ${translator.host}.` : "";
    if (event === "run") go();
  });
  async function go() {
    if (run.disabled) return;
    run.disabled = true; edit.mark(0); note.textContent = "";
    const outcome = await work(edit.text, say);
    run.disabled = false;
    say(outcome.words, outcome.kind);
    edit.mark(lineOf(outcome.words));
  }
  run.addEventListener("click", go);
  reset.addEventListener("click", () => { edit.text = original(); edit.mark(0); say(""); });
  reset.hidden = tidy(edit.text) === tidy(original());
  holder.replaceChildren(edit.node, make("div", { className: "foot" }, run, words, ...more, reset, note));
  return { edit, go, say };
}

// A bench for a product, with its rate and the translation.
function productBench(holder, { label, original, requestOf, after, fallback }) {
  const rate = make("span", { className: "rate" });
  const code = make("pre"), given = make("details", { hidden: true }, make("summary", { textContent: "What your browser was given (WGSL)" }), code);
  code.tabIndex = 0;
  async function work(text, say) {
    rate.textContent = "";
    const result = await runProduct(requestOf(text), say);
    after?.(result);
    if (result.error) return result.none ? { words: fallback } : { words: result.error, kind: "bad" };
    rate.textContent = rateWords(result.gflops);
    code.textContent = result.shader.code; given.hidden = false;
    const size = [result.n, result.n, result.n].join("\u00a0×\u00a0");
    return { words: `right: all ${(result.n * result.n).toLocaleString("en")} elements exact, ${size}`, kind: "good" };
  }
  const panel = bench(holder, { label, original, work, more: [rate] });
  holder.append(given);
  panel.say("Ctrl+Enter runs it, too.");
  return panel;
}

// ---- the ladder
const measured = new Map();

function drawChart(data) {
  const mine = Math.max(0, ...measured.values()), theirs = Math.max(...Object.values(data.h200));
  const bar = (value, most, kind) => {
    const node = make("div", { className: `bar ${kind} ${value ? "" : "none"}` });
    if (value) node.append(Object.assign(make("i"), { style: `width: calc(var(--most) * ${value / most})` }));
    node.append(make("span", { textContent: value ? rateWords(value) : kind === "mine" ? "not run yet" : "" }));
    return node;
  };
  const cells = [make("div", { className: "head first" }), make("div", { className: "head mine", textContent: gpu && !gpu.cpu ? "your GPU" : "your browser" }),
    make("div", { className: "head theirs", textContent: "NVIDIA H200, recorded" })];
  for (const { kernel, name } of data.rungs) {
    cells.push(make("div", { className: "name", textContent: `${kernel}  ${name}` }),
      bar(measured.get(kernel), mine, "mine"), bar(data.h200[kernel], theirs, "theirs"));
  }
  $("chart").replaceChildren(...cells);
}

function tabs(holder, panel, items, shown) {
  const buttons = items.map((item, i) => {
    const button = make("button", { type: "button", textContent: item.label, id: `${holder.id}-${i}`, title: item.title ?? "" });
    button.setAttribute("role", "tab");
    button.setAttribute("aria-controls", panel.id);
    button.addEventListener("click", () => choose(i));
    button.addEventListener("keydown", (event) => {
      const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (by) { choose((i + by + items.length) % items.length); buttons[(i + by + items.length) % items.length].focus(); }
    });
    return button;
  });
  function choose(i) {
    buttons.forEach((button, j) => { button.setAttribute("aria-selected", i === j); button.tabIndex = i === j ? 0 : -1; });
    panel.setAttribute("aria-labelledby", buttons[i].id);
    shown(i);
  }
  holder.replaceChildren(...buttons);
  return { choose, buttons };
}

function jobFor(rung, values) {
  return rung.jobs.find(({ params }) => Object.entries(values).every(([name, value]) => params[name] === value));
}

function showRung(data, rung) {
  const values = Object.fromEntries(rung.sliders.map((s) => [s.name, s.default]));
  const fits = ({ shaders }) => !gpu || !beyond(gpu, shaders.even);
  if (!jobFor(rung, values) || !fits(jobFor(rung, values))) {
    const likely = [...rung.jobs].reverse().find(fits) ?? rung.jobs[0];
    for (const name of Object.keys(values)) values[name] = likely.params[name];
  }
  const sliders = make("div", { className: "sliders" });
  const inputs = new Map();
  for (const { name, choices, meaning } of rung.sliders) {
    const output = make("output");
    const input = make("input", { type: "range", min: 0, max: choices.length - 1, step: 1, value: choices.indexOf(values[name]) });
    input.setAttribute("aria-label", `${name}: ${meaning}`);
    input.addEventListener("input", () => move(name, choices[input.value]));
    inputs.set(name, { input, output, choices });
    sliders.append(make("label", {}, make("b", { textContent: name }), input, output, make("small", { textContent: meaning })));
  }
  // the nearest legal setting that keeps what was moved
  function move(name, value) {
    values[name] = value;
    if (!jobFor(rung, picked())) {
      const far = ({ params }) => [...inputs.keys()].reduce((sum, x) => sum + Math.abs(Math.log2(params[x] / values[x])), 0);
      const legal = rung.jobs.filter(({ params }) => params[name] === value).sort((a, b) => far(a) - far(b))[0];
      if (legal) for (const x of inputs.keys()) values[x] = legal.params[x];
    }
    for (const [x, { input, output, choices }] of inputs) {
      input.value = choices.indexOf(values[x]);
      input.setAttribute("aria-valuetext", values[x]);
      output.textContent = values[x];
    }
  }
  const picked = () => Object.fromEntries([...inputs.keys()].map((x) => [x, values[x]]));
  const holder = make("div", { className: "bench" });
  $("rung").replaceChildren(make("p", { textContent: rung.story }), sliders, holder);
  move(rung.sliders[0].name, values[rung.sliders[0].name]);
  const panel = productBench(holder, {
    label: `Kernel ${rung.kernel}, ${rung.name}`,
    original: () => rung.text,
    fallback: `No GPU here. Recorded: ${rateWords(data.h200[rung.kernel])} on an H200.`,
    requestOf(text) {
      const { params, tile, shaders } = jobFor(rung, picked());
      return { name: `rung ${rung.kernel}`, text, tile, transposed: rung.transposed, kernel: "gemm", defines: params,
        known: [{ text: rung.text, shaders }] };
    },
    after(result) {
      if (result.gflops) { measured.set(rung.kernel, result.gflops); drawChart(data); }
    },
  });
  panel.edit.show(rung.text.split("\n").findIndex((line) => line.startsWith("__kernel")));
  return panel;
}

async function climb(data, choose) {
  const button = $("climb");
  button.disabled = true;
  for (const [i, rung] of data.rungs.entries()) {
    $("climbing").textContent = `kernel ${rung.kernel} …`;
    const panel = choose(i);
    await panel.go();
    if (!gpu) break;
  }
  $("climbing").textContent = gpu ? "" : "There is no GPU to run them on; the H200’s bars are recorded.";
  button.disabled = false;
}

// ---- puzzles
function solvedPuzzles() {
  try { return new Set(JSON.parse(localStorage.getItem("gemmlab-puzzles") ?? "[]")); } catch { return new Set(); }
}

function remember(solved) {
  try { localStorage.setItem("gemmlab-puzzles", JSON.stringify([...solved])); } catch { /* a private window */ }
}

// What is wrong with a solution, in words; "" if nothing.
async function judged(puzzle, text, say) {
  const here = await openedGPU();
  if (!here.device) return here.words;
  say("translating …");
  const shaders = await shadersOf({ text, known: puzzle.known }, say);
  if (shaders.error) return shaders.error;
  const { watched } = shaders;
  const names = [...watched.buffers.map((b) => b.name), ...watched.scalars.map((s) => s[0])];
  const wanted = [...Object.keys(puzzle.arrays), ...Object.keys(puzzle.values)];
  if (names.length !== wanted.length || !names.every((name) => wanted.includes(name))) {
    return `the kernel's arguments must stay ${wanted.join(", ")}`;
  }
  const missing = beyond(gpu, watched);
  if (missing) return `It needs ${missing}.`;
  say("running …");
  const arrays = Object.fromEntries(Object.entries(puzzle.arrays).map(([name, list]) => [name, new Float32Array(list)]));
  try {
    const after = await runOnce(gpu, watched, arrays, puzzle.values, puzzle.groups);
    const words = mistake(after.watch);
    if (words) return words;
    for (const [name, want] of Object.entries(puzzle.expected)) {
      const i = want.findIndex((x, at) => after[name][at] !== x);
      if (i >= 0) return `${name}[${i}] is ${after[name][i]}; it should be ${want[i]}`;
    }
  } catch (error) {
    return gpu.lost || error.message;
  }
  const [pattern, words] = puzzle.needs ?? ["", ""];
  return new RegExp(pattern).test(shaders.even.code) ? "" : words;
}

function showPuzzle(puzzle, number, next, solved, mark) {
  const hint = make("button", { className: "plain", type: "button", textContent: "Hint" });
  const answer = make("button", { className: "plain", type: "button", textContent: "Show a solution" });
  const onward = make("button", { type: "button", textContent: "Next puzzle", hidden: true });
  async function work(text, say) {
    const wrong = await judged(puzzle, text, say);
    if (wrong) return { words: wrong, kind: "bad" };
    solved.add(number); remember(solved); mark();
    onward.hidden = number === 10;
    return { words: "Solved.", kind: "good" };
  }
  const holder = make("div", { className: "bench" }), more = [onward, hint, answer];
  const label = `Puzzle ${number}: ${puzzle.title}`;
  const panel = bench(holder, { label, button: "Check", original: () => puzzle.text, work, more });
  hint.addEventListener("click", () => panel.say(puzzle.hint));
  let mine = null;
  answer.addEventListener("click", () => {
    const text = mine ?? puzzle.solution;
    mine = mine === null ? panel.edit.text : null;
    answer.textContent = mine === null ? "Show a solution" : "Back to mine";
    panel.edit.text = text;
    panel.say("");
  });
  onward.addEventListener("click", next);
  $("puzzle").replaceChildren(make("h3", { textContent: `${number}. ${puzzle.title}` }),
    make("p", { className: "task", textContent: puzzle.task }), holder);
}

// ---- the page
async function start() {
  const data = await unpacked(GEMMLAB_DATA);
  $("from").textContent = translator.host;
  productBench($("try"), {
    label: "A kernel of eight lines", original: () => data.hero.text,
    fallback: `No GPU here. On an H200 the same kernel has reached ${rateWords(data.h200[1])}.`,
    requestOf: (text) => ({ name: "hero", text, tile: [16, 16], transposed: false, known: [{ text: data.hero.text, shaders: data.hero.shaders }] }),
  });
  const rungs = tabs($("rungs"), $("rung"), data.rungs.map((r) => ({ label: `${r.kernel}  ${r.name}` })), (i) => { shown = showRung(data, data.rungs[i]); });
  let shown = null;
  drawChart(data);
  $("climb").addEventListener("click", () => climb(data, (i) => { rungs.choose(i); return shown; }));
  const solved = solvedPuzzles();
  const dots = tabs($("dots"), $("puzzle"), data.puzzles.map((p, i) => ({ label: `${i + 1}`, title: p.title })),
    (i) => showPuzzle(data.puzzles[i], i + 1, () => dots.choose(i + 1), solved, mark));
  const mark = () => dots.buttons.forEach((b, i) => b.classList.toggle("solved", solved.has(i + 1)));
  dots.choose(0);
  mark();
  await openedGPU();
  rungs.choose(0); // only now it is known which settings this GPU allows
  drawChart(data);
}

start();

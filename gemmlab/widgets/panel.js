// A panel: controls, an answer, pipes, maps and tries. Python sends what to show; the page draws it, and tells Python what a
// person does. Each `draw` function belongs to a trait, and touches only what has changed. talk.js precedes this in the
// same module.
const MOVES = ["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown", "PageUp", "PageDown", "Home", "End"];
const STEPS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowDown: [0, -1], ArrowUp: [0, 1] };

const make = (tag, className = "", properties = {}, ...children) => {
  const element = Object.assign(document.createElement(tag), { className, ...properties });
  element.append(...children);
  return element;
};
const describe = (element, attributes) => {
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(`aria-${name}`, value);
  return element;
};

function render({ model, el }) {
  const undo = [];
  const listen = (target, type, action, options) => {
    target.addEventListener(type, action, options);
    undo.push(() => target.removeEventListener(type, action, options));
  };
  const on = (event, action) => {
    model.on(event, action);
    undo.push(() => model.off(event, action));
  };
  const { say, end } = talk(model);
  undo.push(end);

  // What a panel consists of, from top to bottom; what stays empty is not seen.
  const kind = model.get("kind"), slot = (name) => make("div", `gemmlab-${name}`);
  el.classList.add("gemmlab-panel", `gemmlab-${kind}`);
  const title = slot("title"), devices = make("select", "gemmlab-devices"), headButtons = slot("buttons");
  const first = slot("controls"), films = slot("films"), choices = slot("choices");
  const result = slot("result"), status = slot("status"), stop = slot("buttons"), recorded = slot("there");
  const note = slot("noted"), longer = make("div", "gemmlab-buttons gemmlab-longer"), pipes = slot("slot"), maps = slot("maps"), legend = slot("legend"), tries = slot("tries");
  const copies = slot("copies"), other = slot("slot"), otherButtons = slot("buttons");
  const others = slot("controls"), details = slot("slot"), spoken = slot("spoken");
  const busy = make("div", "gemmlab-busy", {}, status, stop);
  const answers = make("div", "gemmlab-answers", {}, make("div", "gemmlab-running", {}, result, busy, longer), recorded);
  if (model.get("recorded_first")) answers.prepend(recorded);
  const fold = make("details", "gemmlab-fold", {}, make("summary", "", { textContent: "More settings, details" }), others, details);
  const hand = make("div", "gemmlab-hand", {}, first, note);
  const top = make("div", "gemmlab-top", {}, ...(kind === "verdict" ? [answers, hand] : [hand, films, answers]));
  el.append(
    make("div", "gemmlab-title-line", {}, title, devices, headButtons), choices, top, pipes, maps, legend, tries, copies, make("div", "gemmlab-other", {}, other, otherButtons), fold, spoken,
  );
  spoken.setAttribute("role", "status");

  const buttons = { head: headButtons, stop, rate: longer, other: otherButtons, choices };
  const drawButtons = () => {
    for (const [place, box] of Object.entries(buttons)) {
      const there = [...box.children], wanted = model.get("buttons")[place] ?? [];
      wanted.forEach(({ id, text, title, look = "", pressed, off = false }, number) => {
        const button = there[number] ?? box.appendChild(make("button", "", { type: "button" }));
        if (!there[number]) button.addEventListener("click", () => say({ press: button.dataset.id }));
        Object.assign(button, { textContent: text, title, className: look, disabled: off });
        button.dataset.id = id;
        if (pressed === undefined) button.removeAttribute("aria-pressed"); else describe(button, { pressed });
      });
      there.slice(wanted.length).forEach((button) => button.remove());
    }
  };

  // Controls. A hand may be ahead of Python, which says what the newest move is that it has heard of: older positions are
  // left alone.
  const controls = new Map();
  let held = false, told = false, moves = 0;
  const move = (name, to) => {
    controls.get(name).moved = moves = Math.max(moves + 1, Date.now());
    told = held;
    if (kind !== "stepper") result.classList.add("gemmlab-stale");
    say({ move: name, to, held, at: moves });
  };
  const hold = () => { held = true; };
  const release = () => {
    held = false;
    if (told) say({ released: true });
    told = false;
  };
  for (const type of ["pointerup", "pointercancel", "keyup"]) listen(window, type, release, true);
  listen(window, "blur", (event) => { if (event.target === window) release(); });

  const makeSlider = ({ name, free }) => {
    const slider = make("input", "", { type: "range", min: 0, step: 1, id: `${model.get("channel")} ${name}` });
    const value = make("input", "gemmlab-value", { type: "text", tabIndex: -1, autocomplete: "off", spellcheck: false });
    const label = make("label", "", { htmlFor: slider.id, textContent: name });
    const box = make("div", "gemmlab-control gemmlab-slider", {}, label, slider, value);
    let options = [];
    const put = (at) => {
      slider.value = at;
      value.value = options[at];
      describe(slider, { valuetext: options[at] });
    };
    describe(value, { label: free ? `${name}, any value` : `${name}, one of its values` });
    slider.addEventListener("input", () => { put(slider.value); move(name, options[slider.value]); });
    slider.addEventListener("pointerdown", hold);
    slider.addEventListener("keydown", (event) => { if (MOVES.includes(event.key)) hold(); });
    value.addEventListener("focus", () => value.select());
    value.addEventListener("change", () => {
      const text = value.value.trim();
      put(slider.value); // what Python takes comes back
      say({ type: name, text });
    });
    value.addEventListener("keydown", (event) => {
      if (event.key === "Escape") value.value = options[slider.value];
      if (["Enter", "Escape"].includes(event.key)) value.blur();
    });
    const update = (row) => {
      options = row.options;
      slider.max = options.length - 1;
      put(row.at);
    };
    const by = (steps) => {
      const at = Number(slider.value) + steps;
      if (at < 0 || at > Number(slider.max)) return false;
      put(at);
      move(name, options[at]);
      return true;
    };
    return { box, target: slider, update, by, position: () => Number(slider.value) };
  };
  const makeWords = ({ name, options }) => {
    const label = make("span", "", { textContent: name }), group = slot("words");
    describe(group, { label: name }).setAttribute("role", "radiogroup");
    const radios = options.map((option) => {
      const radio = make("input", "", { type: "radio", name: `${model.get("channel")} ${name}` });
      radio.addEventListener("change", () => move(name, option));
      group.append(make("label", "", {}, radio, make("span", "", { textContent: option })));
      return radio;
    });
    const update = (row) => radios.forEach((radio, at) => { radio.checked = at === row.at; });
    return { box: make("div", "gemmlab-control gemmlab-switch", {}, label, group), target: group, update };
  };
  const makeControl = (row) => {
    const control = row.words ? makeWords(row) : makeSlider(row);
    const meaning = make("div", "gemmlab-meaning", { textContent: row.meaning, title: row.meaning });
    control.box.dataset.name = row.name;
    if (row.meaning) {
      control.box.append(meaning);
      describe(control.target, { description: row.meaning });
      control.box.title = row.meaning;
    }
    for (const type of ["mouseenter", "focusin"]) {
      control.box.addEventListener(type, () => {
        lightUses(row.name);
        if (kind !== "stepper") say({ near: row.name });
      });
    }
    for (const type of ["mouseleave", "focusout"]) control.box.addEventListener(type, () => lightUses(""));
    return control;
  };
  let drawn = "";
  const drawControls = () => {
    const rows = model.get("controls");
    const kinds = rows.map(({ name, more }) => `${name} ${more}`).join();
    if (kinds !== drawn) {
      drawn = kinds;
      controls.clear();
      rows.forEach((row) => controls.set(row.name, makeControl(row)));
      first.replaceChildren(...rows.filter((row) => !row.more).map((row) => controls.get(row.name).box));
      others.replaceChildren(...rows.filter((row) => row.more).map((row) => controls.get(row.name).box));
      drawFilms(rows.filter((row) => row.film));
    }
    for (const row of rows) {
      const control = controls.get(row.name);
      if (!(control.moved > model.get("heard"))) control.update(row);
      control.box.classList.toggle("gemmlab-gave-way", Boolean(row.gave_way));
    }
  };

  // A film moves a slider by itself: step by step, or to the end.
  const drawFilms = (rows) => {
    const pause = make("input", "", { type: "number", min: 100, max: 2000, step: 100, value: 400, title: "Milliseconds between two steps" });
    films.replaceChildren(...rows.map(({ name }) => {
      let timer = null;
      const by = (steps) => controls.get(name).by(steps);
      const button = (text, words, action) => describe(make("button", "", { type: "button", textContent: text, title: words, onclick: action }), { label: words });
      const play = button("▶\uFE0E", `Play through ${name}`, () => {
        if (timer) { halt(); return; }
        if (!by(1)) by(-controls.get(name).position());
        const next = () => { if (by(1)) timer = setTimeout(next, pause.value); else halt(); };
        timer = setTimeout(next, pause.value);
        play.textContent = "❚❚";
        describe(play, { label: (play.title = "Pause") });
      });
      const halt = () => {
        clearTimeout(timer);
        timer = null;
        play.textContent = "▶\uFE0E";
        describe(play, { label: (play.title = `Play through ${name}`) });
      };
      undo.push(halt);
      return make("span", "", {}, name, button("‹", `${name}: one backward`, () => by(-1)), play,
        button("›", `${name}: one forward`, () => by(1)), button("↺", `${name}: back to the start`, () => { halt(); by(-controls.get(name).position()); }));
    }), ...(rows.length ? [make("label", "", {}, "ms a step", pause)] : []));
  };

  // The parts that Python writes as HTML.
  const written = { title, answer: result, recorded, note, pipes, legend, other, details };
  const before = {};
  const drawParts = () => {
    for (const [name, box] of Object.entries(written)) {
      const html = model.get("parts")[name] ?? "";
      if (before[name] === html) continue;
      before[name] = html;
      box.innerHTML = html;
      if (name === "answer") { followLine(); stayTall(); }
    }
    speak();
  };
  // A panel that has been tall stays tall, so that what is below does not jump.
  const stayTall = () => { if (kind === "stepper") result.style.minHeight = `${result.offsetHeight}px`; };
  listen(window, "resize", () => { result.style.minHeight = ""; });
  // The line that is carried out stays in view: every step replaces the kernel's text, and with it how far it is scrolled.
  let scrolled = 0;
  const followLine = () => {
    const code = result.querySelector(".gemmlab-code"), now = result.querySelector(".gemmlab-now");
    if (!code || !now) return;
    code.scrollTop = scrolled;
    const room = code.clientHeight - now.offsetHeight, above = now.offsetTop - code.scrollTop;
    if (above < 0.1 * room || above > 0.9 * room) code.scrollTop = now.offsetTop - room / 2;
    scrolled = code.scrollTop;
    code.addEventListener("scroll", () => { scrolled = code.scrollTop; });
  };
  // A screen reader says what is new in an answer, once: verdict, rates and notes, or the sentence below a picture.
  let last = null;
  const speak = () => {
    const { key, count = "", state = "" } = result.querySelector("[data-key]")?.dataset ?? {};
    if (key === undefined || last === `${key} ${count} ${state}`) return;
    last = `${key} ${count} ${state}`;
    spoken.textContent = [...el.querySelectorAll(".gemmlab-said")].map((part) => part.textContent).filter(Boolean).join(". ");
  };

  // What runs, with a clock, and when it will be stopped.
  const since = {};
  const drawStatus = () => {
    const { words, stale } = model.get("status");
    result.classList.toggle("gemmlab-stale", Boolean(stale));
    busy.hidden = !words;
    tick();
  };
  const tick = () => {
    const { words, job, step, limit } = model.get("status");
    if (!words) return;
    const now = performance.now() / 1000, taken = now - (since[job] ??= now), inStep = now - (since[`${job} ${step}`] ??= now);
    const left = Math.max(0, Math.ceil(limit - inStep));
    status.textContent = `${words} … ${taken.toFixed(1)} s${limit && inStep > 2 ? `; it is stopped in ${left} s` : ""}`;
  };
  const timer = setInterval(tick, 100);
  undo.push(() => clearInterval(timer));

  const drawDevices = () => {
    const { names, at } = model.get("devices");
    devices.hidden = !names.length;
    if (names.join() !== [...devices.options].map((option) => option.text).join()) {
      devices.replaceChildren(...names.map((name) => new Option(name)));
    }
    devices.selectedIndex = at;
  };
  describe(devices, { label: "Where it runs" });
  devices.addEventListener("change", () => say({ device: devices.selectedIndex }));
  const drawFold = () => {
    fold.hidden = !details.innerHTML && !others.children.length;
    fold.open = model.get("unfolded");
  };
  fold.addEventListener("toggle", () => { if (fold.open !== model.get("unfolded")) say({ unfolded: fold.open }); });

  // Maps and tries. One Tab stop for each map, and one for the tries: where the reader is.
  const place = (cell) => [Number(cell.dataset.x), Number(cell.dataset.y)];
  const reach = (button) => {
    for (const other of button.parentElement.querySelectorAll("button")) other.tabIndex = other === button ? 0 : -1;
  };
  const mark = () => {
    const [x, y] = model.get("here");
    for (const cell of maps.querySelectorAll(".gemmlab-cell")) {
      const here = place(cell)[0] === x && place(cell)[1] === y;
      cell.classList.toggle("gemmlab-here", here);
      describe(cell, { current: here, label: (here ? "your setting: " : "") + cell.title });
      if (here && !maps.contains(document.activeElement)) reach(cell);
    }
  };
  const drawAxis = (side, map) => {
    const choice = make("select", "gemmlab-axis");
    describe(choice, { label: `parameter of the ${side === "down" ? "vertical" : "horizontal"} axis` });
    for (const name of map.names) choice.append(new Option(name, name, false, name === map[side]));
    choice.addEventListener("change", () => say({ axis: side, name: choice.value }));
    return choice;
  };
  const drawMap = (map, number) => {
    const heading = make("div", "gemmlab-heading", { title: map.about }, map.title), grid = slot("grid");
    const axes = number === 0 && map.names.length > 2;
    if (axes) heading.append(make("span", "gemmlab-axes", {}, "↑ ", drawAxis("down", map), " → ", drawAxis("across", map)));
    grid.style.gridTemplateColumns = `auto repeat(${map.xs.length}, minmax(0, 1fr))`;
    grid.style.gridTemplateRows = `repeat(${map.ys.length}, minmax(0, 1fr)) auto`;
    if (map.ys.length === 1) grid.style.height = "90px";
    const cells = new Map(map.cells.map((cell) => [`${cell.x} ${cell.y}`, cell]));
    const tick = (text) => make("span", "gemmlab-tick", {}, text);
    for (const y of [...map.ys].reverse()) {
      grid.append(tick(map.down ? y : ""));
      for (const x of map.xs) {
        const { state, text, label, shade, ink } = cells.get(`${x} ${y}`);
        const cell = make("button", `gemmlab-cell gemmlab-${state}`, { type: "button", tabIndex: -1, title: label }, text);
        Object.assign(cell.dataset, { x, y });
        describe(cell, { disabled: state === "illegal" });
        if (shade) Object.assign(cell.style, { background: `rgb(${shade})`, color: ink });
        grid.append(cell);
      }
    }
    const corner = tick(map.down ? `${map.down}↑ ${map.across}→` : map.across);
    corner.classList.add("gemmlab-corner");
    grid.append(corner, ...map.xs.map(tick));
    const part = describe(make("section", "gemmlab-map", {}, heading, grid), { label: `${map.title}, by ${[map.across, map.down].filter(Boolean).join(" and ")}` });
    return part;
  };
  const drawMaps = () => {
    const focused = maps.contains(document.activeElement) ? document.activeElement : null;
    const at = focused && [...maps.querySelectorAll("button")].indexOf(focused);
    const texts = new Map([...maps.querySelectorAll(".gemmlab-mine")].map((cell) => [cell.title.split(":")[0], cell.title]));
    maps.replaceChildren(...model.get("maps").map(drawMap));
    for (const grid of maps.querySelectorAll(".gemmlab-grid")) grid.querySelector("button").tabIndex = 0;
    for (const cell of maps.querySelectorAll(".gemmlab-mine")) {
      if (texts.size && texts.get(cell.title.split(":")[0]) !== cell.title) cell.classList.add("gemmlab-new");
    }
    mark();
    const again = at >= 0 ? maps.querySelectorAll("button")[at] : null;
    if (focused && again) { reach(again); again.focus(); }
  };
  const drawTries = () => {
    const { title, scale, marks } = model.get("tries"), row = slot("marks");
    tries.replaceChildren(...(marks.length ? [row] : []));
    describe(row, { label: title }).setAttribute("role", "group");
    row.append(make("div", "gemmlab-scale", {}, make("b", "", {}, title), ...scale.map((rate) => make("span", "", {}, rate))));
    for (const { number, right, newest, other, label, text, labels, low, middle, high } of marks) {
      const looks = `gemmlab-try ${right ? "" : "gemmlab-not"} ${other ? "gemmlab-older" : ""} ${newest ? "gemmlab-newest" : ""}`;
      const one = make("button", looks, { type: "button", tabIndex: -1, title: label, id: `try-${number}` }, right ? "" : "✕");
      describe(one, { label });
      for (const [name, share] of Object.entries({ low, middle, high })) one.style.setProperty(`--${name}`, `${100 * share}%`);
      if (text) one.append(make("span", "gemmlab-label", {}, text));
      one.append(make("span", "gemmlab-labels", {}, ...labels.map((words) => make("span", "", {}, words))));
      row.append(one);
    }
    const end = row.querySelector("button:last-of-type");
    if (end) end.tabIndex = 0;
  };
  // A hand on the map moves the sliders at once, and measures where it lets go. What is not legal says why, and moves nothing.
  let from = null;
  const cellOf = (event) => event.target.closest?.(".gemmlab-cell");
  const legal = (cell) => cell.getAttribute("aria-disabled") !== "true";
  const choose = (cell) => {
    if (legal(cell)) say({ choose: place(cell) });
    else note.innerHTML = "", note.append(make("div", "gemmlab-note gemmlab-said", { role: "alert" }, cell.title));
  };
  listen(maps, "pointerdown", (event) => { from = cellOf(event); if (from) event.preventDefault(); });
  listen(maps, "pointerover", (event) => {
    const cell = cellOf(event);
    if (!from || !cell || cell === from || !legal(cell)) return;
    from = cell;
    say({ pass: place(cell) });
  });
  listen(window, "pointerup", () => {
    if (!from) return;
    reach(from);
    choose(from);
    from = null;
  });
  listen(maps, "click", (event) => { if (event.detail === 0 && cellOf(event)) choose(cellOf(event)); }); // without a pointer
  listen(tries, "click", (event) => {
    const one = event.target.closest(".gemmlab-try");
    if (one) say({ again: Number(one.id.slice("try-".length)) });
  });
  listen(el, "keydown", (event) => {
    const button = event.target.closest?.(".gemmlab-grid button, .gemmlab-marks button"), step = STEPS[event.key];
    if (!button || !step) return;
    const all = [...button.parentElement.querySelectorAll("button")];
    const wide = button.closest(".gemmlab-grid") ? model.get("maps")[0].xs.length : all.length;
    const at = all.indexOf(button), column = at % wide + step[0];
    const next = column >= 0 && column < wide ? all[at + step[0] - wide * step[1]] : null;
    if (next) { reach(next); next.focus(); }
    event.preventDefault();
    event.stopPropagation(); // JupyterLab would move to another notebook cell
  });

  // The present settings as code, into the clipboard; where a page may not write there, to be copied by hand.
  const copied = describe(make("span", "gemmlab-copied"), { live: "polite" });
  const copy = async (text) => {
    try {
      await navigator.clipboard.writeText(text);
      copied.replaceChildren(`Copied: ${text}`);
    } catch {
      const field = describe(make("input", "", { value: text, readOnly: true }), { label: "code to copy" });
      copied.replaceChildren(field);
      field.select();
    }
  };
  const save = ({ file, text }) => {
    const link = make("a", "", { download: file, href: URL.createObjectURL(new Blob([text], { type: "text/csv" })) });
    link.click();
    URL.revokeObjectURL(link.href);
    copied.replaceChildren(`Saved: ${file}`);
  };
  const drawCopies = () => {
    const code = model.get("code"), names = Object.keys(code);
    copied.replaceChildren();
    if (copies.children.length || !names.length) return;
    const actions = [...names.map((name) => [name, () => copy(model.get("code")[name])]), ["Tries as CSV", () => say({ csv: true })]];
    copies.append(...actions.map(([name, action]) => make("button", "gemmlab-copy", { type: "button", onclick: action }, name)), copied);
  };

  // The cell that the panel belongs to: its lines, and the uses of a name. Highlights leave the editor's elements alone.
  const editor = () => el.closest(".jp-CodeCell")?.querySelector(".jp-InputArea .cm-content");
  const cells = () => model.widget_manager?.context?.model?.cells ?? [];
  const light = (name, ranges) => {
    if (ranges.length) CSS.highlights?.set(`gemmlab-${name}`, new Highlight(...ranges));
    else CSS.highlights?.delete(`gemmlab-${name}`);
  };
  const places = (word) => {
    const found = [], text = editor();
    if (!text || !CSS.highlights) return found;
    const walker = document.createTreeWalker(text, NodeFilter.SHOW_TEXT);
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
      for (const { index } of node.data.matchAll(new RegExp(`\\b${word}\\b`, "g"))) {
        const range = new Range();
        range.setStart(node, index);
        range.setEnd(node, index + word.length);
        found.push(range);
      }
    }
    return found;
  };
  // An editor has only those lines in the page that are near the window: the element of a line, if it is there. Lines that
  // follow one another are found in the cell's source together.
  const lineElement = (number) => {
    const source = [...cells()].find((cell) => cell.id === model.get("cell"))?.sharedModel.source.split("\n") ?? [];
    let group = [];
    for (const line of editor()?.querySelectorAll(".cm-line") ?? []) {
      group = line.previousElementSibling === group.at(-1) ? [...group, line] : [line];
      if (line.nextElementSibling?.matches(".cm-line")) continue;
      const start = source.findIndex((_, at) => group.every((one, by) => one.textContent === source[at + by]));
      if (start >= 0 && group[number - 1 - start]) return group[number - 1 - start];
    }
    return null;
  };
  // What is lit stays lit while the editor scrolls: the uses of a name, and a line.
  let litName = "", litLine = 0;
  const relight = () => {
    light("name", litName ? places(litName) : []);
    const line = litLine && lineElement(litLine), range = new Range();
    if (line) range.selectNodeContents(line);
    light("line", line ? [range] : []);
  };
  const changes = new MutationObserver(relight);
  undo.push(() => { changes.disconnect(); litName = ""; litLine = 0; relight(); });
  const watchEditor = () => {
    relight();
    changes.disconnect();
    if ((litName || litLine) && editor()) changes.observe(editor(), { childList: true, subtree: true });
  };
  const lightUses = (word) => { litName = word; watchEditor(); };
  // The cursor goes to a line, which is marked; where it is not in the page yet, the page is scrolled towards it.
  const goToLine = (number, attempts = 8) => {
    const line = lineElement(number), gaps = [...(editor()?.querySelectorAll(".cm-gap") ?? [])];
    if (!line) {
      gaps[attempts % gaps.length]?.scrollIntoView({ block: "center" });
      if (attempts && gaps.length) setTimeout(() => goToLine(number, attempts - 1), 50);
      return;
    }
    line.scrollIntoView({ block: "center" });
    editor().focus({ preventScroll: true });
    getSelection().collapse(line, 0);
    litLine = number;
    watchEditor();
  };
  listen(el, "click", (event) => {
    const link = event.target.closest?.("a[data-line]");
    if (!link) return;
    event.preventDefault();
    goToLine(Number(link.dataset.line));
  });
  const write = ({ code }) => {
    for (const one of cells()) {
      if (one.id === model.get("cell")) one.sharedModel.setSource(`${one.sharedModel.source.split("\n", 1)[0]}\n${code}`);
    }
    result.classList.add("gemmlab-older"); // it is about what was there before
    copied.replaceChildren("The cell has it: press Shift-Enter to run it.");
  };
  const refuse = ({ refused, words }) => {
    clear();
    controls.get(refused).box.append(make("div", "gemmlab-refused", { role: "alert" }, words));
  };
  const clear = () => el.querySelectorAll("[role=alert]").forEach((words) => words.remove());
  for (const type of ["keydown", "pointerdown"]) listen(el, type, clear, true); // before what says more
  on("msg:custom", (message) => {
    if (message.file) save(message);
    if (message.code !== undefined) write(message);
    if (message.refused) refuse(message);
  });

  const draws = {
    controls: drawControls, buttons: drawButtons, parts: drawParts, status: drawStatus, devices: drawDevices,
    maps: drawMaps, here: mark, tries: drawTries, code: drawCopies, unfolded: drawFold,
  };
  for (const [trait, draw] of Object.entries(draws)) {
    on(`change:${trait}`, draw);
    draw();
  }
  on("change:parts", drawFold);

  // Lumino, whose shortcuts these are, looks for the attribute, in Notebook 7 before the panel hears of the key.
  listen(window, "keydown", (event) => {
    const passes = event.key === "Escape" || (event.key === "Enter" && event.shiftKey) ||
      event.ctrlKey || event.metaKey || event.altKey;
    if (el.contains(event.target)) event.target.toggleAttribute("data-lm-suppress-shortcuts", !passes);
  }, true);

  // The living widget, or the sentence, the button and the picture in the two outputs after it. Restarting a kernel gives
  // its widgets a class; shutting it down shows nowhere.
  const watchKernel = (panel, output) => {
    const show = (living) => {
      const again = output.nextElementSibling, still = again?.nextElementSibling;
      for (const part of [again, still]) if (part) part.style.display = living ? "none" : "";
      panel.style.display = living ? "" : "none";
    };
    const look = () => {
      const kernel = model.widget_manager?.kernel;
      const ended = kernel === null || ["dead", "terminating"].includes(kernel?.status);
      show(!ended && !panel.classList.contains("jupyter-widgets-disconnected"));
    };
    const changes = new MutationObserver(look), timer = setInterval(look, 1000);
    changes.observe(panel, { attributeFilter: ["class"] });
    changes.observe(output.parentElement, { childList: true });
    undo.push(() => { clearInterval(timer); changes.disconnect(); show(false); });
    look();
  };
  let frame;
  const attach = () => {
    if (!el.isConnected) { // a page that has much to do has not shown the widget yet
      frame = requestAnimationFrame(attach);
      return;
    }
    const output = el.closest(".jp-OutputArea-child") || el.closest(".output_area"), panel = el.closest(".gemmlab");
    stayTall();
    followLine();
    if (!output || !panel || panel.parentElement.closest(".gemmlab")) return; // a stepper in an explorer has no picture
    watchKernel(panel, output);
  };
  frame = requestAnimationFrame(() => { frame = requestAnimationFrame(attach); });
  undo.push(() => cancelAnimationFrame(frame));
  return () => undo.forEach((step) => step());
}
export default { render };

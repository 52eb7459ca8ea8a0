// The maps of an explorer and its tries. Every cell and every try is a button: choose it with the mouse, by dragging over
// the map, or with the arrow keys and Enter. Python sends what the cells show; where the reader is comes separately, so
// that the ring follows a slider at once.
const STEPS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowDown: [0, -1], ArrowUp: [0, 1] };

const make = (tag, name, text = "") => Object.assign(document.createElement(tag), { className: name, textContent: text });

function render({ model, el }) {
  const undo = [];
  el.classList.add("gemmlab-maps");
  const both = make("div", "gemmlab-both"), tries = make("div", "gemmlab-tries");
  el.append(both, tries);

  const listen = (target, type, action) => {
    target.addEventListener(type, action);
    undo.push(() => target.removeEventListener(type, action));
  };
  const cellOf = (event) => event.target.closest?.(".gemmlab-cell");
  const place = (cell) => [Number(cell.dataset.x), Number(cell.dataset.y)];

  // One Tab stop for each map, and one for the tries: where the reader is.
  const reach = (button) => {
    const all = button.parentElement.querySelectorAll("button");
    all.forEach((other) => { other.tabIndex = other === button ? 0 : -1; });
  };

  const mark = () => {
    const [x, y] = model.get("here");
    for (const cell of both.querySelectorAll(".gemmlab-cell")) {
      const here = Number(cell.dataset.x) === x && Number(cell.dataset.y) === y;
      cell.classList.toggle("gemmlab-here", here);
      cell.setAttribute("aria-current", String(here));
      cell.setAttribute("aria-label", (here ? "your setting: " : "") + cell.title);
      if (here && !both.contains(document.activeElement)) reach(cell);
    }
  };

  const axis = (side, map) => {
    const choice = make("select", "gemmlab-axis");
    choice.setAttribute("aria-label", `parameter of the ${side === "down" ? "vertical" : "horizontal"} axis`);
    for (const name of map.names) choice.append(new Option(name, name, false, name === map[side]));
    choice.addEventListener("change", () => model.send({ axis: side, name: choice.value }));
    return choice;
  };

  const drawMap = (map, number) => {
    const part = make("section", "gemmlab-map"), title = make("div", "gemmlab-heading", map.title), grid = make("div", "gemmlab-grid");
    part.setAttribute("aria-label", `${map.title}, by ${[map.across, map.down].filter(Boolean).join(" and ")}`);
    if (number === 0 && map.names.length > 2) {
      title.append(make("span", "gemmlab-axes", ""));
      title.lastChild.append("↑ ", axis("down", map), " → ", axis("across", map));
    }
    grid.style.gridTemplateColumns = `auto repeat(${map.xs.length}, minmax(0, 1fr))`;
    grid.style.gridTemplateRows = `repeat(${map.ys.length}, minmax(0, 1fr)) 18px`;
    if (map.ys.length === 1) grid.style.height = "90px";
    const cells = new Map(map.cells.map((cell) => [`${cell.x} ${cell.y}`, cell]));
    for (const y of [...map.ys].reverse()) {
      grid.append(make("span", "gemmlab-tick", map.down ? y : ""));
      for (const x of map.xs) {
        const cell = cells.get(`${x} ${y}`), button = make("button", `gemmlab-cell gemmlab-${cell.state}`, cell.text);
        Object.assign(button, { type: "button", tabIndex: -1, title: cell.label });
        Object.assign(button.dataset, { x, y });
        button.setAttribute("aria-disabled", String(cell.state === "illegal"));
        if (cell.shade) Object.assign(button.style, { background: `rgb(${cell.shade})`, color: cell.ink });
        for (const end of ["low", "high"]) if (cell[end]) button.style.setProperty(`--${end}`, `${100 * cell[end]}%`);
        grid.append(button);
      }
    }
    grid.append(make("span", "gemmlab-tick", map.down ? `${map.down}↑ ${map.across}→` : map.across));
    for (const x of map.xs) grid.append(make("span", "gemmlab-tick", x));
    title.title = number ? "It fills as you measure. A line spans the rates of the runs; a dot is not allowed."
      : "Click or drag on the map to set the sliders. A dot is not allowed.";
    part.append(title, grid);
    return part;
  };

  const drawMaps = () => {
    const focused = both.contains(document.activeElement) ? document.activeElement : null;
    const old = focused && [...both.querySelectorAll("button")].indexOf(focused);
    const texts = new Map([...both.querySelectorAll(".gemmlab-mine")].map((cell) => [cell.title.split(":")[0], cell.title]));
    both.replaceChildren(...model.get("maps").map(drawMap));
    both.querySelectorAll(".gemmlab-grid").forEach((grid) => { const first = grid.querySelector("button"); if (first) first.tabIndex = 0; });
    for (const cell of both.querySelectorAll(".gemmlab-mine")) {
      if (texts.size && texts.get(cell.title.split(":")[0]) !== cell.title) cell.classList.add("gemmlab-new");
    }
    mark();
    if (old !== null && old >= 0) {
      const again = both.querySelectorAll("button")[old];
      if (again) { reach(again); again.focus(); }
    }
  };

  const drawTries = () => {
    const { title, marks } = model.get("tries");
    tries.replaceChildren(make("div", "gemmlab-heading", title), make("div", "gemmlab-marks"));
    for (const one of marks) {
      const button = make("button", `gemmlab-try ${one.right ? "" : "gemmlab-not"} ${one.other ? "gemmlab-older" : ""}`, one.right ? "" : "✕");
      Object.assign(button, { type: "button", tabIndex: -1, title: one.label, id: `try-${one.number}` });
      for (const name of ["low", "middle", "high"]) button.style.setProperty(`--${name}`, `${100 * one[name]}%`);
      if (one.text) button.append(make("span", "gemmlab-label", one.text));
      tries.lastChild.append(button);
    }
    if (tries.lastChild.lastChild) tries.lastChild.lastChild.tabIndex = 0;
  };

  // The present settings as code, into the clipboard; where a page may not write there, to be copied by hand.
  const copies = make("div", "gemmlab-copies"), copied = make("span", "gemmlab-copied");
  copied.setAttribute("aria-live", "polite");
  const tell = (...parts) => copied.replaceChildren(...parts);
  const copy = async (text) => {
    try {
      await navigator.clipboard.writeText(text);
      tell(`Copied: ${text}`);
    } catch {
      const field = Object.assign(document.createElement("input"), { value: text, readOnly: true });
      field.setAttribute("aria-label", "code to copy");
      tell(field);
      field.select();
    }
  };
  const save = ({ file, text }) => {
    if (!file) return;
    const link = Object.assign(document.createElement("a"), { download: file });
    link.href = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
    link.click();
    URL.revokeObjectURL(link.href);
    tell(`Saved: ${file}`);
  };
  const drawCopies = () => {
    const actions = Object.keys(model.get("code")).map((name) => [name, () => copy(model.get("code")[name])]);
    const buttons = [...actions, ["Tries as CSV", () => model.send({ csv: true })]].map(([name, action]) => {
      const button = Object.assign(make("button", "gemmlab-copy", name), { type: "button" });
      button.addEventListener("click", action);
      return button;
    });
    copies.replaceChildren(...buttons, copied);
  };
  el.append(copies);
  model.on("msg:custom", save);
  undo.push(() => model.off("msg:custom", save));

  // A hand on the map moves the sliders at once, and measures where it lets go.
  let held = null;
  listen(both, "pointerdown", (event) => { held = cellOf(event); if (held) event.preventDefault(); });
  listen(both, "pointerover", (event) => {
    const cell = cellOf(event);
    if (!held || !cell || cell === held || cell.getAttribute("aria-disabled") === "true") return;
    held = cell;
    model.send({ pass: place(cell) });
  });
  listen(window, "pointerup", () => {
    if (!held) return;
    reach(held);
    model.send({ choose: place(held) });
    held = null;
  });
  listen(both, "click", (event) => { // without a pointer, as a screen reader does
    if (event.detail === 0 && cellOf(event)) model.send({ choose: place(cellOf(event)) });
  });
  listen(tries, "click", (event) => {
    const one = event.target.closest(".gemmlab-try");
    if (one) model.send({ again: Number(one.id.slice("try-".length)) });
  });
  listen(el, "keydown", (event) => {
    const button = event.target.closest?.("button"), step = STEPS[event.key];
    if (!button || !step) return;
    const all = [...button.parentElement.querySelectorAll("button")];
    const wide = button.closest(".gemmlab-grid") ? model.get("maps")[0].xs.length : all.length;
    const at = all.indexOf(button), column = at % wide + step[0];
    const next = column >= 0 && column < wide ? all[at + step[0] - wide * step[1]] : null;
    if (next) { reach(next); next.focus(); }
    event.preventDefault();
    event.stopPropagation(); // JupyterLab would move to another notebook cell
  });

  for (const [name, action] of [["maps", drawMaps], ["tries", drawTries], ["here", mark], ["code", () => tell()]]) {
    model.on(`change:${name}`, action);
    undo.push(() => model.off(`change:${name}`, action));
  }
  drawMaps();
  drawTries();
  drawCopies();
  return () => undo.forEach((step) => step());
}
export default { render };

// A picture whose cells can be chosen, which no control of ipywidgets can do: with the mouse, or with the arrow keys and
// Enter. The picture is an SVG in which each cell is a group with an id; `cells` says what each is called and where it is.
// Where only the reader's setting is another, the picture stays, and its ring moves.
const STYLE = `
  .gemmlab-landscape svg * { pointer-events: none; }
  .gemmlab-landscape svg [role=button] path { pointer-events: all; cursor: pointer; }
  .gemmlab-landscape svg [role=button][aria-disabled=true] path { cursor: not-allowed; }
  .gemmlab-landscape svg [role=button]:focus { outline: none; }
  .gemmlab-landscape svg [role=button]:focus-visible path { stroke: var(--jp-brand-color1, #1976d2) !important; stroke-width: 4 !important; }
`;
const STEPS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowDown: [0, -1], ArrowUp: [0, 1] };

function render({ model, el }) {
  el.classList.add("gemmlab-landscape", "gemmlab-wide");
  let groups = new Map();

  const choose = (cell) => model.send({ choose: [cell.x, cell.y] });

  const reach = (cell) => {  // Tab stops once, at the cell that was reached last
    for (const [key, { group }] of groups) group.setAttribute("tabindex", key === `${cell.column},${cell.row}` ? "0" : "-1");
  };

  const press = (cell) => (event) => {
    const step = STEPS[event.key];
    if (event.key === "Enter" || event.key === " ") {
      choose(cell);
    } else if (step) {
      const next = groups.get(`${cell.column + step[0]},${cell.row + step[1]}`);
      if (next) {
        reach(next.cell);
        next.group.focus();
      }
    } else {
      return;
    }
    event.preventDefault();
    event.stopPropagation();  // JupyterLab would move to another notebook cell
  };

  // Say what each cell is, and put the ring around the reader's.
  const mark = () => {
    el.querySelector("svg")?.setAttribute("aria-label", model.get("words"));
    for (const cell of model.get("cells")) {
      const group = el.querySelector(`#${cell.id}`);
      if (!group) continue;
      group.setAttribute("aria-label", cell.label);
      group.setAttribute("aria-current", String(cell.here));
      group.querySelector("title").textContent = cell.label;
      if (!cell.here) continue;
      moveRing(group);
      if (!el.contains(document.activeElement)) reach(cell); // Tab begins where the sliders are
    }
  };

  let drawnIn = null; // the corner of the cell in which the picture has the ring
  const moveRing = (group) => {
    const corner = group.querySelector("path").getAttribute("d").match(/[\d.]+/g).slice(0, 2).map(Number);
    drawnIn ??= corner;
    const way = corner.map((to, axis) => to - drawnIn[axis]);
    el.querySelectorAll("[id^=ring]").forEach((ring) => ring.setAttribute("transform", `translate(${way})`));
  };

  const draw = () => {
    const focused = document.activeElement && el.contains(document.activeElement) && document.activeElement.id;
    el.innerHTML = `<style>${STYLE}</style>${model.get("svg")}`;
    groups = new Map();
    drawnIn = null;
    const svg = el.querySelector("svg");
    if (!svg) return;
    svg.setAttribute("role", "group");  // an image would hide its parts from a screen reader
    for (const cell of model.get("cells")) {
      const group = el.querySelector(`#${cell.id}`);
      if (!group) continue;
      group.setAttribute("role", "button");
      group.setAttribute("aria-disabled", String(!cell.legal));
      group.prepend(document.createElementNS("http://www.w3.org/2000/svg", "title"));
      group.addEventListener("click", () => {
        reach(cell);
        choose(cell);
      });
      group.addEventListener("keydown", press(cell));
      groups.set(`${cell.column},${cell.row}`, { cell, group });
    }
    const [first] = groups.values(), before = [...groups.values()].find(({ cell }) => cell.id === focused);
    if (first) reach(first.cell);
    mark();
    if (before) {
      reach(before.cell);
      before.group.focus();
    }
  };

  model.on("change:svg", draw);
  model.on("change:cells", mark);
  draw();
  return () => { model.off("change:svg", draw); model.off("change:cells", mark); };
}
export default { render };

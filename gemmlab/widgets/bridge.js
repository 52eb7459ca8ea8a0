// What the widgets need the page to do, because Python cannot:
// - the static picture in the cell's next output is hidden while the widget is alive;
// - keys pressed in a control do not reach JupyterLab's shortcuts;
// - sliders and the result panel get names that a screen reader can say.
function render({ model, el }) {
  const undo = [];
  el.style.display = "none";

  const attach = () => {
    const output = el.closest(".jp-OutputArea-child") || el.closest(".output_area");
    const panel = el.closest(".gemmlab");
    if (!output || !panel) return;

    // Widgets whose kernel is gone have this class (anywidget's model does not report it); the picture may arrive later.
    const show = (alive = !panel.classList.contains("jupyter-widgets-disconnected")) => {
      const still = output.nextElementSibling;
      if (still) still.style.display = alive ? "none" : "";
      panel.style.display = alive ? "" : "none";
    };
    const changes = new MutationObserver(() => show());
    changes.observe(panel, { attributeFilter: ["class"] });
    changes.observe(output.parentElement, { childList: true });
    undo.push(() => { changes.disconnect(); show(false); });
    show();

    const keep = (event) => {
      const passes = event.key === "Escape" || (event.key === "Enter" && event.shiftKey) ||
        event.ctrlKey || event.metaKey || event.altKey;
      if (!passes) event.stopPropagation();
    };
    panel.addEventListener("keydown", keep);
    undo.push(() => panel.removeEventListener("keydown", keep));

    const name = () => {
      for (const slider of panel.querySelectorAll(".widget-slider, .widget-selection-slider")) {
        const handle = slider.querySelector("[role=slider], .noUi-handle");
        const label = slider.querySelector(".widget-label");
        const readout = slider.querySelector(".widget-readout");
        if (!handle) continue;
        handle.setAttribute("aria-label", label ? label.textContent : "value");
        handle.setAttribute("aria-valuetext", readout ? readout.textContent : "");
      }
      const result = panel.querySelector(".gemmlab-result");
      if (result && !result.hasAttribute("role")) result.setAttribute("role", "status");
    };
    name();
    const timer = setTimeout(name, 500);
    const watcher = new MutationObserver(name);
    for (const readout of panel.querySelectorAll(".widget-readout")) {
      watcher.observe(readout, { childList: true, characterData: true, subtree: true });
    }
    undo.push(() => { clearTimeout(timer); watcher.disconnect(); });
  };

  requestAnimationFrame(() => requestAnimationFrame(attach));
  return () => undo.forEach((step) => step());
}
export default { render };

// What the widgets need the page to do, because Python cannot:
// - the static picture in the cell's next output is hidden while the widget is alive, and a sentence says when it is not;
// - keys pressed in a control do not reach JupyterLab's shortcuts;
// - sliders and buttons get names that a screen reader can say, sliders one Tab stop each, and answers are spoken;
// - Python hears whether a slider is still held, and what was typed beside it;
// - code is written into a cell of the notebook;
// - clocks run while Python waits, and a panel does not shrink when its picture does.
const MOVES = ["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown", "PageUp", "PageDown", "Home", "End"];

function render({ model, el }) {
  const undo = [];
  el.style.display = "none";

  const listen = (target, type, action, options) => {
    target.addEventListener(type, action, options);
    undo.push(() => target.removeEventListener(type, action, options));
  };

  // Do something now, and whenever what is in an element has changed.
  const watch = (element, action, more = {}) => {
    const watcher = new MutationObserver(action);
    watcher.observe(element, { childList: true, subtree: true, ...more });
    undo.push(() => watcher.disconnect());
    action();
  };

  // The living widget, or the sentence, the button and the picture in the two outputs after it. Restarting a kernel gives
  // its widgets a class; shutting it down shows nowhere.
  const watchKernel = (panel, output) => {
    const alive = () => {
      const kernel = model.widget_manager?.kernel;
      const ended = kernel === null || ["dead", "terminating"].includes(kernel?.status);
      return !ended && !panel.classList.contains("jupyter-widgets-disconnected");
    };
    const show = (living = alive()) => {
      const again = output.nextElementSibling, still = again?.nextElementSibling;
      for (const part of [again, still]) if (part) part.style.display = living ? "none" : "";
      panel.style.display = living ? "" : "none";
    };
    const changes = new MutationObserver(() => show());
    changes.observe(panel, { attributeFilter: ["class"] });
    changes.observe(output.parentElement, { childList: true });
    const timer = setInterval(() => show(), 1000);
    undo.push(() => { clearInterval(timer); changes.disconnect(); show(false); });
    show();
  };

  // Cells of C are coloured as C: JupyterLab knows the language, and the kernel's own is Python.
  const colourCells = () => {
    for (const cell of model.widget_manager?.context?.model?.cells ?? []) {
      if (cell.type === "code" && cell.sharedModel.source.startsWith("%%gemm")) cell.mimeType = "text/x-csrc";
    }
  };

  // Code for the cell that shows the widget, or for another one of the notebook, below its first line.
  const writeCode = () => {
    const write = ({ cell, code }) => {
      for (const one of cell ? model.widget_manager?.context?.model?.cells ?? [] : []) {
        if (one.id !== cell) continue;
        const [first] = one.sharedModel.source.split("\n", 1);
        one.sharedModel.setSource(`${first}\n${code}`);
      }
    };
    model.on("msg:custom", write);
    undo.push(() => model.off("msg:custom", write));
  };

  // Lumino, whose shortcuts these are, looks for the attribute, in Notebook 7 before the panel hears of the key.
  const keepKeys = (panel) => listen(window, "keydown", (event) => {
    const passes = event.key === "Escape" || (event.key === "Enter" && event.shiftKey) ||
      event.ctrlKey || event.metaKey || event.altKey;
    if (panel.contains(event.target)) event.target.toggleAttribute("data-lm-suppress-shortcuts", !passes);
  }, true);

  // While a slider is held, Python shows what needs no measuring, and measures when it is let go. It hears of a hand
  // after the move itself, since each message delays what follows it; a key that is down for a moment says nothing.
  const watchHand = (panel) => {
    let wanted = false;
    const tell = () => {
      if ([null, wanted].includes(model.get("held"))) return; // null: this widget does not ask for it
      model.set("held", wanted);
      model.save_changes();
    };
    const hold = (held) => {
      if (held === wanted) return;
      wanted = held;
      setTimeout(tell);
    };
    const onSlider = (event) => event.target.closest?.(".noUi-target");
    listen(panel, "pointerdown", (event) => { if (onSlider(event)) hold(true); }, { capture: true });
    listen(panel, "keydown", (event) => { if (onSlider(event) && MOVES.includes(event.key)) hold(true); },
      { capture: true });
    for (const type of ["pointerup", "pointercancel", "keyup"]) listen(window, type, () => hold(false), true);
    listen(window, "blur", (event) => { if (event.target === window) hold(false); }); // and not of a control
  };

  // The key End goes to the last position. noUiSlider goes to the one that was the last when the slider was made, and
  // sliders get more positions: by a value that was typed, or by a longer replay.
  const goToLast = (panel) => listen(panel, "keydown", (event) => {
    const slider = event.target.closest?.(".noUi-target")?.noUiSlider;
    if (event.key !== "End" || !slider) return;
    event.preventDefault();
    event.stopPropagation();
    slider.set(slider.options.range.max);
  }, { capture: true });

  // The number beside a slider can be typed into: Python takes it, or says why not.
  const watchTyping = (panel) => {
    let before = "";
    const readout = (event) => event.target.closest?.(".widget-readout");
    const label = (element) => element.parentElement.querySelector(".widget-label").textContent;
    const typed = (element) => {
      const text = element.textContent.trim();
      if (text === before) return;
      element.textContent = before; // what Python takes comes back with the slider
      model.send({ typed: label(element), text });
    };
    const clear = () => panel.querySelectorAll(".gemmlab-refused").forEach((words) => words.remove());
    listen(panel, "focusin", (event) => { if (readout(event)) before = readout(event).textContent.trim(); });
    listen(panel, "focusout", (event) => { if (readout(event)) typed(readout(event)); });
    listen(panel, "keydown", (event) => {
      clear();
      if (!readout(event) || !["Enter", "Escape"].includes(event.key)) return;
      event.preventDefault();
      if (event.key === "Escape") readout(event).textContent = before;
      readout(event).blur();
    });
    listen(panel, "pointerdown", clear);
    const refuse = (message) => {
      if (!message.refused) return;
      const words = document.createElement("div");
      words.className = "gemmlab-refused";
      words.setAttribute("role", "alert");
      words.textContent = message.words;
      const all = [...panel.querySelectorAll(".widget-readout")];
      clear();
      all.find((element) => label(element) === message.refused)?.parentElement.after(words);
    };
    model.on("msg:custom", refuse);
    undo.push(() => model.off("msg:custom", refuse));
  };

  // A clock says how long its job has taken, and when its step will be stopped.
  const runClocks = (panel) => {
    const since = {};
    const tick = () => {
      for (const clock of panel.querySelectorAll(".gemmlab-clock")) {
        const { job, step, limit } = clock.dataset, now = performance.now() / 1000;
        const taken = now - (since[job] ??= now), inStep = now - (since[`${job} ${step}`] ??= now);
        const left = Math.max(0, Math.ceil(limit - inStep));
        clock.textContent = `${taken.toFixed(1)} s` + (limit && inStep > 2 ? `; it is stopped in ${left} s` : "");
      }
    };
    const timer = setInterval(tick, 100);
    undo.push(() => clearInterval(timer));
  };

  const nameAll = (panel) => {
    const name = () => {
      for (const slider of panel.querySelectorAll(".widget-slider, .widget-selection-slider")) {
        const handle = slider.querySelector("[role=slider], .noUi-handle");
        const label = slider.querySelector(".widget-label");
        const readout = slider.querySelector(".widget-readout");
        if (!handle) continue;
        handle.setAttribute("aria-label", label ? label.textContent : "value");
        handle.setAttribute("aria-valuetext", readout ? readout.textContent : "");
        if (readout) readout.tabIndex = -1; // one Tab stop for each slider
      }
      for (const list of panel.querySelectorAll("select[title]")) list.setAttribute("aria-label", list.title);
      for (const meaning of panel.querySelectorAll(".gemmlab-control .gemmlab-meaning")) { // or why a control gave way
        const control = meaning.closest(".gemmlab-control").querySelector("[role=slider], .noUi-handle, .widget-toggle-buttons-container");
        control?.setAttribute("aria-description", meaning.textContent);
      }
      for (const play of panel.querySelectorAll(".jupyter-widget-play, .widget-play")) {
        const [start, stop] = play.querySelectorAll("button");
        if (!stop) continue;
        const playing = start.querySelector(".fa-pause");
        for (const [button, words] of [[start, playing ? "Pause" : play.title], [stop, "Stop, and back to the start"]]) {
          button.title = words;
          button.setAttribute("aria-label", words);
        }
      }
    };
    // controls may come later than the bridge; their numbers change, and the icons of the buttons that play
    watch(panel, name, { characterData: true, attributeFilter: ["class"] });
  };

  // A screen reader says what is new in an answer, once: verdict, rates and notes, or the sentence below a picture.
  const speak = (panel) => {
    const result = panel.querySelector(".gemmlab-result");
    if (!result) return;
    const words = document.createElement("div");
    words.className = "gemmlab-spoken";
    words.setAttribute("role", "status");
    panel.append(words);
    let spoken = "";
    const say = () => {
      const { key, count = "" } = result.querySelector("[data-key]")?.dataset ?? {};
      if (key === undefined || spoken === `${key} ${count}`) return;
      spoken = `${key} ${count}`;
      words.textContent = [...panel.querySelectorAll(".gemmlab-said")].map((part) => part.textContent).filter(Boolean).join(". ");
    };
    undo.push(() => words.remove());
    watch(result, say);
  };

  // A panel that has been tall stays tall, so that what is below does not jump while a slider moves.
  const stayTall = (panel) => {
    const result = panel.querySelector(".gemmlab-result");
    if (!result) return;
    const least = result.style.minHeight;
    watch(result, () => { result.style.minHeight = `${result.offsetHeight}px`; });
    listen(window, "resize", () => { result.style.minHeight = least; });
  };

  // The line that is carried out stays in view: every step replaces the kernel's text, and with it how far it is scrolled.
  const followLine = (panel) => {
    const result = panel.querySelector(".gemmlab-result");
    let scrolled = 0;
    const follow = () => {
      const code = result.querySelector(".gemmlab-code"), now = result.querySelector(".gemmlab-now");
      if (!code || !now) return;
      code.scrollTop = scrolled;
      const room = code.clientHeight - now.offsetHeight, above = now.offsetTop - code.scrollTop;
      if (above < 0.1 * room || above > 0.9 * room) code.scrollTop = now.offsetTop - room / 2;
      scrolled = code.scrollTop;
      code.addEventListener("scroll", () => { scrolled = code.scrollTop; });
    };
    if (result) watch(result, follow);
  };

  let frame;
  const attach = () => {
    if (!el.isConnected) { // a page that has much to do has not shown the widget yet
      frame = requestAnimationFrame(attach);
      return;
    }
    const output = el.closest(".jp-OutputArea-child") || el.closest(".output_area");
    const panel = el.closest(".gemmlab");
    if (!output || !panel) return;
    watchKernel(panel, output);
    colourCells();
    writeCode();
    for (const part of [keepKeys, watchHand, goToLast, watchTyping, runClocks, nameAll, speak, stayTall, followLine]) part(panel);
  };

  frame = requestAnimationFrame(() => { frame = requestAnimationFrame(attach); });
  undo.push(() => cancelAnimationFrame(frame));
  return () => undo.forEach((step) => step());
}
export default { render };

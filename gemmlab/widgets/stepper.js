// Keeps the line that is carried out in view. Every step replaces the kernel's text, and with it how far it is scrolled.
function render({ el }) {
  el.style.display = "none";
  let undo = () => {};

  const attach = () => {
    const panel = el.closest(".gemmlab")?.querySelector(".gemmlab-result");
    if (!panel) return;
    let scrolled = 0;
    const follow = () => {
      const code = panel.querySelector(".gemmlab-code"), now = panel.querySelector(".gemmlab-now");
      if (!code || !now) return;
      code.scrollTop = scrolled;
      const room = code.clientHeight - now.offsetHeight, above = now.offsetTop - code.scrollTop;
      if (above < 0.1 * room || above > 0.9 * room) code.scrollTop = now.offsetTop - room / 2;
      scrolled = code.scrollTop;
      code.addEventListener("scroll", () => { scrolled = code.scrollTop; });
    };
    const watcher = new MutationObserver(follow);
    watcher.observe(panel, { childList: true, subtree: true });
    undo = () => watcher.disconnect();
    follow();
  };

  requestAnimationFrame(() => requestAnimationFrame(attach));
  return () => undo();
}
export default { render };

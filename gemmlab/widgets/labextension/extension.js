// Cells of OpenCL C in JupyterLab and Notebook 7, also before a kernel runs: they have the colours of C, and line numbers, which
// messages name. JupyterLab knows a single language for a notebook. It loads this file as it is, without a build.
(() => {
  const LANGUAGE = "text/x-csrc", CELL = /^%%(gemm|puzzle)\b/, WIDGET = /gemmlab\.(Explorer|Generator|Prediction|Stepper)\(/;
  // What a cell prints is broken between words. A hidden cell is no wider than the page, and text no wider than a panel.
  const STYLE = `
    .gemmlab-notebook .jp-RenderedMarkdown > :is(p, ul, ol, blockquote, details) { max-width: 860px; box-sizing: border-box; }
    .gemmlab-notebook .jp-RenderedText pre { word-break: normal; }
    .gemmlab-notebook .jp-Placeholder-content { min-width: 0; }
    .gemmlab-notebook .jp-Placeholder-contentContainer { max-width: 100%; overflow: hidden; }`;

  function open(panel, languages) {
    const book = panel.content, before = new WeakSet();
    const dress = async (cell) => {
      const { model } = cell, { source } = model.sharedModel;
      if (CELL.test(source) || WIDGET.test(source)) book.node.classList.add("gemmlab-notebook");
      if (!CELL.test(source) || model.mimeType === LANGUAGE) return;
      cell.updateEditorConfig({ lineNumbers: true });
      await languages.getLanguage(model.mimeType); // or the editor might finish loading it after that of C
      model.mimeType = LANGUAGE;
    };
    const look = () => {
      for (const cell of book.widgets.filter((one) => one.model.type === "code" && !before.has(one))) {
        before.add(cell);
        dress(cell);
        cell.model.contentChanged.connect(() => dress(cell));
        cell.model.mimeTypeChanged.connect(() => dress(cell)); // a kernel that starts sets the notebook's
      }
    };
    book.modelContentChanged.connect(look);
    panel.context.ready.then(look);
  }

  const plugin = (IEditorLanguageRegistry) => ({
    id: "gemmlab:cells",
    autoStart: true,
    requires: [IEditorLanguageRegistry],
    activate(app, languages) {
      document.head.append(Object.assign(document.createElement("style"), { textContent: STYLE }));
      app.docRegistry.addWidgetExtension("Notebook", { createNew: (panel) => open(panel, languages) });
    },
  });
  let shared;
  const get = async () => {
    const [library] = Object.values(shared["@jupyterlab/codemirror"]), module = (await library.get())();
    return () => plugin(module.IEditorLanguageRegistry);
  };
  (globalThis._JUPYTERLAB ??= {}).gemmlab = { init: (scope) => { shared = scope; }, get };
})();

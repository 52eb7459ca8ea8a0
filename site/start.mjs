// Pyodide for JupyterLite. The page hears what is loaded, since that takes seconds and megabytes.
import { loadPyodide as load } from "./pyodide.mjs";

export async function loadPyodide(options) {
  const page = new BroadcastChannel("gemmlab-python"), { fetch } = globalThis;
  let bytes = 0;
  globalThis.fetch = async (...request) => {
    const response = await fetch(...request);
    bytes += Number(response.headers.get("content-length"));
    const file = decodeURI(response.url).split("/").at(-1).split("-")[0];
    page.postMessage(`Python is loading: ${(bytes / 1e6).toFixed(1)} MB, ${file}`);
    return response;
  };
  try {
    // JupyterLite's files are at /drive, and stay in the browser: so do tries and progress
    const python = await load({ ...options, env: { HOME: "/home/pyodide", GEMMLAB_DATA: "/drive/gemmlab", ...options.env } });
    // some of its Matplotlibs come with a list of fonts of another version, and warn in the first cell of every visit
    python.runPython("import logging; logging.getLogger('matplotlib.font_manager').setLevel('ERROR')");
    return python;
  } finally {
    globalThis.fetch = fetch;
    page.postMessage("");
    page.close();
  }
}

"""The panel of JupyterLab in a page of Chromium, with a model as anywidget gives it."""

from __future__ import annotations

import functools
import http.server
import json
import threading
from dataclasses import asdict

import pytest
from web.chromium import WEBGPU, chromium

from gemmlab import web
from gemmlab.catalog import catalog

pytestmark = pytest.mark.system

PAGE = """<!doctype html><div id="el"></div><script type="module">
const ESM = %s;
const file = new Blob([ESM], { type: "text/javascript" });
const panel = (await import(URL.createObjectURL(file))).default;
const state = { request: {}, gpu: {}, result: {} }, listeners = {};
const model = {
  get: (name) => state[name], save_changes() {}, off() {},
  set: (name, value) => { state[name] = value; },
  on: (event, call) => { listeners[event] = call; },
};
window.state = state;
window.ask = (request) => { state.request = request; listeners["change:request"](); };
window.close_ = await panel.render({ model, el: document.getElementById("el") });
</script>"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("panel")
    (folder / "page.html").write_text(PAGE % json.dumps(str(web.BrowserGPU._esm)))
    return folder


@pytest.fixture(scope="module")
def browser():
    with chromium(WEBGPU, "--host-resolver-rules=MAP lab.example 127.0.0.1") as browser:
        yield browser


def answer(page, request):
    page.evaluate("(request) => ask(request)", request)
    page.wait_for_function("(id) => state.result.id === id", arg=request["id"])
    return page.evaluate("state.result")


def test_a_product_and_a_wrong_edit(browser, folder):
    page = browser.new_page()
    page.set_default_timeout(120_000)
    page.goto((folder / "page.html").as_uri())
    page.wait_for_function("() => window.state?.gpu.name")
    panel = web.BrowserGPU(gpu=page.evaluate("state.gpu"))
    panel.product(3, 128)
    first = answer(page, panel.request)
    assert first["ok"] and first["gflops"] > 0 and first["style"] in web.STYLES
    assert "every element exact" in page.inner_text("#el")

    text = catalog[1].text({}).replace("C[n*M + m] =", "C[n*M + m] = 1.0f +")
    wrong = {"even": asdict(web.job(1, 64, 64, 64, {"TS": 8}, text=text))}
    assert "C[row" in answer(page, {"id": 2, "label": "edit", "jobs": wrong})["verdict"]
    page.close()


def test_a_page_from_another_host_by_plain_http_says_so(browser, folder):
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=folder)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    page = browser.new_page()
    page.goto(f"http://lab.example:{server.server_port}/page.html")
    page.wait_for_function("() => window.state?.gpu.reason")
    assert page.evaluate("state.gpu.reason") == "insecure"
    assert "plain http from another host" in page.inner_text("#el")
    page.close()
    server.shutdown()

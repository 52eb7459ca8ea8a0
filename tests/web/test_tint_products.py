"""Products in Chromium: tint compiles, SwiftShader computes, and one page runs them all."""

from __future__ import annotations

import base64
import json
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
from conftest import FULL
from web.chromium import WEBGPU, chromium
from web.products import LADDER, same, settings, sizes, support

from gemmlab import web
from gemmlab.catalog import sources

pytestmark = pytest.mark.system

PAGE = """<!doctype html><script type="module">
const file = new Blob([%s], { type: "text/javascript" });
window.runner = await import(URL.createObjectURL(file));
window.gpu = await runner.openGPU();
window.run = async (shader, packed, values, groups) => {
  const kinds = { float32: Float32Array, int32: Int32Array, uint32: Uint32Array };
  const bytes = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0)).buffer;
  const arrays = Object.fromEntries(Object.entries(packed).map(
    ([name, [kind, text]]) => [name, new kinds[kind](bytes(text))]));
  const after = await runner.runOnce(gpu, shader, arrays, values, groups);
  return Object.fromEntries(Object.entries(after).map(([name, list]) => [name, [...list]]));
};
</script>"""


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    file = tmp_path_factory.mktemp("runner") / "page.html"
    runner = Path(web.__file__).parent / "runner.js"
    file.write_text(PAGE % json.dumps(runner.read_text(encoding="utf-8")))
    with chromium(WEBGPU) as browser:
        page = browser.new_page()
        page.goto(file.as_uri())
        page.wait_for_function("() => window.run && gpu.device")
        yield page


CASES = [
    (kernel, params, label)
    for kernel in LADDER
    for params in (settings(kernel, 6) if FULL else settings(kernel, 2)[1:])
    for label in (web.STYLES if FULL else ("even",))
]


@pytest.mark.parametrize("kernel, params, label", CASES, ids=str)
def test_a_product_is_exact_and_framed(page, kernel, params, label):
    job = web.job(kernel, *sizes(kernel, params), params, style=web.STYLES[label])
    result = page.evaluate("job => runner.product(gpu, job, { timed: false })", asdict(job))
    assert result.get("exact"), result


def test_support_kernels(page):
    for name, arrays, values, groups, wanted in support():
        shader = web.translate(sources.read(f"support/{name}.cl"), name)
        packed = {
            key: [str(array.dtype), base64.b64encode(array).decode()]
            for key, array in arrays.items()
        }
        got = page.evaluate("given => run(...given)", [asdict(shader), packed, values, groups])
        assert all(same(np.array(got[key]), want) for key, want in wanted.items()), name

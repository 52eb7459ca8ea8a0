"""The site in Chromium, from a folder and from a server, on the GPU that its CPU plays."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import shutil
import sys
from pathlib import Path

import pytest
from browser.lab import browser_path, opened
from conftest import lacking
from servers import served

from clscope import wgsl
from lessons.puzzles import PUZZLES

WEBGPU = "--enable-unsafe-webgpu"  # on Linux, Chromium offers pages no GPU without it
ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.system


@pytest.fixture(scope="module")
def build():
    sys.path.insert(0, str(ROOT / "site"))
    import build

    return build


@pytest.fixture(scope="module")
def site(build, tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    return folder, build.build(folder, False)


@pytest.fixture(scope="module")
def pyodide(build, tmp_path_factory):
    """npm's package of Pyodide: that in the folder GEMMLAB_PYODIDE, or downloaded."""
    if "GEMMLAB_PYODIDE" in os.environ:
        return Path(os.environ["GEMMLAB_PYODIDE"])
    return build.lite.fetch_pyodide(tmp_path_factory.mktemp("pyodide")) or lacking("no npm")


@pytest.fixture(scope="module")
def browser():
    if browser_path() is None:
        lacking("no Chromium")
    with opened(WEBGPU) as browser:
        yield browser


#: The page does not see that a CPU plays the GPU, so it looks for the quickest style.
AS_GPU = "Object.defineProperty(GPUAdapter.prototype, 'info', {get: () => ({vendor: 'a GPU'})})"


class Visit:
    """A page of the site, with the requests that it makes and the errors in it."""

    def __init__(self, browser, address: str, script: str = "", **options):
        self.page = browser.new_page(**options)
        self.page.add_init_script(script)
        self.page.set_default_timeout(120_000)
        self.requests: list[str] = []
        self.errors: list[str] = []
        self.page.on("request", lambda r: self.requests.append(r.url))
        self.page.on("pageerror", lambda e: self.errors.append(str(e)))
        self.page.goto(f"{address}index.html")
        opened = "() => /cpu|on|off/.test(document.querySelector('#gpu').className)"
        self.page.wait_for_function(opened)

    def press(self, where: str) -> str:
        """Press Run or Check; what the page then says."""
        self.page.click(f"{where} .run")
        self.page.wait_for_selector(f"{where} .run:enabled")
        return self.page.inner_text(f"{where} .words")

    def replace(self, where: str, old: str, new: str) -> None:
        """Edit the text in an editor, as typing does."""
        area = self.page.locator(f"{where} textarea")
        text = area.input_value()
        assert old in text
        area.fill(text.replace(old, new))

    def hosts(self) -> set[str]:
        return {url.split("/")[2] for url in self.requests if url.startswith("http")}


#: Right kernels with a barrier in line 4 that tint refuses.
UNSEEN = [
    "if (get_global_id(0) >= n) return;\n{ barrier(CLK_LOCAL_MEM_FENCE); }",
    "__local int m; if (get_local_id(0) == 0) m = n; barrier(CLK_LOCAL_MEM_FENCE);\n"
    "for (int t = 0; t < m; t++) { barrier(CLK_LOCAL_MEM_FENCE); }",
    "if (get_global_id(0)/8 < n)\n{ barrier(CLK_LOCAL_MEM_FENCE); }",
    "const int g = get_global_id(0); if (g - get_local_id(0) < n)\n{ barrier(1); }",
]


@pytest.mark.parametrize("body", UNSEEN)
def test_what_the_compiler_cannot_see_is_not_blamed_on_the_kernel(browser, body):
    text = (
        "__kernel __attribute__((reqd_work_group_size(8, 1, 1)))\n"
        f"void k(__global float* x, const int n) {{\n{body}\nx[0] = n; }}"
    )
    with served(ROOT / "clscope" / "wgsl") as address:
        page = browser.new_page()
        page.goto(address)
        message = page.evaluate(
            """async (shader) => {
                const { openGPU, build } = await import("/runner.js");
                return build(await openGPU(), shader).then(() => "", (error) => error.message);
            }""",
            dataclasses.asdict(wgsl.translate(text)),
        )
        page.close()
    assert message.startswith("line 4: ") and "compiler" in message


def test_the_first_page_is_small(site):
    assert sum(size for name, size in site[1].items() if name != "translator.js") < 300_000


def test_a_visitor_runs_the_kernel_from_a_folder_and_from_a_server(site, browser):
    with served(site[0]) as address:
        for start, script in ((address, AS_GPU), (f"{site[0].as_uri()}/", "")):
            visit = Visit(browser, start, script)
            name = "Your GPU: a GPU" if script else "its CPU plays one"
            assert name in visit.page.inner_text("#gpu")
            assert "elements exact" in visit.press("#try")
            assert "FLOPS" in visit.page.inner_text("#try .rate")
            assert visit.press("#puzzle").startswith("y[0] is 0; it should be")
            visit.page.click("text=Show a solution")
            assert visit.press("#puzzle") == "Solved."
            assert visit.hosts() <= {address.split("/")[2]} and not visit.errors
            visit.page.close()


@pytest.mark.parametrize(
    "flags, host, words",
    [
        ((), "127.0.0.1", "offers no GPU"),
        ((WEBGPU, "--host-resolver-rules=MAP * 127.0.0.1"), "lab.example", "by plain http"),
    ],
)
def test_without_a_gpu_the_page_says_why_and_shows_the_record(site, browser, flags, host, words):
    arguments = ["--no-sandbox", *flags]
    without = browser.browser_type.launch(executable_path="/usr/bin/chromium", args=arguments)
    with served(site[0]) as address:
        visit = Visit(without, address.replace("127.0.0.1", host))
        assert words in visit.page.inner_text("#gpu")
        assert "H200" in visit.press("#try")
        assert "TFLOPS" in visit.page.inner_text("#chart")
    without.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_page_is_accessible(site, browser, scheme):
    """axe finds nothing, with an error and a solved puzzle on the page; nothing is cut off."""
    try:
        from axe_playwright_python.sync_playwright import Axe
    except ImportError:
        lacking("no axe-playwright-python")
    visit = Visit(browser, f"{site[0].as_uri()}/", color_scheme=scheme)
    visit.press("#puzzle")
    for width in (1280, 390):
        visit.page.set_viewport_size({"width": width, "height": 900})
        found = Axe().run(visit.page).response["violations"]
        assert not found, [(v["id"], v["nodes"][0]["html"]) for v in found]
        assert visit.page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    visit.page.close()


#: What a visitor types: a puzzle's number, a wrong line with what the page says, and a right one.
SOLVED = [
    (1, "    y[i] = 3.0f * x[i];\n", "it should be", "    y[i] = x[i] + x[i];\n"),
    (2, "    if (i <= n) y[i] = x[i] + 1.0f;\n", "element 50",
     "    if (i < n) y[i] = x[i] + 1.0f;\n"),
    (3, "    const int at = m*M + n;\n", "element", "    const int at = m + n*M;\n"),
]  # fmt: skip


@pytest.mark.parametrize("where", ["server", "folder"])
def test_a_visitor_solves_three_puzzles_and_edits_the_kernel(
    build, browser, pyodide, where, tmp_path, monkeypatch
):
    """On a server with Pyodide next to the page; and in a folder, with another host as the CDN."""
    with contextlib.ExitStack() as end:
        if where == "server":
            build.build(tmp_path, True)
            shutil.copytree(pyodide, tmp_path / "pyodide")
            host = address = end.enter_context(served(tmp_path))
        else:
            host = end.enter_context(served(pyodide, cdn=True))
            monkeypatch.setattr(build.lite, "CDN", host)
            build.build(tmp_path, False)
            address = f"{tmp_path.as_uri()}/"
        host = host.split("/")[2]
        visit = Visit(browser, address)
        page = visit.page
        assert visit.hosts() == ({host} if where == "server" else set())
        # translations are the same in both: in a folder one is enough
        for number, wrong, words, right in SOLVED if where == "server" else SOLVED[:1]:
            page.click(f"#dots-{number - 1}")
            visit.replace("#puzzle", PUZZLES[number - 1].gap, wrong)
            assert host in page.inner_text("#puzzle .note") or number > 1
            assert words in visit.press("#puzzle")
            visit.replace("#puzzle", wrong, right)
            assert visit.press("#puzzle") == "Solved."
        assert visit.hosts() == {host}

        if where == "folder":
            return
        edits = {"A[k*M + mm]": "line 6: 'mm' is not declared", "A[k*M + m + 1]": "line 6: element"}
        for new, words in edits.items():
            visit.replace("#try", "A[k*M + m]", new)
            assert visit.press("#try").startswith(words)
            visit.replace("#try", new, "A[k*M + m]")
        visit.replace("#try", "16, 16", "8, 8")
        assert "16 × 16" in visit.press("#try") and "8 × 8" in page.inner_text("#try .words")
        visit.replace("#try", "8, 8", "16, 16")
        visit.replace("#try", "k++", "k += 0")
        assert page.locator("#try .words.older").count() == 1
        assert visit.press("#try") == "line 6: this loop did not end"
        assert page.locator("#try .words.older").count() == 0
        page.reload()  # what was written is still there, and can be put back
        assert "k += 0" in page.input_value("#try textarea")
        page.click("#try button:has-text('Reset')")
        assert "k++" in page.input_value("#try textarea")
        page.reload()
        assert "k++" in page.input_value("#try textarea")
        page.click("#puzzle button:has-text('Show a solution')")
        page.click("#puzzle button:has-text('Back to mine')")
        assert SOLVED[0][3].strip() in page.input_value("#puzzle textarea")
        assert not visit.errors

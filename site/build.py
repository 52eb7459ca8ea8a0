"""Build the site into site/dist: `make site`, or `python site/build.py [--pyodide FOLDER]`.

The first page runs kernels on the browser's GPU; `pages/` has the documentation and the chapters,
which Sphinx writes as conf.py says; `lite/` has the chapters live, in JupyterLite. The site is
static, and but for `lite/` works from a folder: scripts are plain files, data is in them. What a
kernel offers is translated beforehand; edited texts need the translator in the page, which runs on
Pyodide, as the chapters do. `pyodide/` has that: npm's package, or what `--pyodide` names. Without
npm there is no `lite/`, and the first page loads Pyodide from a CDN.
"""

from __future__ import annotations

import argparse
import base64
import gzip
import json
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import asdict
from itertools import product
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
sys.path[:0] = [str(ROOT), str(ROOT / "notebooks")]
import lite  # noqa: E402

from clscope import wgsl  # noqa: E402
from gemmlab.ladder import catalog  # noqa: E402
from gemmlab.measurement import rungs  # noqa: E402
from lessons import puzzles  # noqa: E402

#: The rungs that the page offers, with what their sliders offer. Powers of two: sizes are, too.
SLIDERS: dict[int, dict[str, tuple[int, ...]]] = {
    1: {"TS": (8, 16, 32)},
    2: {"TS": (8, 16, 32)},
    3: {"TS": (16, 32, 64), "WPT": (2, 4, 8, 16)},
    6: {"TSM": (32, 64, 128), "WPTM": (2, 4, 8), "WPTN": (2, 4, 8)},
    7: {"TSM": (32, 64, 128), "WPTM": (2, 4, 8), "WPTN": (2, 4, 8), "WIDTH": (2, 4)},
}
STORIES = {
    1: "One work-item computes one element of C, and reads a row of A and a column of B for it.",
    2: "A work-group loads a tile of A and B into local memory, once, for all its work-items.",
    3: "A work-item computes several elements: what it has in a register serves all of them.",
    6: "A block in both directions: 8 numbers of A meet 8 of B, and that makes 64 multiply-adds.",
    7: "The same, and the tiles come from memory as vectors of four.",
}
HERO = """\
__kernel __attribute__((reqd_work_group_size(16, 16, 1)))
void gemm(int M, int N, int K, __global float* A, __global float* B, __global float* C)
{
    int m = get_global_id(0), n = get_global_id(1);   // one work-item per element of C
    float sum = 0.0f;
    for (int k = 0; k < K; k++) sum += A[k*M + m] * B[n*K + k];
    C[n*M + m] = sum;
}"""


def translated(text: str, kernel: str | None, defines: dict[str, int]) -> dict:
    """A text in the styles that a page tries, and as it is watched."""
    styles = {**wgsl.STYLES, "watched": wgsl.Style(watched=True)}
    return {
        label: asdict(wgsl.translate(text, kernel, defines, style))
        for label, style in styles.items()
    }


def settings(kernel: int) -> list[dict[str, int]]:
    """All legal settings that the sliders reach."""
    spec, sliders = catalog[kernel], SLIDERS[kernel]
    found = [dict(zip(sliders, values, strict=True)) for values in product(*sliders.values())]
    if kernel > 3:
        found = [{**one, "TSN": one["TSM"]} for one in found]  # these fill both tiles with one loop
    full = [spec.complete(one) for one in found]
    return [one for one in full if not spec.problems(one)]


def rung(kernel: int) -> dict:
    spec = catalog[kernel]
    jobs = []
    for params in settings(kernel):
        text = spec.text(params)
        jobs.append(
            {
                "params": params,
                "tile": spec.tiles(params)[:2],
                "shaders": translated(text, "gemm", params),
            }
        )
    shown = {p.name: p for p in spec.params}
    return {
        "kernel": kernel,
        "name": spec.name,
        "story": STORIES[kernel],
        "text": spec.text(spec.complete({})),
        "transposed": spec.wants_transposed(spec.complete({})),
        "sliders": [
            {
                "name": name,
                "meaning": shown[name].meaning,
                "choices": choices,
                "default": shown[name].default,
            }
            for name, choices in SLIDERS[kernel].items()
        ],
        "jobs": jobs,
    }


def puzzle(words: dict[str, str], one: puzzles.Puzzle) -> dict:
    known = [
        {"text": words[name], "shaders": translated(words[name], None, {})}
        for name in ("text", "solution")
    ]
    return {**asdict(one), **words, "known": known}


def packed(value) -> str:
    """JSON, compressed, as text: pages in a folder may load scripts and nothing else."""
    data = json.dumps(value, separators=(",", ":")).encode()
    return base64.b64encode(gzip.compress(data, 9, mtime=0)).decode()


def translator() -> dict[str, str]:
    """The library that parses and translates: it needs no package, so that it runs in a page."""
    files = (ROOT / "clscope").rglob("*.py")
    return {path.relative_to(ROOT).as_posix(): path.read_text() for path in files}


def script(*names: Path) -> str:
    """Modules as one plain script: `import` of a file is forbidden to pages in a folder."""
    text = "\n".join(name.read_text() for name in names)
    text = re.sub(r"^export ", "", text, flags=re.MULTILINE)
    return f'"use strict";\n(() => {{\n{text}\n}})();\n'


def build(out: Path, has_pyodide: bool) -> dict[str, int]:
    """Write the first page, which loads Pyodide from the folder beside it, or from a CDN; return
    the bytes of each file.
    """
    out.mkdir(parents=True, exist_ok=True)
    data = {
        "hero": {"text": HERO, "shaders": translated(HERO, None, {})},
        "rungs": [rung(kernel) for kernel in SLIDERS],
        "h200": {k: rate for k, rate in rungs.rates("H200").items() if k in SLIDERS},
        "puzzles": list(map(puzzle, puzzles.written(), puzzles.PUZZLES)),
    }
    place = {"pyodide": lite.CDN, "local": "pyodide/" if has_pyodide else ""}
    for name in ("style.css", "favicon.svg"):
        shutil.copy(HERE / name, out / name)
    index = (HERE / "index.html").read_text(encoding="utf-8")
    if not has_pyodide:  # then there are no chapters that run either
        index = re.sub(r'<(\w+) class="live".*?</\1>\s*', "", index, flags=re.DOTALL)
    (out / "index.html").write_text(index, encoding="utf-8")
    (out / "app.js").write_text(script(ROOT / "clscope/wgsl/runner.js", HERE / "app.js"))
    (out / "data.js").write_text(
        f"globalThis.GEMMLAB_DATA = {json.dumps(packed(data))};\n"
        f"globalThis.GEMMLAB_PLACE = {json.dumps(place)};\n"
    )
    (out / "translator.js").write_text(f'globalThis.GEMMLAB_PYTHON = "{packed(translator())}";\n')
    return {path.name: path.stat().st_size for path in sorted(out.iterdir()) if path.is_file()}


def pages(out: Path, has_lite: bool = False) -> str:
    """Write README, docs, chapters and the API as pages, with links into JupyterLite if there is
    one; return Sphinx's warnings.
    """
    with tempfile.TemporaryDirectory() as cache:
        built = Path(cache) / "pages"  # MyST-NB also writes to the folder above
        command = [sys.executable, "-m", "sphinx", "-q", "-j", "auto", "-c", str(HERE), "-d", cache]
        command += ["-t", "lite"] * has_lite + [str(ROOT), str(built)]
        done = subprocess.run(command, stderr=subprocess.PIPE, text=True)
        if done.returncode:
            raise SystemExit(done.stderr)
        unneeded = shutil.ignore_patterns("_sources", ".buildinfo")
        shutil.rmtree(out, ignore_errors=True)
        shutil.copytree(built, out, ignore=unneeded)
        shutil.copy(HERE / "pages.html", out / "index.html")
        for book in (ROOT / "notebooks").glob("*.ipynb"):
            shutil.copy(book, out / "notebooks")
    return done.stderr


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path, default=HERE / "dist")
    parser.add_argument("--pyodide", type=Path, help="npm's package, or a distribution")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        pyodide = args.pyodide or lite.fetch_pyodide(Path(folder))
        if pyodide:
            lite.write_pyodide(args.out / "pyodide", pyodide)
            lite.build(args.out / "lite")
        else:
            print("Without npm, and without PYODIDE=FOLDER, the chapters are not built to run.")
    for name, size in build(args.out, pyodide is not None).items():
        print(f"{size / 1000:8.1f} kB  {name}")
    warnings = pages(args.out / "pages", pyodide is not None)
    print(warnings, f"{args.out / 'index.html'}", sep="")

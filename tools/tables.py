"""Fill the tables of README.md, notebooks/README.md and docs/ from the catalog, the chapters and
results/, and draw their pictures.

    python tools/tables.py [--check] [--pictures FOLDER]

A table stands between two comments, `<!-- ladder -->` and `<!-- /ladder -->`, and is replaced as a
whole. With --check nothing is written, and the exit code says whether anything would have changed.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import sys
from pathlib import Path

from gemmlab import catalog
from gemmlab.measurement import explained, records

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "notebooks"))


def chapters() -> str:
    """Each chapter with its question, from the first lines of its text."""
    rows = ["| | chapter | question |", "|---|---|---|"]
    for path in sorted((ROOT / "notebooks" / "text").glob("[0-9]*.md")):
        text = path.read_text(encoding="utf-8")
        title = re.search(r"^# \d+ ([^:\n]+)", text, re.M)
        question = re.search(r"\*\*The question(?: of this chapter)?: (.+?)\*\*", text, re.S)
        if not title or not question:
            raise SystemExit(
                f"{path.name} has no title, or no line with the question of the chapter"
            )
        words = " ".join(question[1].split())
        rows.append(
            f"| {path.stem[:2]} | [{title[1]}]({path.stem}.ipynb) | {words[0].upper()}{words[1:]} |"
        )
    return "\n".join(rows)


def main_line() -> str:
    """The kernels of the main line, from the slowest to the fastest, with cuBLAS among them."""
    from lessons.ladder import Table

    rows = ["| | kernel | the idea | TFLOPS | of cuBLAS |", "|---|---|---|---:|---:|"]
    for row in Table().rows:
        name = f"[{row.name}](kernels/{catalog[row.kernel].file})" if row.kernel else row.name
        number = row.kernel or ""
        rows.append(
            f"| {number} | {name} | {row.idea} | {row.gflops / 1000:.1f} | {row.share:.0%} |"
        )
    return "\n".join(rows)


def ladder() -> str:
    """Each kernel with its idea and its recorded rate on the H200, and the libraries beside it."""
    (rates,), yards = records.ladders(only=("H200",)).values(), records.yardsticks("H200")
    rows = ["| | kernel | idea | TFLOPS |", "|---|---|---|---:|"]
    for number, spec in catalog.items():
        idea = spec.idea.rstrip(".")
        tflops = f"{rates[number] / 1000:.1f}" if number in rates else ""
        shown = number if isinstance(number, int) else ""
        rows.append(f"| {shown} | [{spec.name}](../kernels/{spec.file}) | {idea} | {tflops} |")
    for name, rate in yards.items():
        rows.append(f"| | {name} | in the same run as warp tiling | {rate / 1000:.1f} |")
    return "\n".join(rows)


def beside_cublas() -> str:
    """How the recorded whole calls compare with cuBLAS SGEMM."""
    found = next(file for file in records.recorded() if file.get("side_by_side"))
    shares = {
        f"{r['m']} x {r['n']} x {r['k']}": statistics.median(r["auto"])
        / statistics.median(r["cublas"])
        for r in found["side_by_side"]
    }
    mean = statistics.geometric_mean(shares.values())
    rows = [
        f"| {found['title']}, {len(shares)} sizes | share of cuBLAS SGEMM's rate |",
        "|---|---:|",
    ]
    rows.append(f"| geometric mean | {mean:.0%} |")
    for words, size in (
        ("least", min(shares, key=shares.__getitem__)),
        ("most", max(shares, key=shares.__getitem__)),
    ):
        rows.append(f"| {words}: {size} | {shares[size]:.0%} |")
    return "\n".join(rows)


#: Parts of a set of calls: all shapes; those with at least 10^9 operations (on CPUs 10^8).
PARTS = "summary", "large"


def calls() -> str:
    """Whole calls of `matmul` and PyTorch's: over all shapes, and at the slowest one."""
    rows = []
    for name, alone in (
        ("nvidia_h200_calls", ""),
        ("nvidia_h200_device_time", ", time of the device alone"),
    ):
        found = json.loads((ROOT / "results" / f"{name}.json").read_text(encoding="utf-8"))
        for one in found["sets"]:
            cells = [
                f"{some['mean']:.2f} ({some['least']:.2f})"
                for some in (one[part]["matmul"] for part in PARTS)
            ]
            rows.append(f"| {one['shapes']}{alone} | {' | '.join(cells)} |")
    rows = [
        f"| {found['title']} | geometric mean (slowest shape) | large products |",
        "|---|---:|---:|",
        *rows,
    ]
    return "\n".join(rows)


def calls_on_cpus() -> str:
    """Whole calls of `matmul` on NumPy arrays and NumPy's own product, for each runtime."""
    found = json.loads((ROOT / "results" / "cpu_calls.json").read_text(encoding="utf-8"))
    rows = [
        f"| {found['title']} | geometric mean (slowest shape) | large products | spread |",
        "|---|---:|---:|---:|",
    ]
    for one in found["sets"]:
        every, large = (one[part]["matmul of NumPy arrays"] for part in PARTS)
        cells = [f"{some['mean']:.2f} ({some['least']:.2f})" for some in (every, large)]
        rows.append(
            f"| {one['title']}, {one['shapes']} | {' | '.join(cells)} | {every['spread']:.0%} |"
        )
    return "\n".join(rows)


#: The tables of each file, by the name in its comments.
TABLES = {
    "README.md": {"main line": main_line},
    "notebooks/README.md": {"chapters": chapters},
    "docs/speed.md": {
        "ladder": ladder,
        "calls": calls,
        "calls on CPUs": calls_on_cpus,
        "beside cublas": beside_cublas,
    },
    "docs/model.md": {
        "ceilings h200": lambda: explained.table(explained.ladder("H200")),
        "ceilings k40m": lambda: explained.table(explained.ladder("K40m")),
    },
}


def filled(text: str, file: str) -> str:
    """The text of a file with its tables replaced. Exits with a sentence if one has no place."""
    for name, table in TABLES[file].items():
        matches = [*re.finditer(rf"(<!-- {name} -->\n).*?(<!-- /{name} -->)", text, re.S)]
        if len(matches) != 1:
            raise SystemExit(f"{file} needs one place between <!-- {name} --> and <!-- /{name} -->")
        (match,) = matches
        text = f"{text[: match.end(1)]}\n{table()}\n\n{text[match.start(2) :]}"
    return text


def pictures(folder: Path) -> None:
    """The recorded ladder, and the precisions beside cuBLAS."""
    from gemmlab.draw import plot
    from lessons import comparison

    ordinary = [kernel for kernel in catalog if not catalog[kernel].tensor]
    (folder / "ladder.png").write_bytes(
        plot.ladder(records.ladders(ordinary), records.yardsticks("H200")).png()
    )
    found = next(file for file in records.recorded() if "errors" in file)
    picture = comparison.precisions(found["side_by_side"], found["errors"], found["title"])
    (folder / "precisions.png").write_bytes(picture.png())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--check", action="store_true", help="write nothing; fail if something would change"
    )
    parser.add_argument(
        "--pictures",
        type=Path,
        metavar="FOLDER",
        help="draw the pictures into this folder",
    )
    given = parser.parse_args()
    if given.pictures:
        pictures(given.pictures)
    changed = False
    for file in TABLES:
        path = ROOT / file
        old = path.read_text(encoding="utf-8")
        new = filled(old, file)
        changed |= new != old
        if not given.check:
            path.write_text(new, encoding="utf-8")
    return int(given.check and changed)


if __name__ == "__main__":
    sys.exit(main())

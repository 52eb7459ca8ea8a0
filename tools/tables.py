"""Fill the tables of README.md, notebooks/README.md and docs/ from the catalog, the chapters and
results/, and draw their pictures.

    python tools/tables.py [--check] [--pictures FOLDER]

A table stands between two comments, `<!-- ladder -->` and `<!-- /ladder -->`, and is replaced as a
whole. With --check nothing is written, and the exit code says whether anything would have changed.
"""

from __future__ import annotations

import re
import statistics
import sys
from collections.abc import Iterable
from pathlib import Path

import common

from gemmlab import catalog
from gemmlab.measurement import explained, records


def markdown(heads: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    """A table; columns whose heads begin with ">" are aligned right."""
    heads = [*heads]
    ruler = "".join("---:|" if head.startswith(">") else "---|" for head in heads)
    shown = [[head.removeprefix(">") for head in heads], *rows]
    lines = [f"| {' | '.join(map(str, cells))} |".replace("|  |", "| |") for cells in shown]
    return "\n".join([lines[0], f"|{ruler}", *lines[1:]])


def chapters() -> str:
    """Each chapter with its question, from the first lines of its text."""
    rows = []
    for path in sorted((common.ROOT / "notebooks" / "text").glob("[0-9]*.md")):
        text = path.read_text(encoding="utf-8")
        title = re.search(r"^# \d+ ([^:\n]+)", text, re.M)
        question = re.search(r"\*\*The question(?: of this chapter)?: (.+?)\*\*", text, re.S)
        if not title or not question:
            raise SystemExit(f"{path.name} has no title, or no line with the chapter's question")
        words = " ".join(question[1].split())
        link = f"[{title[1]}]({path.stem}.ipynb)"
        rows.append([path.stem[:2], link, words[0].upper() + words[1:]])
    return markdown(["", "chapter", "question"], rows)


def main_line() -> str:
    """The kernels of the main line, from the slowest to the fastest, with cuBLAS among them."""
    from lessons.ladder import Table

    rows = []
    for row in Table().rows:
        name = f"[{row.name}](kernels/{catalog[row.kernel].file})" if row.kernel else row.name
        rate = f"{row.gflops / 1000:.1f}"
        rows.append([row.kernel or "", name, row.idea, rate, f"{row.share:.0%}"])
    return markdown(["", "kernel", "the idea", ">TFLOPS", ">of cuBLAS"], rows)


def ladder() -> str:
    """Each kernel with its idea and its recorded rate on the H200, and the libraries beside it."""
    (rates,), yards = records.ladders(only=("H200",)).values(), records.yardsticks("H200")
    rows = []
    for number, spec in catalog.items():
        tflops = f"{rates[number] / 1000:.1f}" if number in rates else ""
        shown = number if isinstance(number, int) else ""
        link = f"[{spec.name}](../kernels/{spec.file})"
        rows.append([shown, link, spec.idea.rstrip("."), tflops])
    for name, rate in yards.items():
        rows.append(["", name, "in the same run as warp tiling", f"{rate / 1000:.1f}"])
    return markdown(["", "kernel", "idea", ">TFLOPS"], rows)


def beside_cublas() -> str:
    """How the recorded whole calls compare with cuBLAS SGEMM."""
    record = next(file for file in records.recorded() if file.get("side_by_side"))
    shares = {
        f"{r['m']} x {r['n']} x {r['k']}": statistics.median(r["auto"])
        / statistics.median(r["cublas"])
        for r in record["side_by_side"]
    }
    least, most = (best(shares, key=shares.__getitem__) for best in (min, max))
    heads = [f"{record['title']}, {len(shares)} sizes", ">share of cuBLAS SGEMM's rate"]
    return markdown(
        heads,
        [
            ["geometric mean", f"{statistics.geometric_mean(shares.values()):.0%}"],
            [f"least: {least}", f"{shares[least]:.0%}"],
            [f"most: {most}", f"{shares[most]:.0%}"],
        ],
    )


def ratios(one: dict) -> list[str]:
    """The mean ratio, and the least one, of all shapes, and of those with many operations."""
    parts = (next(iter(one[part].values())) for part in ("summary", "large"))
    return [f"{some['mean']:.2f} ({some['least']:.2f})" for some in parts]


def calls() -> str:
    """Whole calls of `matmul` and PyTorch's: over all shapes, and at the slowest one."""
    record, device_time = map(records.read, ("nvidia_h200_calls", "nvidia_h200_device_time"))
    rows = [[one["shapes"], *ratios(one)] for one in record["sets"]]
    alone = ", time of the device alone"
    rows += [[one["shapes"] + alone, *ratios(one)] for one in device_time["sets"]]
    return markdown([record["title"], ">geometric mean (slowest shape)", ">large products"], rows)


def calls_on_cpus() -> str:
    """Whole calls of `matmul` on NumPy arrays and NumPy's own product, for each runtime."""
    record, rows = records.read("cpu_calls"), []
    for one in record["sets"]:
        (ours,) = one["summary"].values()
        rows.append([f"{one['title']}, {one['shapes']}", *ratios(one), f"{ours['spread']:.0%}"])
    heads = [record["title"], ">geometric mean (slowest shape)", ">large products", ">spread"]
    return markdown(heads, rows)


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
    from lessons import charts

    ordinary = [kernel for kernel in catalog if not catalog[kernel].tensor]
    ladder = charts.ladder(records.ladders(ordinary), records.yardsticks("H200"))
    (folder / "ladder.png").write_bytes(ladder.png())
    record = next(file for file in records.recorded() if "errors" in file)
    picture = charts.precisions(record["side_by_side"], record["errors"], record["title"])
    (folder / "precisions.png").write_bytes(picture.png())


def main() -> int:
    parser = common.parser(__doc__)
    words = "write nothing; fail if something would change"
    parser.add_argument("--check", action="store_true", help=words)
    words = "draw the pictures into this folder"
    parser.add_argument("--pictures", type=Path, metavar="FOLDER", help=words)
    given = parser.parse_args()
    if given.pictures:
        pictures(given.pictures)
    changed = False
    for file in TABLES:
        path = common.ROOT / file
        old = path.read_text(encoding="utf-8")
        new = filled(old, file)
        changed |= new != old
        if not given.check:
            path.write_text(new, encoding="utf-8")
    return int(given.check and changed)


if __name__ == "__main__":
    sys.exit(main())

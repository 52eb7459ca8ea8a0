"""Fill the tables and facts of README.md, notebooks/README.md and docs/ from the catalog, the
chapters and results/, and draw their pictures.

    python tools/tables.py [--check] [--pictures FOLDER]

A table stands between two comments, `<!-- ladder -->` and `<!-- /ladder -->`, and is replaced as a
whole. So is a fact between `<!-- fact rate 6 -->` and `<!-- / -->`; notebooks/lessons/facts.py
lists them. With --check nothing is written, and the exit code says whether anything would have
changed.
"""

from __future__ import annotations

import re
import statistics
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import common
import compare

from gemmlab import catalog
from gemmlab.measurement import records, rungs
from gemmlab.measurement.records import Row

#: The site's JupyterLite, before the name of a notebook.
TAB = "https://OWNER.github.io/gemmlab/lite/lab/index.html?path=notebooks/"


def markdown(heads: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    """A table; columns whose heads begin with ">" are aligned right."""
    heads = [*heads]
    ruler = "".join("---:|" if head.startswith(">") else "---|" for head in heads)
    shown = [[head.removeprefix(">") for head in heads], *rows]
    lines = [f"| {' | '.join(map(str, cells))} |".replace("|  |", "| |") for cells in shown]
    return "\n".join([lines[0], f"|{ruler}", *lines[1:]])


class Chapter(NamedTuple):
    """What the first lines of a chapter's text say of it."""

    file: str
    title: str
    question: str
    minutes: int
    after: list[str]  # numbers of the chapters that it builds on
    goal: str


def written() -> list[Chapter]:
    """The chapters, from the first lines of their texts."""
    found = []
    for path in sorted((common.ROOT / "notebooks" / "text").glob("[0-9]*.md")):
        text = path.read_text(encoding="utf-8")
        title = re.search(r"^# \d+ ([^:\n]+)", text, re.M)
        question = re.search(r"\*\*The question(?: of this chapter)?: (.+?)\*\*", text, re.S)
        plan = r"^\*(\d+) minutes(?:, after (.+?))?\. Afterwards you can (.+)\.\*$"
        head = re.search(plan, text, re.M)
        if not title or not question or not head:
            raise SystemExit(f"{path.name} lacks its title, its question, or its minutes and goal")
        words = " ".join(question[1].split())
        after = re.findall(r"\d\d", head[2] or "")
        question_ = words[0].upper() + words[1:]
        found.append(Chapter(path.stem, title[1], question_, int(head[1]), after, head[3]))
    return found


def chapters() -> str:
    """Each chapter with its question, its minutes, and what it teaches to do."""
    rows = [
        [
            c.file[:2],
            f"[{c.title}]({c.file}.ipynb) ([in a tab]({TAB}{c.file}.ipynb))",
            c.question,
            c.minutes,
            c.goal,
        ]
        for c in written()
    ]
    return markdown(["", "chapter", "question", ">minutes", "afterwards you can"], rows)


def order() -> str:
    """Which chapter builds on which, as a graph."""
    lines = [f'    {c.file[:2]}["{c.file[:2]} {c.title}"]' for c in written()]
    lines += [f"    {before} --> {c.file[:2]}" for c in written() for before in c.after]
    return "\n".join(["```mermaid", "flowchart LR", *lines, "```"])


def main_line() -> str:
    """The kernels of the main line, from the slowest to the fastest, with cuBLAS among them."""
    from lessons import facts
    from lessons.ladder import Table

    rows = []
    for row in Table().rows:
        number = "" if row.kernel is None else row.kernel
        name = (
            f"[{row.name}](kernels/{catalog[row.kernel or 1].file})"
            if row.kernel is not None
            else row.name
        )
        rate = facts.two(row.gflops / 1000)
        rows.append([number, name, row.idea, rate, facts.percent(row.share)])
    return markdown(["", "kernel", "the idea", ">TFLOPS", ">of cuBLAS"], rows)


def ladder() -> str:
    """Each kernel with its idea and its recorded rate on the H200, and the libraries beside it."""
    from lessons import charts, facts, waterfall

    (best,) = charts.ladders(only=("H200",)).values()
    rates = {**best, **{number: rung.gflops for number, rung in waterfall.rungs().items()}}
    rows = []
    for number, spec in catalog.items():
        link = f"[{spec.name}](../kernels/{spec.file})"
        shown = number if isinstance(number, int) else ""
        tflops = facts.two(rates[number] / 1000) if number in rates else ""
        rows.append([shown, link, spec.idea.rstrip("."), tflops])
    rows.append(["", facts.LIBRARY, "NVIDIA's library", facts.fact("tflops cuBLAS")])
    clblast = rungs.yardsticks("H200")["CLBlast SGEMM"]
    rows.append(["", "CLBlast SGEMM", "a library in OpenCL", facts.two(clblast / 1000)])
    return markdown(["", "kernel", "idea", ">TFLOPS"], rows)


def beside_cublas() -> str:
    """How the recorded whole calls compare with cuBLAS SGEMM."""
    from lessons import charts

    shares = charts.beside_cublas()
    least, most = (best(shares, key=shares.__getitem__) for best in (min, max))
    heads = [f"NVIDIA H200, {len(shares)} sizes", ">share of cuBLAS SGEMM's rate"]
    return markdown(
        heads,
        [
            ["geometric mean", f"{statistics.geometric_mean(shares.values()):.0%}"],
            [f"least: {least}", f"{shares[least]:.0%}"],
            [f"most: {most}", f"{shares[most]:.0%}"],
        ],
    )


def sets_of(record: str) -> list[list[Row]]:
    """The whole calls of a record, by title and set of shapes."""
    sets: dict[tuple[str, str], list[Row]] = {}
    for row in records.rows(record=record, metric="s"):
        sets.setdefault((row.title, row.series), []).append(row)
    return [*sets.values()]


def ratios(rows: list[Row]) -> list[str]:
    """The mean ratio, and the least one, of all shapes, and of those with many operations."""
    pairs = compare.pairs(rows)
    parts = compare.summary(pairs), compare.summary(compare.large(pairs, rows[0].head["kind"]))
    return [f"{part['mean']:.2f} ({part['least']:.2f})" for part in parts]


def calls() -> str:
    """Whole calls of `matmul` and PyTorch's: over all shapes, and at the slowest one."""
    rows = [
        [rows[0].series + note, *ratios(rows)]
        for record, note in (("calls", ""), ("device_time", ", time of the device alone"))
        for rows in sets_of(f"nvidia_h200_{record}")
    ]
    return markdown(["NVIDIA H200", ">geometric mean (slowest shape)", ">large products"], rows)


def calls_on_cpus() -> str:
    """Whole calls of `matmul` on NumPy arrays and NumPy's own product, for each runtime."""
    sets = sets_of("cpu_calls")
    rows = []
    for one in sets:
        spread = compare.summary(compare.pairs(one))["spread"]
        rows.append([f"{one[0].title}, {one[0].series}", *ratios(one), f"{spread:.0%}"])
    machine = sets[0][0].head["machine"]
    heads = [machine, ">geometric mean (slowest shape)", ">large products", ">spread"]
    return markdown(heads, rows)


#: The tables of each file, by the name in its comments.
TABLES = {
    "README.md": {"main line": main_line},
    "notebooks/README.md": {"chapters": chapters, "order": order},
    "docs/speed.md": {
        "ladder": ladder,
        "calls": calls,
        "calls on CPUs": calls_on_cpus,
        "beside cublas": beside_cublas,
    },
    "docs/model.md": {
        "ceilings h200": lambda: rungs.table(rungs.rungs("H200")),
        "ceilings k40m": lambda: rungs.table(rungs.rungs("K40m")),
    },
}


def fill(text: str, file: str) -> str:
    """The text of a file with its tables and facts replaced. Exits with a sentence if a table has
    no place.
    """
    from lessons import facts

    text = facts.fill(text)
    for name, table in TABLES.get(file, {}).items():
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
    ladder = charts.ladder(charts.ladders(ordinary), rungs.yardsticks("H200"))
    (folder / "ladder.png").write_bytes(ladder.png())
    (folder / "precisions.png").write_bytes(charts.precisions().png())


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
    pages = (common.ROOT / "docs").glob("*.md")
    for file in sorted({*TABLES, *(path.relative_to(common.ROOT).as_posix() for path in pages)}):
        path = common.ROOT / file
        old = path.read_text(encoding="utf-8")
        new = fill(old, file)
        changed |= new != old
        if not given.check:
            path.write_text(new, encoding="utf-8")
    return int(given.check and changed)


if __name__ == "__main__":
    sys.exit(main())

"""Fill the README's tables and pictures from the catalog, the chapters' texts, and the records in ``results/``.

python docs/tables.py [--check] [--pictures FOLDER]

A table stands between two comments, `<!-- ladder -->` and `<!-- /ladder -->`; what is between them is written anew.
With --check nothing is written, and the exit code says whether anything would have changed.
"""

from __future__ import annotations

import argparse
import re
import statistics
import sys
from pathlib import Path

from gemmlab import catalog
from gemmlab.bench import records

ROOT = Path(__file__).resolve().parents[1]
README = ROOT / "README.md"


def chapters() -> str:
    """Each chapter with its question, from the first lines of its text."""
    rows = ["| | chapter | question |", "|---|---|---|"]
    for path in sorted((ROOT / "notebooks" / "text").glob("[0-9]*.md")):
        text = path.read_text(encoding="utf-8")
        title = re.search(r"^# \d+ ([^:\n]+)", text, re.M)
        question = re.search(r"\*\*The question of this chapter: (.+?)\*\*", text, re.S)
        if not title or not question:
            raise SystemExit(f"{path.name} has no title, or no line with the question of the chapter")
        words = " ".join(question[1].split())
        rows.append(f"| {path.stem[:2]} | [{title[1]}](notebooks/{path.stem}.ipynb) | {words[0].upper()}{words[1:]} |")
    return "\n".join(rows)


def ladder() -> str:
    """Each kernel with its idea and its recorded rate on the H200, and the libraries beside it."""
    (rates,), yards = records.ladders(only=("H200",)).values(), records.yardsticks("H200")
    rows = ["| | kernel | idea | TFLOPS |", "|---|---|---|---:|"]
    for number, spec in catalog.items():
        idea = (spec.__doc__ or "").strip().splitlines()[0].rstrip(".")
        rate = f"{rates[number] / 1000:.1f}" if number in rates else ""
        rows.append(f"| {number} | [{spec.name}](kernels/{spec.file}) | {idea} | {rate} |")
    for name, rate in yards.items():
        rows.append(f"| | {name} | in the same run as kernel 15 | {rate / 1000:.1f} |")
    return "\n".join(rows)


def beside_cublas() -> str:
    """How the recorded whole calls compare with cuBLAS SGEMM."""
    found = next(file for file in records.recorded() if file.get("side_by_side"))
    shares = {
        f"{r['m']} x {r['n']} x {r['k']}": statistics.median(r["auto"]) / statistics.median(r["cublas"])
        for r in found["side_by_side"]
    }
    mean = statistics.geometric_mean(shares.values())
    rows = [f"| {found['title']}, {len(shares)} sizes | share of cuBLAS SGEMM's rate |", "|---|---:|"]
    rows.append(f"| geometric mean | {mean:.0%} |")
    for words, size in (("least", min(shares, key=shares.__getitem__)), ("most", max(shares, key=shares.__getitem__))):
        rows.append(f"| {words}: {size} | {shares[size]:.0%} |")
    return "\n".join(rows)


TABLES = {"chapters": chapters, "ladder": ladder, "beside cublas": beside_cublas}


def filled(text: str) -> str:
    """The text with every table written anew. Exits with a sentence if a place for one is missing."""
    for name, table in TABLES.items():
        place = re.compile(rf"(<!-- {name} -->\n).*?(<!-- /{name} -->)", re.S)
        if len(place.findall(text)) != 1:
            raise SystemExit(f"{README.name} needs one place between <!-- {name} --> and <!-- /{name} -->")
        content = table()
        text = place.sub(lambda match, content=content: f"{match[1]}\n{content}\n\n{match[2]}", text)
    return text


def pictures(folder: Path) -> None:
    """The recorded ladder, and the precisions beside cuBLAS."""
    from gemmlab.draw import plot, tensors

    (folder / "ladder.png").write_bytes(plot.ladder(records.ladders(), records.yardsticks("H200")).png())
    found = next(file for file in records.recorded() if "errors" in file)
    picture = tensors.rates(found["side_by_side"], found["errors"], found["title"])
    (folder / "precisions.png").write_bytes(picture.png())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; fail if something would change")
    parser.add_argument("--pictures", type=Path, metavar="FOLDER", help="draw the README's pictures into this folder")
    given = parser.parse_args()
    if given.pictures:
        pictures(given.pictures)
    old = README.read_text(encoding="utf-8")
    new = filled(old)
    if given.check:
        return int(new != old)
    README.write_text(new, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

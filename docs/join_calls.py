"""Join records of `python -m gemmlab compare --json` into one in ``results/``, which the README's tables show.

    python -m gemmlab compare --numpy --random 40 --seed 1 --title "PoCL 3.0" --json random.json
    python docs/join_calls.py results/cpu_calls.json "a processor" "40 random shapes, seed 1=random.json" ...

Each record becomes a set with the shapes that stand before the equals sign and the title that `--title` gave. Seconds
are rounded to four digits, and what all sets share (device, versions) is that of the first.
"""

import json
import sys
from pathlib import Path

from gemmlab.bench import records


def rounded(call: dict) -> dict:
    """A call with its seconds in four digits, a tenth of a thousandth of what differs from round to round."""
    return {**call, "seconds": {way: [float(f"{s:.4g}") for s in found] for way, found in call["seconds"].items()}}


def main(out: str, title: str, *parts: str) -> None:
    sets = []
    for part in parts:
        shapes, _, file = part.partition("=")
        sets.append({"shapes": shapes, **json.loads(Path(file).read_text(encoding="utf-8"))})
    first = sets[0]
    note = (
        "whole calls by the clock on the wall, beside another library's product of the same operands, by turns; "
        "a ratio is its seconds over ours"
    )
    shared = {name: first[name] for name in ("device", "date", "versions")}
    kept = ("title", "shapes", "command", "device", "summary", "large")
    found = [{**{name: one[name] for name in kept}, "calls": list(map(rounded, one["calls"]))} for one in sets]
    records.write(out, {"title": title, "command": "python docs/join_calls.py", **shared, "note": note, "sets": found})


if __name__ == "__main__":
    main(*sys.argv[1:])

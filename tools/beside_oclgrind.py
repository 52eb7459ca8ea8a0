"""Compare clscope with Oclgrind on the kernels of tests/microscope/corpus; print a table for the
README of clscope, and which cases differ.

    python tools/beside_oclgrind.py            # needs oclgrind-kernel; some minutes

A mistake counts as found if anything is reported, and as located if the first report names one of
the lines that the corpus lists for it. Both programs have the same lines and the same inputs.
"""

from __future__ import annotations

import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
from microscope.corpus import MISTAKES, RIGHT, Case

import clscope

SECONDS = 60  # after which a program is stopped
ROUNDS = 3  # each kernel's time is the median of so many runs


class Report(NamedTuple):
    """What a program says of a kernel: whether anything, and the lines of the first message."""

    accused: bool
    lines: frozenset[int]
    seconds: float


def in_process(case: Case) -> Report:
    start = time.process_time()
    run = case.run()
    seconds = time.process_time() - start
    lines = frozenset(finding.line for finding in run.findings[:1])
    return Report(not run.ok, lines, seconds)


def command(case: Case) -> Report:
    """clscope in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "kernel.cl"
        path.write_text(case.text)
        sizes = [f"--global={','.join(map(str, case.launch))}",
                 f"--local={','.join(map(str, case.group))}"]  # fmt: skip
        values = [f"--arg={name}={value}" for name, value in case.values.items()]
        output, seconds = finished([sys.executable, "-m", "clscope", str(path), *sizes, *values])
    first = re.search(r"^\S+?:(\d+):\d+: (?!note: )", output, re.M)
    return Report(bool(first), frozenset({int(first[1])} if first else ()), seconds)


def oclgrind(case: Case) -> Report:
    (kernel,) = (f for f in clscope.parse(case.text).functions if f.kernel)
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "kernel.cl").write_text(case.text)
        sizes = [" ".join(map(str, (*size, 1, 1)[:3])) for size in (case.launch, case.group)]
        values = [
            stated(p.type, value) for p, value in zip(kernel.params, case.arguments, strict=True)
        ]
        (Path(folder) / "kernel.sim").write_text(
            "\n".join(["kernel.cl", kernel.name, *sizes, "", *values, ""])
        )
        options = ["--data-races", "--uninitialized", "--max-errors", "3"]
        output, seconds = finished(["oclgrind-kernel", *options, "kernel.sim"], folder)
    first = output.strip().split("\n\n\n")[0]
    lines = frozenset(int(number) for number in re.findall(r"At line (\d+)", first))
    return Report(bool(output.strip()), lines, seconds)


def stated(of, value) -> str:
    """An argument as a file of oclgrind-kernel says it."""
    if isinstance(value, clscope.Empty):
        return f"<size={value.size * value.dtype.itemsize} {of.to} noinit>"
    if isinstance(value, np.ndarray):
        return f"<size={value.nbytes} {of.to}>\n{' '.join(map(str, value.tolist()))}"
    return f"<size=4 {of}>\n{value}"


def finished(arguments: list[str], folder: str | None = None) -> tuple[str, float]:
    """What a command prints, and its processor time; nothing if it takes too long."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    try:
        done = subprocess.run(
            arguments, cwd=folder, capture_output=True, text=True, timeout=SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        return "", SECONDS
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return done.stdout + done.stderr.replace("nothing is wrong\n", ""), seconds


def reports(program: Callable[[Case], Report], cases: list[Case]) -> list[Report]:
    """The reports on cases, each with the median of its times."""
    every = []
    for case in cases:
        rounds = [program(case)]
        while len(rounds) < ROUNDS and rounds[0].seconds < 1:
            rounds.append(program(case))
        every.append(rounds[0]._replace(seconds=statistics.median(r.seconds for r in rounds)))
    return every


def main() -> None:
    programs = {
        "clscope, in one process": in_process,
        "clscope, a process each": command,
        "Oclgrind, a process each": oclgrind,
    }
    on_mistakes = {name: reports(program, MISTAKES) for name, program in programs.items()}
    on_right = {name: reports(program, RIGHT) for name, program in programs.items()}
    print(f"| | {' | '.join(programs)} |", "|---" * (len(programs) + 1) + "|", sep="\n")

    def row(title: str, cell: Callable[[str], object]) -> None:
        print(f"| {title} |", " | ".join(str(cell(name)) for name in programs), "|")

    def located(report: Report, case: Case) -> bool:
        return bool(report.lines & case.lines)

    row(f"{len(MISTAKES)} mistakes: found", lambda name: sum(r.accused for r in on_mistakes[name]))
    row("the first report names the right line",
        lambda name: sum(map(located, on_mistakes[name], MISTAKES)))  # fmt: skip
    copies = [number for number, case in enumerate(MISTAKES) if "async_work_group" in case.text]
    row(f"of the {len(copies)} in asynchronous copies",
        lambda name: sum(located(on_mistakes[name][n], MISTAKES[n]) for n in copies))  # fmt: skip
    row(f"{len(RIGHT)} right kernels: accused", lambda name: sum(r.accused for r in on_right[name]))

    def milliseconds(name: str) -> str:
        return f"{1e3 * statistics.median(r.seconds for r in on_right[name]):.3g} ms"

    row("median processor time per right kernel", milliseconds)
    for name in programs:
        located_all = zip(MISTAKES, on_mistakes[name], strict=True)
        missed = [case.name for case, report in located_all if not located(report, case)]
        accused = [c.name for c, r in zip(RIGHT, on_right[name], strict=True) if r.accused]
        print(f"\n{name}\n  not located: {'; '.join(missed) or 'none'}")
        print(f"  accused: {'; '.join(accused) or 'none'}")


if __name__ == "__main__":
    main()

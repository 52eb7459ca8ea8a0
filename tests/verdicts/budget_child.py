"""Looks at kernels, one after the other, and prints what each look cost: a line of JSON for each.

It reads a JSON list of [kernel, [m, n, k], params, source] and the limits of seconds and bytes from
standard input. A look that goes far beyond its limits ends the process after its line.
"""

import json
import os
import resource
import sys
import threading
import time
from pathlib import Path

from gemmlab.sandbox.look import Case, look

STATUS = Path("/proc/self/status")


def see(kernel, sizes, params, source):
    """The look that is measured."""
    return look(Case.of(kernel, *sizes, params, source))


def peak() -> int:
    """The most memory that this process has had, in bytes.

    On Linux `ru_maxrss` begins with that of the process that started this one.
    """
    if STATUS.exists():
        lines = STATUS.read_text().splitlines()
        return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # in bytes, as on macOS


def report(start: float, before: int, text: str) -> None:
    cost = {"seconds": time.process_time() - start, "bytes": peak() - before, "text": text}
    print(json.dumps(cost), flush=True)


def watch(started: list[float], before: int, seconds: float, most: int) -> None:
    """End the process when a look has taken more than this."""
    while True:
        time.sleep(0.1)
        if time.process_time() - started[0] > seconds or peak() - before > most:
            report(started[0], before, "ended")
            os._exit(1)


def main() -> None:
    mutants, seconds, most = json.load(sys.stdin)
    see(1, (8, 8, 8), {"TS": 8}, None)  # imports what a look needs
    before, started = peak(), [time.process_time()]
    threading.Thread(target=watch, args=(started, before, seconds, most), daemon=True).start()
    for mutant in mutants:
        started[0] = time.process_time()
        seen = see(*mutant)
        report(started[0], before, str(seen or ""))


main()

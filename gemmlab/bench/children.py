"""Child processes that share work, such as compiling for a GPU, whose compiler runs on one core."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context


class Children(ProcessPoolExecutor):
    """Processes that know the package, and nothing of the program that started them.

    A new process of `multiprocessing` runs the user's program again, up to ``if __name__ == "__main__"``. Where a
    script has no such line, it would come to this point again and fail. What is submitted here must therefore be a
    function of an importable module, not of the program itself.

    Args:
        number: of processes; as many as there are processors by default.
    """

    def __init__(self, number: int | None = None):
        super().__init__(number, mp_context=get_context("spawn"))

    def submit(self, *args, **options) -> Future:  # processes are started as they are needed
        with _without_program():
            return super().submit(*args, **options)


_hiding = threading.Lock()


@contextmanager
def _without_program() -> Iterator[None]:
    """Meanwhile `multiprocessing` finds no file or module to run again in a child."""
    names, program = ("__file__", "__spec__"), vars(sys.modules["__main__"])
    with _hiding:
        known = {name: program[name] for name in names if name in program}
        try:
            program.pop("__file__", None)
            program["__spec__"] = None
            yield
        finally:
            program.update(known)

"""Run a kernel from the command line, and print what is wrong with it, with line and column."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import TextError, __version__, parse, report, to_wgsl
from .parser import kernel_of
from .tree import Function, Variable
from .types import SCALARS, Pointer, Vector

if TYPE_CHECKING:
    from .api import Run

#: Exit statuses.
CLEAN, FINDINGS, REFUSED = 0, 1, 2

EPILOG = """\
arguments of the kernel:
  --arg n=256                a number
  --arg x=float:256          an array of 256 floats: 0, 1, 2 ...
  --arg x=float:256:0.5      256 floats, all 0.5
  --arg x=float:256:empty    256 floats without a value: to read one before a store is a finding
  --arg x=@input.npy         an array that NumPy has saved
  --arg t=float:16           for a pointer to local memory: 16 floats without a value
  --arg v=1,2,3,4            a vector
  --arg s=@struct.npy        a structure: an array of its bytes

exit status: 0 if nothing is wrong; 1 for findings, or if a limit ended the run; 2 if the command
is wrong, or the text is not a kernel that clscope can run

example: python -m clscope sum.cl --global 256 --local 16 --arg x=float:256 --arg y=float:16:empty
"""


class CommandError(ValueError):
    """A command that cannot be carried out."""


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command's options."""
    parser = argparse.ArgumentParser(
        prog="python -m clscope",
        description="Run a kernel of OpenCL C in Python, and report races, missing barriers, "
        "reads before stores, accesses out of bounds, and other mistakes.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("file", type=Path, help="the kernel's text")
    add("--kernel", metavar="NAME", help="the __kernel to run (default: the first)")
    add("--global", dest="launch", type=_sizes, metavar="X[,Y[,Z]]", help="work-items")
    add("--local", type=_sizes, metavar="X[,Y[,Z]]",
        help="work-items of a work-group (default: those of reqd_work_group_size)")  # fmt: skip
    add("--arg", action="append", default=[], type=_pair, metavar="NAME=VALUE", help="see below")
    add("--define", "-D", action="append", default=[], type=_macro, metavar="NAME[=VALUE]",
        help="a macro")  # fmt: skip
    add("--order", choices=("lockstep", "warps"), default="lockstep",
        help="run all work-items in step (default), or warps of 32 in a random order")  # fmt: skip
    add("--seed", type=int, default=0, help="of this order (default: 0)")
    add("--limit", type=int, default=5_000,
        help="iterations of a loop, 0 for as many as it wants (default: 5000)")  # fmt: skip
    add("--json", action="store_true", help="print JSON: results, counts, counts by line")
    add("--sarif", type=Path, metavar="FILE", help="write SARIF 2.1.0, as code scanning takes it")
    add("--wgsl", action="store_true", help="print the kernel in WGSL, and do not run it")
    add("--version", action="version", version=f"clscope {__version__}")
    return parser


def _sizes(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(size) for size in text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a size, such as 64 or 16,16") from None


def _pair(text: str) -> tuple[str, str]:
    name, _, value = text.partition("=")
    if not (name and value):
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE, such as n=256")
    return name, value


def _macro(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    return name, value if equals else "1"


def arguments(kernel: Function, pairs: Iterable[tuple[str, str]]) -> list[Any]:
    """Return a kernel's arguments, in the order of its parameters.

    Raises CommandError for a value that is missing, superfluous or malformed.
    """
    values = dict(pairs)
    names = [param.name for param in kernel.params]
    for name in values:
        if name not in names:
            raise CommandError(f"{kernel.name} has no parameter {name!r}, only {', '.join(names)}")
    if missing := [param for param in kernel.params if param.name not in values]:
        needs = ", ".join(f"--arg {param.name}={_form(param)}" for param in missing)
        raise CommandError(f"arguments of {kernel.name} are missing: {needs}")
    return [_argument(param, values[param.name]) for param in kernel.params]


def _form(param: Variable) -> str:
    return f"{param.type.to}:SIZE" if isinstance(param.type, Pointer) else "NUMBER"


def _argument(param: Variable, value: str) -> Any:
    """Return an argument as `run` takes it."""
    import numpy as np

    from .api import Empty

    problem = f"--arg {param.name}={value} is not"
    if value.startswith("@"):
        try:
            return np.load(value[1:], allow_pickle=False)
        except (OSError, ValueError) as error:
            raise CommandError(f"{problem} an array that NumPy has saved: {error}") from error
    if not isinstance(param.type, Pointer):
        try:
            numbers = [_number(number) for number in value.split(",")]
        except ValueError:
            raise CommandError(f"{problem} a number; its type is {param.type}") from None
        return numbers if isinstance(param.type, Vector) else numbers[0]
    kind, _, rest = value.partition(":")
    size, _, fill = rest.partition(":")
    element = kind.rstrip("0123456789")
    try:
        dtype, width = SCALARS[element].dtype, int(kind[len(element) :] or 1)
        count = int(size) * (4 if width == 3 else width)  # three take the room of four
        if fill == "empty" or param.type.space == "local":
            return Empty(count, dtype.name)
        return (np.full(count, float(fill)) if fill else np.arange(count)).astype(dtype)
    except (KeyError, ValueError):
        raise CommandError(f"{problem} TYPE:SIZE or TYPE:SIZE:FILL, as {_form(param)}") from None


def _number(text: str) -> float:
    return int(text, 0) if text.lstrip("+-").isalnum() else float(text)


def simulate(command: argparse.Namespace, text: str) -> Run:
    """Run the kernel of a command.

    Raises CommandError for options that do not fit, TextError for a text that does not.
    """
    from .api import run

    macros = dict(command.define)
    kernel = kernel_of(parse(text, macros).functions, command.kernel)
    if command.launch is None:
        raise CommandError("--global is missing: the work-items of the launch")
    values = arguments(kernel, command.arg)
    try:
        return run(
            text, kernel.name, command.launch, command.local, values, macros,
            order=command.order, seed=command.seed, limit=command.limit,
        )  # fmt: skip
    except TextError:
        raise
    except (ValueError, TypeError, MemoryError) as error:
        raise CommandError(str(error)) from error


def main(argv: Sequence[str] | None = None) -> int:
    """Carry out the command, and return its exit status."""
    command = parser().parse_args(argv)
    path, run = command.file, None
    try:
        text = path.read_text(encoding="utf-8")
        if command.wgsl:
            print(to_wgsl(text, command.kernel, dict(command.define)).code, end="")
            return CLEAN
        run = simulate(command, text)
        results = report.of_run(run)
    except TextError as error:
        results = report.of_error(error)
    except (OSError, UnicodeDecodeError, CommandError) as error:
        print(f"clscope: {error}", file=sys.stderr)
        return REFUSED
    if command.sarif:
        command.sarif.write_text(json.dumps(report.as_sarif(results, path), indent=2) + "\n")
    if command.json:
        print(json.dumps(report.as_json(results, path, run), indent=2))
    else:
        print(*(run.printed if run else ()), sep="", end="")
        messages = report.lines(results, path, text) or ["nothing is wrong"]
        print(*messages, sep="\n", file=sys.stdout if run else sys.stderr)
    if run is None:
        return REFUSED
    return CLEAN if run.ok else FINDINGS


if __name__ == "__main__":
    sys.exit(main())

"""The commands: `gemmlab doctor | bench | tune | forget | model | verify | worker | notebooks |
grades`.

Also as `python -m gemmlab ...`.
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import sys
from contextlib import suppress
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tqdm import tqdm

from . import caches, environment, files
from .ladder import Key, catalog, key
from .version import __version__

if TYPE_CHECKING:
    from .generate.candidates import Sizes
    from .measurement.records import Result
    from .opencl.devices import Device

Arguments = argparse.Namespace


def main(arguments: list[str] | None = None) -> int:
    """Run a command; return 0 if all went well."""
    installed = Path(sys.argv[0]).stem == "gemmlab"
    program = "gemmlab" if installed else "python -m gemmlab"
    parser = argparse.ArgumentParser(prog=program, description=__doc__)
    parser.add_argument("--version", action="version", version=f"gemmlab {__version__}")
    commands = parser.add_subparsers(dest="command", required=True)
    for name, (add_options, run) in COMMANDS.items():
        command = commands.add_parser(name, help=run.__doc__, description=run.__doc__)
        command.set_defaults(run=run)
        add_options(command)
    parsed = parser.parse_args(arguments)
    try:
        status = parsed.run(parsed)
        sys.stdout.flush()
        return status
    except BrokenPipeError:  # the reader of a pipe, such as `head`, has ended
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # Python flushes at its end
        return 1
    except KeyboardInterrupt:
        message = "interrupted"
    except ModuleNotFoundError as error:
        missing = error.name or "a package"
        install = environment.install_command(missing)
        message = f"this needs {missing}, which is not installed: {install}"
    except (ImportError, ValueError, TypeError, MemoryError, RuntimeError, OSError) as error:
        message = str(error)
    print(f"{parser.prog}: {message}", file=sys.stderr)
    return 2


# Types of options


def count(text: str) -> int:
    """Parse a whole number from 1 on."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a positive whole number, not {text!r}")
    return int(text)


def output_file(text: str) -> Path:
    """Parse a writable file name; checked before measuring, so that nothing is lost."""
    try:
        files.check_writable(text)
    except OSError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return Path(text)


def record_file(text: str) -> Path:
    """Parse the name of a record to write or to continue; any other file stays as it is."""
    path = output_file(text)
    with suppress(files.DamagedError, AttributeError):
        sessions = files.load_json(path, list)
        recorded = [session.keys() >= {"command", "date", "tables"} for session in sessions]
        if not path.exists() or (recorded and all(recorded)):
            return path
    raise argparse.ArgumentTypeError(f"{path} exists and is not a record; it was left unchanged")


def kernel_numbers(text: str) -> list[Any]:
    """Parse kernels such as 1,10,warp_tiling."""
    kernels = [int(name) if name.isdecimal() else name for name in text.split(",")]
    for kernel in kernels:
        if kernel not in catalog:
            listed = ", ".join(map(str, catalog))
            raise argparse.ArgumentTypeError(f"there is no kernel {kernel}; there are {listed}")
    return kernels


def kernels_or_auto(text: str) -> list[Any]:
    """Parse kernels such as 1,10,auto."""
    return [name if name == "auto" else kernel_numbers(name)[0] for name in text.split(",")]


def size_list(text: str) -> list[Any]:
    """Parse sizes such as 256,512, or 64x8192x8192 for M, N and K that differ."""
    sizes: list[Any] = []
    for part in text.split(","):
        if not re.fullmatch(r"[1-9][0-9]*(x[1-9][0-9]*){2}|[1-9][0-9]*", part):
            raise argparse.ArgumentTypeError(
                f"sizes are such as 512, or 64x8192x1024 for M, N and K, not {part!r}"
            )
        sides = tuple(map(int, part.split("x")))
        sizes.append(sides if len(sides) == 3 else sides[0])
    return sizes


# Options


def device_option(parser: argparse.ArgumentParser, default: str = "the preferred device") -> None:
    """Add the option --device."""
    parser.add_argument("--device", help=f"an index or part of a name (default: {default})")


def _bench_options(parser: argparse.ArgumentParser) -> None:
    text = "such as 1,2,warp_tiling,auto (default: all)"
    parser.add_argument("--kernels", type=kernels_or_auto, default=list(catalog), help=text)
    text = "such as 256,512,64x8192x1024 (M x N x K of the column-major product)"
    parser.add_argument("--sizes", type=size_list, default=[256, 512], help=text)
    device_option(parser)
    parser.add_argument("--repeats", type=count, help="timed runs (default: as many as fit 80 ms)")
    text = "write the results to FILE, as soon as there are any"
    parser.add_argument("--json", type=record_file, metavar="FILE", help=text)
    parser.add_argument("--title", help="with --json: a short name of the device for charts")


def _tune_options(parser: argparse.ArgumentParser) -> None:
    text = "M x N x K of row-major products, such as 512,64x8192x1024 (default: usual ones)"
    parser.add_argument("--sizes", type=size_list, help=text)
    precisions = ["float32", "tf32", "tf32x3"]
    parser.add_argument("--precision", choices=precisions, default="float32")
    device_option(parser)


def _model_options(parser: argparse.ArgumentParser) -> None:
    text = "whose records (default: H200)"
    parser.add_argument("--chip", default="H200", choices=["H200", "K40m"], help=text)
    text = "all ceilings of this kernel, in sentences"
    parser.add_argument("--kernel", type=key, choices=list(catalog), help=text)


def _verify_options(parser: argparse.ArgumentParser) -> None:
    text = "such as 1,10 (default: all)"
    parser.add_argument("--kernels", type=kernel_numbers, default=list(catalog), help=text)
    device_option(parser, "every device, one after the other")
    parser.add_argument("--full", action="store_true", help="everything instead of a sample")
    parser.add_argument("--seed", type=int, default=0, help="of the sample")


def _worker_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("scheduler", metavar="ADDRESS:PORT", help="where Dask's scheduler listens")
    text = "an index or part of a name, repeated for several (default: all GPUs, or one device)"
    parser.add_argument("--device", action="append", help=text)
    text = "address of this machine to listen on, for a scheduler on another one"
    parser.add_argument("--host", default="127.0.0.1", help=f"{text} (default: loopback alone)")


def _notebooks_options(parser: argparse.ArgumentParser) -> None:
    text = "a folder for the notebooks: a new one, or one that has them"
    parser.add_argument("folder", metavar="DIR", type=Path, help=text)
    parser.add_argument("--student", action="store_true", help="leave the solutions out")


def _grades_options(parser: argparse.ArgumentParser) -> None:
    text = "a progress file; it or its folder has the student's name"
    parser.add_argument("files", metavar="FILE", nargs="+", type=Path, help=text)


# Commands: the docstring of each function is its help


def run_doctor(options: Arguments) -> int:
    """Say which devices there are, try each of them, and explain what is missing, with the command
    to type. The exit status is 3 if another CPU runtime would help.
    """
    from .opencl.doctor import another_cpu_runtime, doctor

    if doctor():
        return 0
    return 3 if another_cpu_runtime() else 1


def run_bench(options: Arguments) -> int:
    """Check and time kernels; print one line per result."""
    from .generate import candidates
    from .measurement import peaks, records
    from .opencl.devices import find_device

    device = find_device(options.device)
    runs = list(product(options.kernels, map(candidates.dimensions, options.sizes)))
    measured = failed = 0
    for kernel, sizes in tqdm(runs, unit="run", disable=None):
        try:
            result = _measure(kernel, sizes, device, options.repeats)
        except ValueError as error:  # a tile may be larger than C
            tqdm.write(f"left out: {error}")
            continue
        except (MemoryError, RuntimeError) as error:
            tqdm.write(f"kernel {kernel} at {' x '.join(map(str, sizes))} failed: {error}")
            failed += 1
            continue
        tqdm.write(f"{result}; error {result.error:.1e} (bound {result.bound:.1e})")
        measured += 1
        failed += not result.ok
        if options.json and result.ok:  # a wrong kernel has no rate
            rows = records.entries(result, "auto" if kernel == "auto" else "ladder")
            head = records.session(device, command_line("-m gemmlab"), options.title)
            records.append(options.json, head, [*peaks.entries(device), *rows])
    if not measured:
        raise ValueError("nothing was measured")
    if options.json:
        print(f"wrote {options.json}")
    return 1 if failed else 0


def _measure(kernel: Key, sizes: Sizes, device: Device, repeats: int | None) -> Result:
    """Measure a kernel at a size; for "auto", what `matmul` runs."""
    from .measurement import timing

    if kernel == "auto":
        m, n, k = sizes
        return timing.measure_auto(m, n, k, device, repeats)
    return timing.measure(kernel, *sizes, device=device, repeats=repeats)


def run_tune(options: Arguments) -> int:
    """Time the best kernels for some shapes on this device; matmul runs the winners from now on."""
    from .generate import candidates
    from .measurement import tuned

    shapes = (
        [candidates.dimensions(size) for size in options.sizes] if options.sizes else tuned.USUAL
    )
    print(*tuned.tune(shapes, options.device, options.precision), sep="\n")
    return 0


def run_forget(options: Arguments) -> int:
    """Delete what later sessions would use: the winners of `tune`, and the highest peaks."""
    caches.forget()
    print(f"deleted {caches.folder()}")
    return 0


def run_model(options: Arguments) -> int:
    """Print what each resource of a chip allows recorded kernels, what they reached, and why."""
    from .measurement import rungs

    if options.kernel is None:
        print(rungs.table(rungs.rungs(options.chip)))
    else:
        rung = rungs.rung(options.kernel, options.chip)
        print(rung, *rung.ceilings, sep="\n")
    return 0


def run_verify(options: Arguments) -> int:
    """Check the kernels on every device, or on one."""
    from .sandbox.verify import verify

    return verify(options.full, options.seed, options.device, options.kernels)


def run_worker(options: Arguments) -> int:
    """Multiply for a Dask scheduler: a worker process per device of this machine, until the
    scheduler ends.
    """
    from .distributed import workers

    signal.signal(signal.SIGTERM, _interrupt)  # batch systems end jobs by it
    workers.serve(options.scheduler, options.device, host=options.host)
    return 0


def run_notebooks(options: Arguments) -> int:
    """Write the notebooks into a folder, with the pages and kernels that they link to. In a folder
    that has them, replace what nobody has changed, and put newer chapters next to changed ones.
    """
    from . import working_copy

    newer = working_copy.update(options.folder, student=options.student)
    if newer:
        names = ", ".join(path.name for path in newer[:3])
        names += f" and {len(newer) - 3} more" if len(newer) > 3 else ""
        print(f"Newer versions, next to what you have changed: {names}", file=sys.stderr)
    start = options.folder / "notebooks" / "00_start_here.ipynb"
    command = f"{sys.executable} -m jupyterlab {start}"
    if not environment.is_installed("jupyterlab"):
        command = environment.install_command("'gemmlab[lab]'")
    print(f"the notebooks are in {options.folder}; next: {command}")
    return 0


def run_grades(options: Arguments) -> int:
    """Print how many exercises of each chapter each student has solved, as CSV with the columns
    that nbgrader exports. A student's file is progress.json in the folder GEMMLAB_DATA.
    """
    import csv

    from .ladder import sources
    from .widgets.progress import grades

    table = csv.writer(sys.stdout, lineterminator="\n")
    table.writerow(["assignment", "student_id", "score", "max_score"])
    table.writerows(grades(options.files, sources.folder("notebooks")))
    return 0


def _interrupt(*_: object) -> None:
    """End once as Ctrl-C does; some programs send a signal twice."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise KeyboardInterrupt


def command_line(program: str) -> str:
    """Return the command line as a record states it; of paths only the file names."""
    arguments = [Path(text).name if "/" in text else text for text in sys.argv[1:]]
    return " ".join(["python", program, *arguments])


#: For each command, the function that adds its options, and the one that runs it.
COMMANDS = {
    "doctor": (lambda parser: None, run_doctor),
    "bench": (_bench_options, run_bench),
    "tune": (_tune_options, run_tune),
    "forget": (lambda parser: None, run_forget),
    "model": (_model_options, run_model),
    "verify": (_verify_options, run_verify),
    "worker": (_worker_options, run_worker),
    "notebooks": (_notebooks_options, run_notebooks),
    "grades": (_grades_options, run_grades),
}

"""The commands: `python -m gemmlab doctor | bench | tune | compare | record | model | verify | worker`."""

from __future__ import annotations

import argparse
import importlib
import platform
import signal
import sys
from contextlib import suppress
from functools import partial
from math import inf
from pathlib import Path

from tqdm import tqdm

from .catalog import Key, catalog, key
from .version import __version__

Arguments = argparse.Namespace


def main(arguments: list[str] | None = None) -> int:
    """Run a command; return 0 if all went well."""
    parser = argparse.ArgumentParser(prog="python -m gemmlab", description=__doc__)
    parser.add_argument("--version", action="version", version=__version__)
    commands = parser.add_subparsers(dest="command", required=True)
    for name, (describe, run) in COMMANDS.items():
        command = commands.add_parser(name, help=run.__doc__, description=run.__doc__)
        command.set_defaults(run=run)
        describe(command)
    given = parser.parse_args(arguments)
    try:
        return given.run(given)
    except ModuleNotFoundError as error:
        missing = f"this needs {error.name}, which is not installed: pip install {error.name}"
        print(f"{parser.prog}: {missing}", file=sys.stderr)
        return 2
    except (ImportError, ValueError, TypeError, MemoryError, RuntimeError, OSError) as error:  # refused in words
        print(f"{parser.prog}: {error}", file=sys.stderr)
        return 2


# What the options say.


def count(text: str) -> int:
    """A whole number from 1 on."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a positive whole number, not {text!r}")
    return int(text)


def amount(text: str) -> float:
    """A number above 0."""
    with suppress(ValueError):
        if float(text) > 0:
            return float(text)
    raise argparse.ArgumentTypeError(f"must be a positive number, not {text!r}")


def seconds(text: str) -> float:
    """A number from 0 on."""
    with suppress(ValueError):
        if float(text) >= 0:
            return float(text)
    raise argparse.ArgumentTypeError(f"must be a number of seconds, not {text!r}")


def file(text: str) -> str:
    """The name of a file that exists."""
    if not Path(text).is_file():
        raise argparse.ArgumentTypeError(f"must be a file, and there is none named {text!r}")
    return text


def _range(text: str, such_as: str) -> range:
    """The whole numbers of 7, 1-3 or 10-20:5; `such_as` says what was expected."""
    ends, _, step = text.partition(":")
    first, _, last = ends.partition("-")
    with suppress(argparse.ArgumentTypeError):
        found = range(count(first), count(last or first) + 1, count(step or "1"))
        if found:
            return found
    raise argparse.ArgumentTypeError(f"{text!r} is no positive whole number and no range of them; give {such_as}")


def kernel_numbers(text: str) -> list[Key]:
    """Such as 1-3,10,warp_tiling."""
    numbers: list[Key] = []
    for part in text.split(","):
        numbers += [part] if part in catalog else _range(part, "kernels such as 1-3,10,warp_tiling")
    unknown = [n for n in numbers if n not in catalog]
    if unknown:
        raise argparse.ArgumentTypeError(f"there is no kernel {unknown[0]}; there are {', '.join(map(str, catalog))}")
    return numbers


def numbers_or_auto(text: str) -> list:
    """Such as 1-3,10,auto."""
    parts = text.split(",")
    numbers = kernel_numbers(",".join(p for p in parts if p != "auto")) if set(parts) != {"auto"} else []
    return [*numbers, "auto"] if "auto" in parts else numbers


def size_list(text: str) -> list:
    """Such as 256,512, or 1000-1100:7 for a range with a step; 64x8192x8192 for M, N and K that differ."""
    sizes: list = []
    for part in text.split(","):
        sides = part.split("x")
        if len(sides) not in (1, 3):
            raise argparse.ArgumentTypeError(f"{part!r} is no size; give M, N and K as in 64x8192x1024, or one number")
        sizes += [tuple(map(count, sides))] if len(sides) == 3 else _range(part, "sizes such as 256,512,1000-1100:7")
    return sizes


def settings(text: str) -> dict[str, int]:
    """Such as TS=32,WPT=8."""
    try:
        return {name.strip(): int(value) for name, _, value in (part.partition("=") for part in text.split(","))}
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} are no settings; give them as in TS=32,WPT=8") from None


def several_settings(text: str) -> list[dict[str, int]]:
    """Such as TSM=96,TSN=96:TSM=32."""
    return [settings(part) for part in text.split(":")]


def types(text: str) -> list[str]:
    """Such as float64,complex64."""
    known, found = ("float32", "float64", "complex64", "complex128"), text.split(",")
    unknown = [name for name in found if name not in known]
    if unknown:
        raise argparse.ArgumentTypeError(f"there is no type {unknown[0]!r}; there are {', '.join(known)}")
    return found


def tensor_precisions(text: str) -> list[str]:
    """Such as tf32,tf32x3."""
    found = text.split(",")
    if unknown := [name for name in found if name not in ("tf32", "tf32x3")]:
        raise argparse.ArgumentTypeError(f"{unknown[0]!r} is none of the precisions tf32 and tf32x3")
    return found


def _device(parser) -> None:
    parser.add_argument("--device", help="an index or part of a name (default: the preferred device)")


def _sizes(parser, default: list | None = None) -> None:
    words = "such as 256,512,64x8192x1024 (M x N x K of the column-major product)"
    parser.add_argument("--sizes", type=size_list, default=default, required=default is None, help=words)


def _record(parser) -> None:
    parser.add_argument("--json", metavar="FILE", help="write the results to FILE")
    parser.add_argument("--title", help="with --json: a short name of the device for charts")


def _strategy(parser, edges: str | None, precision: str | None) -> None:
    strategies, precisions = ["pad", "guard", "shift", "auto"], ["float32", "tf32", "tf32x3"]
    parser.add_argument("--edges", default=edges, choices=strategies, help="what is done where tiles do not fit")
    parser.add_argument("--precision", default=precision, choices=precisions, help="how floats are multiplied")


def _no_options(parser) -> None:
    pass


def _bench_options(parser) -> None:
    parser.add_argument(
        "--kernels", type=numbers_or_auto, default=list(catalog), help="such as 1-3,warp_tiling,auto (all)"
    )
    _sizes(parser, [256, 512])
    parser.add_argument("--params", type=settings, default={}, help="such as TS=32,WPT=8, for kernels that have them")
    _strategy(parser, None, None)
    _device(parser)
    parser.add_argument("--repeats", type=count, help="timed runs (default: as many as fit 80 ms)")
    _record(parser)


def _tune_options(parser) -> None:
    parser.add_argument("file", metavar="FILE", help="the table to add to, such as results/auto.json")
    _sizes(parser)
    parser.add_argument(
        "--kernels", type=kernel_numbers, default=[], help="only these, such as 7,warp_tiling (default: all)"
    )
    _strategy(parser, "pad", "float32")
    words = "the family's tiles for s, d, c or z instead, such as d; FILE is then like results/family.json"
    parser.add_argument("--family", choices=["s", "d", "c", "z"], help=words)
    words = "the family's tiles, whole and split at the size minus one; goes on where it stopped"
    parser.add_argument("--profile", action="store_true", help=words)
    parser.add_argument("--tries", type=count, default=6, help="parameter sets of each kernel to begin with")
    parser.add_argument("--starts", type=several_settings, default=[], help="more of them: TSM=96,TSN=96:TSM=32")
    parser.add_argument("--steps", type=int, default=100, help="how often at most the best move on to a neighbour")
    parser.add_argument("--calls", action="store_true", help="rate whole calls (quicker; nothing stops a slow one)")
    _device(parser)


def _compare_options(parser) -> None:
    _sizes(parser, [])
    shapes = parser.add_argument_group("shapes of calls, beside --sizes; M x N x K is then the row-major product")
    shapes.add_argument("--random", type=count, default=0, metavar="N", help="so many random shapes")
    shapes.add_argument("--seed", type=int, default=0, help="of the random shapes (default: 0)")
    shapes.add_argument(
        "--most-flops", type=amount, help="operations of a random shape at most (default: 2e12, on processors 1e10)"
    )
    words = "of the matrices, such as float64,complex64 (default: float32)"
    shapes.add_argument("--types", type=types, default=["float32"], help=words)
    shapes.add_argument("--numpy", action="store_true", help="NumPy arrays in and out instead of device arrays")
    words = "tf32, tf32x3 or both (tf32,tf32x3), beside float32 instead of another library"
    shapes.add_argument("--precision", type=tensor_precisions, default=[], dest="precisions", help=words)
    words = "time the device alone, which never waits for the host (on a GPU)"
    shapes.add_argument("--device-time", action="store_true", help=words)
    kernels = parser.add_argument_group("launches alone beside a library's, without what a call costs")
    kernels.add_argument("--cublas", action="store_true", help="cuBLAS SGEMM, by PyTorch")
    kernels.add_argument("--clblast", metavar="LIBRARY", default="", help="CLBlast's shared library: libclblast.so.1")
    kernels.add_argument("--repeats", type=count, help="with --json: timed runs of each kernel that is recorded")
    _device(parser)
    _record(parser)


def _record_options(parser) -> None:
    words = "every setting that the explorers offer; a file that is there is continued"
    parser.add_argument("--landscape", action="store_true", help=words)
    only = parser.add_argument_group("with --landscape")
    only.add_argument("--kernel", type=kernel_numbers, default=list(catalog), metavar="N", help="such as 1-3,10 (all)")
    only.add_argument("--seconds", type=seconds, default=inf, help="begin nothing more after that time")
    only.add_argument("--size", type=count, default=4096, help="of the square matrices (default: 4096)")
    only.add_argument("--out", metavar="FILE", help="the file to write (default: landscape_DEVICE.json in results/)")
    _device(only)
    what = parser.add_subparsers(dest="what")
    chapters = what.add_parser("chapters", help="the sweeps that the chapters show of other devices")
    chapters.add_argument("--size", type=count, default=4096, help="of the square matrices (default: 4096)")
    chapters.add_argument("--kernels", type=kernel_numbers, default=[], help="only the sweeps of these kernels")
    edges = what.add_parser("edges", help="the ways to treat sizes that are not whole tiles, side by side")
    _sizes(edges)
    edges.add_argument("--repeats", type=count, help="timed runs (default: as many as fit 80 ms)")
    several = what.add_parser("candidates", help="every kernel that 'auto' may choose, at many shapes; is continued")
    several.add_argument("--seconds", type=seconds, default=inf, help="begin no more shapes after that time")
    several.add_argument("--compiling", type=seconds, default=inf, help="compile no more after that time")
    several.add_argument("--random", type=count, default=240, metavar="N", help="so many random shapes (default: 240)")
    several.add_argument("--anew", default="", choices=["warp_tiling", "narrow", "tensor_cores", "warpgroups"],
                         help="time this kernel again, whose text has changed")  # fmt: skip
    constants = what.add_parser("choice", help="the constants by which 'auto' chooses, from a record of candidates")
    constants.add_argument("record", metavar="RECORD", help="such as results/nvidia_h200_candidates.json")
    constants.add_argument("file", metavar="FILE", help="the file to write to, such as results/choice.json")
    for command in (chapters, edges, several):
        command.add_argument("file", metavar="FILE", help="the file to write")
        command.add_argument("--title", help="a short name of the device for charts")
        _device(command)


def _model_options(parser) -> None:
    parser.add_argument("--chip", default="H200", choices=["H200", "K40m"], help="whose records (default: H200)")
    parser.add_argument("--kernel", type=key, choices=list(catalog), help="all ceilings of this kernel, in sentences")


def _verify_options(parser) -> None:
    parser.add_argument("--device", help="an index or part of a name (default: every device, one after the other)")
    parser.add_argument("--full", action="store_true", help="everything instead of a sample, and all tests")
    parser.add_argument("--seed", type=int, default=0, help="of the sample")


def _worker_options(parser) -> None:
    parser.add_argument("scheduler", metavar="ADDRESS:PORT", help="where Dask's scheduler listens")
    words = "an index or part of a name, repeated for several (default: all graphics processors, or the preferred one)"
    parser.add_argument("--device", action="append", help=words)
    parser.add_argument("--memory-gib", type=amount, help="of the host's memory for each worker (default: equal parts)")
    words = "address of this machine to listen on, for a scheduler on another one (default: loopback alone)"
    parser.add_argument("--host", help=words)
    encryption = parser.add_argument_group("TLS, with files in PEM format, as of `dask worker`")
    encryption.add_argument("--tls-ca-file", type=file, metavar="FILE", help="certificate of the authority")
    encryption.add_argument("--tls-cert", type=file, metavar="FILE", help="certificate of this worker")
    encryption.add_argument("--tls-key", type=file, metavar="FILE", help="its key (default: it is in --tls-cert)")


# What the commands do.


def run_doctor(given: Arguments) -> int:
    """Say which devices there are, try each of them, and explain what is missing, with the command to type."""
    import pyopencl as cl

    from . import check
    from .blas.products import matmul
    from .opencl import devices, doctor

    print(f"gemmlab {__version__}, pyopencl {cl.VERSION_TEXT}, Python {platform.python_version()}")
    works = 0
    for d in devices.devices():
        a, b = check.exact_inputs(65, 33, 129)
        try:
            verdict = str(check.exact(matmul(a, b, device=d), a, b))
        except Exception as error:  # a device that fails must not hide the others
            verdict = f"{type(error).__name__}: {error}"
        works += verdict.startswith("right")
        print(f"device {d.index}: {d}, {d.units} compute units, {d.version}\n  a 65 x 33 x 129 product: {verdict}")
    for listed in devices.listed():
        if devices.trouble(listed):
            print(f"not used: {listed.name.strip()}: {devices.trouble(listed)}")
    for finding in doctor.findings():
        print(f"\n{finding}")
    if works:
        print(f"The default is {devices.default_device()}; GEMMLAB_DEVICE or device= chooses another.")
        return 0
    print(
        "\nNo OpenCL device works here. Any one of these gives you one on the processor:\n"
        "  pip install 'gemmlab[pocl]'         PoCL (Linux x86-64, processors up to about 2022)\n"
        "  pip install 'gemmlab[intel]'        Intel's CPU runtime (Linux and Windows x86-64, proprietary, 0.8 GB)\n"
        "  conda install -c conda-forge pocl   a newer PoCL\n"
        "  sudo apt install pocl-opencl-icd    PoCL of Debian or Ubuntu\n"
        "For a GPU install its vendor's driver; on conda also ocl-icd-system, so that it is found."
    )
    return 1


def run_bench(given: Arguments) -> int:
    """Check and time kernels; print one line per result, and record them if asked to."""
    from .bench import peaks, records
    from .opencl.devices import find_device

    device = find_device(given.device)
    if "auto" not in given.kernels:
        unused = [f"--{name}" for name in ("edges", "precision") if getattr(given, name)]
        if unused:
            raise ValueError(f"{unused[0]} says what 'auto' chooses from, but --kernels does not contain 'auto'")
    known = {name for number in given.kernels if number != "auto" for name in catalog[number].defaults}
    for name in given.params:
        if name not in known:
            raise ValueError(f"--params has {name}, which is a parameter of none of these kernels")
    _needs_json(given)
    own, chosen = _measured(given, device)
    if given.json:
        more = {"auto": [records.entry(r) for r in chosen]} if chosen else {}
        title, roof = given.title or device.name, vars(peaks.peaks(device))
        records.save(given.json, own, _command(), title=title, peaks=roof, **more)
        print(f"wrote {given.json}")
    return 0 if all(r.ok for r in [*own, *chosen]) else 1


def _measured(given: Arguments, device) -> tuple[list, list]:
    """The results of the kernels that were named, and of those that "auto" chose."""
    from .bench import timing
    from .family import choice, selection

    own: list = []
    chosen: list = []
    with tqdm(total=len(given.kernels) * len(given.sizes), unit="run", disable=None) as bar:
        for kernel in given.kernels:
            for size in given.sizes:
                sizes = selection.dimensions(size)
                if kernel == "auto":
                    number, found = choice.choose(device, sizes, given.edges or "auto", given.precision or "float32")
                    params = dict(found)
                else:
                    number, names = kernel, catalog[kernel].defaults
                    params = {n: v for n, v in given.params.items() if n in names}
                result = timing.measure(number, *sizes, params=params or None, device=device, repeats=given.repeats)
                tqdm.write(f"{result}; error {result.error:.1e} (bound {result.bound:.1e})")
                (chosen if kernel == "auto" else own).append(result)
                bar.update()
    return own, chosen


def run_tune(given: Arguments) -> int:
    """Find what `matmul` should choose at some sizes, and add it to a table."""
    from .bench import profile, tiles, tuning
    from .opencl.devices import find_device
    from .worker.client import trial

    device = find_device(given.device)
    if given.profile:
        profile.profile(given.file, given.sizes, device, given.family or "s", _command())
        return 0
    if given.family:
        tiles.fill(given.file, given.sizes, device, given.family, _command())
        return 0
    rate = tuning.ByCalls(device, given.precision) if given.calls else tuning.by_trials(trial, device)
    search = tuning.Search(
        device,
        rate,
        edges=given.edges,
        precision=given.precision,
        among=given.kernels,
        tries=given.tries,
        starts=given.starts,
        steps=given.steps,
        ahead=partial(tuning.compile_ahead, device),
    )
    tuning.fill(given.file, given.sizes, search, _command())
    return 0


def run_compare(given: Arguments) -> int:
    """Time `matmul` as a user calls it beside PyTorch or NumPy; or its launches alone beside cuBLAS or CLBlast."""
    from .bench import libraries, peaks, records
    from .opencl.devices import find_device

    device = find_device(given.device)
    _needs_json(given, "repeats")
    if not (given.cublas or given.clblast):
        return _compare_calls(given, device)
    if given.random or given.numpy or given.precisions or given.device_time:
        words = "--random, --numpy, --precision and --device-time are for calls"
        raise ValueError(f"{words}; they go without --cublas and --clblast")
    if not given.sizes:
        raise ValueError("compare what? Give --sizes")
    more = libraries.recorded(given.sizes, device, given.clblast, given.cublas)
    if given.json:
        given.kernels, given.edges, given.precision, given.params = ["auto"], None, None, {}
        _, chosen = _measured(given, device)
        more["auto"] = [records.entry(r) for r in chosen]
        title, roof = given.title or device.name, vars(peaks.peaks(device))
        records.save(given.json, [], _command(), title=title, peaks=roof, **more)
        print(f"wrote {given.json}")
        return 0 if all(r.ok for r in chosen) else 1
    return 0


def _compare_calls(given: Arguments, device) -> int:
    """Time public calls at the sizes that are named and at random ones."""
    from .bench import calls, records
    from .family.selection import dimensions

    if given.repeats is not None:
        raise ValueError("--repeats is for --cublas and --clblast; a call is timed in rounds")
    shapes = [dimensions(size) for size in given.sizes]
    if given.random:
        most = given.most_flops or calls.MOST_FLOPS.get(device.kind, calls.MOST_FLOPS["CPU"])
        print(f"random shapes of at most {most:.0e} operations (--most-flops)")
        shapes += calls.random_shapes(given.random, given.seed, most)
    if not shapes:
        raise ValueError("compare what? Give --sizes, --random N, or both")
    how = given.precisions, given.device_time
    rows = [row for dtype in given.types for row in calls.compare(shapes, device, given.numpy, dtype, *how)]
    large = calls.large(rows, device.kind)
    words = f"{len(large)} of them with at least {calls.LARGE.get(device.kind, calls.LARGE['CPU']):.0e} operations"
    for some, which in ((rows, f"{len(rows)} shapes"), (large, words)):
        for way, found in calls.summary(some).items():
            print(
                f"{way}, {which}: geometric mean {found['mean']:.2f}, {found['share']:.0%} above {calls.GOOD}, "
                f"least {found['least']:.2f}, spread within a shape {found['spread']:.0%}"
            )
    if given.json:
        head = {"title": given.title or device.name, **records.origin(_command()), "device": device.facts()}
        records.write(given.json, head | calls.recorded(rows, device.kind))
        print(f"wrote {given.json}")
    return 0


def run_record(given: Arguments) -> int:
    """Record what chapters and explorers show of a device: sweeps, the ways to treat edges, or all settings."""
    from .bench import candidates, fitting, records, sweeps
    from .opencl.devices import find_device

    if bool(given.what) == given.landscape:
        raise ValueError("record what? Give one of --landscape, chapters, edges, candidates and choice")
    if given.what == "choice":
        found = fitting.write(given.record, given.file, _command())
        print(f"wrote {given.file}; at shapes that were left out: {found['held_out']}")
        return 0
    device = find_device(given.device)
    if given.landscape:
        return _record_landscape(given, device)
    if given.what == "candidates":
        candidates.record(device, given.file, _command(), given.seconds, given.compiling, given.random, given.anew)
        return 0
    head = {"title": given.title or device.name, **records.origin(_command()), "device": device.facts()}
    if given.what == "chapters":
        found = (
            sweeps.record_curves(device, given.size, given.kernels)
            if given.kernels
            else sweeps.record_all(device, given.size)
        )
        if not given.kernels and "nvidia" in device.features:
            cuda = _lesson("cuda")
            found["cuda"] = {str(n): cuda.measure(n, given.size) for n in cuda.KERNELS}
        records.write(given.file, head | found)
        return 0
    oblong = [size for size in given.sizes if not isinstance(size, int)]
    if oblong:
        raise ValueError(f"--sizes are of square matrices here, not {oblong[0]}")
    edges = _lesson("edges")
    ways = edges.compare(given.sizes, device, given.repeats)
    records.write(given.file, head | {"strategies": ways})
    for size in given.sizes:
        print(f"{size}: " + ", ".join(f"{way} {r[size]['gflops']:,.1f}" for way, r in ways.items()))
    return 0


def _lesson(name: str):
    """A module of notebooks/lessons, which a checkout has beside the chapters."""
    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "notebooks"))
    return importlib.import_module(f"lessons.{name}")


def _record_landscape(given: Arguments, device) -> int:
    """Record the settings of the kernels that are named, as far as the time allows."""
    from .bench import landscape, recorder

    try:
        recorder.record(device, given.kernel, given.size, given.seconds, given.out, _command())
    except KeyboardInterrupt:
        print("interrupted; the same command goes on from here")
    path = Path(given.out or landscape.file_of(device.name))
    found = landscape.Landscape.load(path)
    for number in found.kernels:
        best = found.best(number)
        rate = f"at best {best.gflops:,.0f} GFLOPS with {best.params}" if best else "none of them right"
        print(f"kernel {number}: {len(found.rows(number)):,} settings, {rate}")
    print(f"wrote {path}, {path.stat().st_size:,} bytes")
    return 0


def run_model(given: Arguments) -> int:
    """What each resource of a chip allows the recorded kernels, what they reached, and why."""
    from .bench import explained

    if given.kernel is None:
        print(explained.table(explained.ladder(given.chip)))
    else:
        rung = explained.rung(given.kernel, given.chip)
        print(rung, *rung.ceilings, sep="\n")
    return 0


def run_verify(given: Arguments) -> int:
    """Check the kernels on every device, or on one."""
    from .worker.verify import verify

    return verify(given.full, given.seed, given.device)


def run_worker(given: Arguments) -> int:
    """Multiply for a Dask scheduler: a worker process per device of this machine, until the scheduler ends."""
    from .distributed import workers

    memory_bytes = given.memory_gib and given.memory_gib * 2**30
    security = workers.tls(given.tls_ca_file, given.tls_cert, given.tls_key)
    host = given.host or workers.LOOPBACK
    signal.signal(signal.SIGTERM, _interrupt)  # batch systems end jobs by it
    try:
        workers.serve(given.scheduler, given.device, memory_bytes, host=host, security=security)
    except KeyboardInterrupt:
        print("interrupted; the scheduler gives the work to others")
    return 0


def _interrupt(*_) -> None:
    """End as Ctrl-C does, which removes temporary files; once, because some programs send a signal twice."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise KeyboardInterrupt


def _needs_json(given: Arguments, *others: str) -> None:
    """Options about the record make no sense without one."""
    unused = [name for name in ("title", *others) if getattr(given, name) is not None]
    if unused and not given.json:
        raise ValueError(f"--{unused[0]} is about the record, and there is none without --json FILE")


def _command() -> str:
    """What was typed, files by their names only."""
    return "python -m gemmlab " + " ".join(word if "/" not in word else Path(word).name for word in sys.argv[1:])


#: Each command: what it takes, and what it does.
COMMANDS = {
    "doctor": (_no_options, run_doctor),
    "bench": (_bench_options, run_bench),
    "tune": (_tune_options, run_tune),
    "compare": (_compare_options, run_compare),
    "record": (_record_options, run_record),
    "model": (_model_options, run_model),
    "verify": (_verify_options, run_verify),
    "worker": (_worker_options, run_worker),
}

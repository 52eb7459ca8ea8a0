"""The commands: `python -m gemmlab doctor | bench | verify`."""

from __future__ import annotations

import argparse
import platform
import sys
from pathlib import Path

from tqdm import tqdm

from . import __version__
from .catalog import catalog


def main(arguments: list[str] | None = None) -> int:
    """Run a command; return 0 if all went well."""
    parser = argparse.ArgumentParser(prog="python -m gemmlab", description=__doc__)
    parser.add_argument("--version", action="version", version=__version__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("doctor", help="which devices there are, whether they work, and what to do if not")
    bench = commands.add_parser("bench", help="check and time kernels; optionally record the results")
    bench.add_argument("--kernels", type=_numbers, default=list(catalog), help="such as 1-3,10,auto (default: all)")
    bench.add_argument("--sizes", type=_sizes, default=[256, 512], help="such as 256,512,64x8192x1024 (M x N x K)")
    bench.add_argument("--params", type=_settings, default={}, help="such as TS=32,WPT=8, for kernels that have them")
    bench.add_argument("--device", help="an index or part of a name")
    bench.add_argument("--repeats", type=int, help="timed runs (default: as many as fit 80 ms)")
    bench.add_argument("--json", metavar="FILE", help="write the results to FILE")
    bench.add_argument("--title", help="a short name of the device for charts (with --json)")
    bench.add_argument(
        "--cublas", action="store_true", help='also kernel="auto" side by side with cuBLAS SGEMM, by PyTorch'
    )
    bench.add_argument(
        "--clblast", metavar="LIBRARY", default="", help="likewise with CLBlast: its shared library, libclblast.so.1"
    )
    bench.add_argument("--tries", type=int, default=6, help="parameter sets of each kernel that a search begins with")
    strategies = ["pad", "guard", "shift", "auto"]
    bench.add_argument("--edges", default="pad", choices=strategies, help="the strategy whose kernels a search tries")
    bench.add_argument("--steps", type=int, default=100, help="how often at most it moves on from one of the best")
    bench.add_argument("--starts", type=_starts, default=[], help="more of them, such as TSM=96,TSN=96:TSM=32")
    bench.add_argument(
        "--precision", default="float32", choices=["float32", "tf32", "tf32x3"], help="whose kernels a search tries"
    )
    bench.add_argument("--calls", action="store_true", help="a search rates whole calls (quicker; no limit of time)")
    bench.add_argument("--search", metavar="FILE", help="find the best kernels for --sizes; add them to FILE")
    bench.add_argument("--chapters", metavar="FILE", help="record in FILE what the chapters show (or --kernels)")
    bench.add_argument(
        "--strategies", metavar="FILE", help="compare what to do at the edges, at --sizes; record in FILE"
    )
    verify = commands.add_parser("verify", help="check the kernels on every device")
    verify.add_argument("--full", action="store_true", help="everything instead of a sample, and all tests")
    verify.add_argument("--seed", type=int, default=0, help="of the sample")
    given = parser.parse_args(arguments)
    try:
        return {"doctor": doctor, "bench": run_bench, "verify": run_verify}[given.command](given)
    except (ValueError, TypeError, MemoryError, RuntimeError, OSError) as error:  # what the package refuses in words
        print(f"{parser.prog}: {error}", file=sys.stderr)
        return 2


def _numbers(text: str) -> list[int | str]:
    numbers = []
    for part in text.split(","):
        if part == "auto":
            numbers.append(part)
            continue
        first, _, last = part.partition("-")
        numbers += range(int(first), int(last or first) + 1)
    unknown = [n for n in numbers if n not in catalog and n != "auto"]
    if unknown:
        raise argparse.ArgumentTypeError(f"there is no kernel {unknown[0]}; there are {', '.join(map(str, catalog))}")
    return numbers


def _sizes(text: str) -> list:
    """Such as 256,512, or 1000-1100:7 for a range with a step; 64x8192x8192 for M, N and K that differ."""
    sizes = []
    for part in text.split(","):
        if "x" in part:
            m, n, k = part.split("x")
            sizes.append((int(m), int(n), int(k)))
            continue
        ends, _, step = part.partition(":")
        first, _, last = ends.partition("-")
        sizes += range(int(first), int(last or first) + 1, int(step or 1))
    return sizes


def _settings(text: str) -> dict[str, int]:
    return {name.strip(): int(value) for name, _, value in (part.partition("=") for part in text.split(","))}


def _starts(text: str) -> list[dict[str, int]]:
    return [_settings(part) for part in text.split(":")]


def doctor(given) -> int:
    """Say what there is, try it, and explain what is missing, with the command to type."""
    import pyopencl as cl

    from . import check, device
    from . import doctor as advice
    from .blas import matmul

    print(f"gemmlab {__version__}, pyopencl {cl.VERSION_TEXT}, Python {platform.python_version()}")
    works = 0
    for d in device.devices():
        a, b = check.exact_inputs(65, 33, 129)
        try:
            verdict = str(check.exact(matmul(a, b, device=d), a, b))
        except Exception as error:  # a device that fails must not hide the others
            verdict = f"{type(error).__name__}: {error}"
        works += verdict.startswith("right")
        print(f"device {d.index}: {d}, {d.units} compute units, {d.version}\n  a 65 x 33 x 129 product: {verdict}")
    for d in device.listed():
        if device.trouble(d):
            print(f"not used: {d.name.strip()}: {device.trouble(d)}")
    for finding in advice.findings():
        print(f"\n{finding}")
    if works:
        print(f"The default is {device.default_device()}; GEMMLAB_DEVICE or device= chooses another.")
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


def run_bench(given) -> int:
    """Measure; print one line a result; record if asked to."""
    from . import auto, bench, ceiling, device, record, rivals

    chosen = device.find_device(given.device)
    if given.search:
        return run_search(given, chosen)
    if given.chapters or given.strategies:
        return run_record(given, chosen)
    results, chosen_by_auto = [], []
    with tqdm(total=len(given.kernels) * len(given.sizes), unit="run", disable=None) as bar:
        for number in given.kernels:
            for size in given.sizes:
                if number == "auto":
                    kernel, settings = auto.choose(chosen, auto.dimensions(size))
                    params = dict(settings)
                else:
                    kernel, names = number, catalog[number].defaults
                    params = {n: v for n, v in given.params.items() if n in names} or None
                result = bench.measure(
                    kernel, *auto.dimensions(size), params=params, device=chosen, repeats=given.repeats
                )
                tqdm.write(f"{result}; error {result.error:.1e} (bound {result.bound:.1e})")
                (chosen_by_auto if number == "auto" else results).append(result)
                bar.update()
    beside = given.cublas or given.clblast
    more = rivals.recorded(given.sizes, chosen, given.clblast, given.cublas) if beside else {}
    if given.json:
        peaks = ceiling.peaks(chosen)
        command = _command()
        more |= {"auto": [record.entry(r) for r in chosen_by_auto]} if chosen_by_auto else {}
        record.save(given.json, results, command, title=given.title or chosen.name, peaks=vars(peaks), **more)
        print(f"wrote {given.json}")
    return 0 if all(r.ok for r in [*results, *chosen_by_auto]) else 1


def _command() -> str:
    """What was typed, files by their names only."""
    return "python -m gemmlab " + " ".join(word if "/" not in word else Path(word).name for word in sys.argv[1:])


def run_record(given, chosen) -> int:
    """Record what the chapters show of other devices: sweeps at the first of --sizes, or strategies at all of them."""
    from . import curves, edges, record

    oblong = [size for size in given.sizes if not isinstance(size, int)]
    if oblong:
        raise ValueError(f"--sizes with --chapters or --strategies are of square matrices, not {oblong[0]}")
    head = {"title": given.title or chosen.name, **record.origin(_command()), "device": chosen.facts()}
    if given.chapters:
        if given.kernels == list(catalog):
            found = curves.record_all(chosen, given.sizes[0])
        else:
            found = curves.record_curves(chosen, given.sizes[0], given.kernels)
        record.write(given.chapters, head | found)
    if given.strategies:
        found = edges.compare(given.sizes, chosen, given.repeats)
        record.write(given.strategies, head | {"strategies": found})
        for size in given.sizes:
            print(f"{size}: " + ", ".join(f"{way} {r[size]['gflops']:,.1f}" for way, r in found.items()))
    return 0


def run_search(given, chosen) -> int:
    """Make rows of the table behind kernel="auto"."""
    from . import search

    options = {name: getattr(given, name) for name in ("tries", "edges", "precision", "starts", "steps", "calls")}
    search.fill(given.search, given.sizes, chosen, _command(), among=given.kernels, **options)
    return 0


def run_verify(given) -> int:
    from .verify import verify

    return verify(given.full, given.seed)

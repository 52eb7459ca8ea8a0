"""What the simulator adds to a measurement: a race that a CPU hides, or why a text is wrong.

It runs the product that was asked for, in some of its work-groups and as far as its time allows, so
whatever it finds there is true of that product. A smaller product only supplements this: what it
shows is reported with its sizes, and never decides a verdict.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import product
from math import gcd, lcm, prod
from typing import Any

from clscope import Finding, TextError

from ..ladder import KernelSpec, Key, find, sources
from ..ladder.spec import round_up
from ..simulation import LaunchError, ProductRun, shrunk, simulate

Sizes = tuple[int, int, int]
#: What `look` takes of the arguments of a measurement.
ARGUMENTS = ("kernel", "m", "n", "k", "params", "source")
#: Seconds of processor time for the product that was asked for, and for a smaller one.
SECONDS, SECONDS_SMALLER = 1.5, 1.0
#: Elements of A and B together, above which only a smaller product is simulated.
MOST_ELEMENTS = 1 << 23
#: Work-items up to which all work-groups of a product are simulated.
MOST_ITEMS = 1 << 14
#: Other work-groups that are simulated, beside those at the ends.
BETWEEN = 3
#: Sizes of a smaller product keep their divisors up to these: of M and N, and of K.
DIVISORS = 16, 16, 64


class Refused(ValueError):
    """A text that must not be launched; the message says why, with the line."""


@dataclass(frozen=True)
class Seen:
    """What the simulator reports on a text, where it is not simply right.

    Attributes:
        why: the first finding in the product that was asked for, in a sentence with its line;
            count: how many findings there are; endless: whether it is a loop without an end.
        unread: why the simulator could not run the text at all.
        unfinished: what it did not look at, because a limit was reached.
        elsewhere: the first finding in a smaller product, with its sizes.
        right: an element that the simulator computed right, and a device wrong.
    """

    why: str = ""
    count: int = 0
    endless: bool = False
    unread: str = ""
    unfinished: str = ""
    elsewhere: str = ""
    right: str = ""

    def __str__(self) -> str:
        others = self.count - 1
        more = f" (and {others} more finding{'s' * (others > 1)})" if others > 0 else ""
        parts = [self.why + more] if self.why else []
        if self.unread:
            parts.append(f"the simulator did not look for races: {self.unread}")
        if self.unfinished:
            parts.append(f"the simulator saw only a part: {self.unfinished}")
        if self.elsewhere:
            parts.append(self.elsewhere)
        if self.right:
            parts.append(
                f"the simulator computes {self.right} right, so the device's compiler may be at "
                "fault"
            )
        return "; ".join(parts)


def is_edited(kernel: Key, source: str | None) -> bool:
    """Whether a text differs from the kernel's own, which the tests have looked at, as a file or as
    a cell has it.
    """
    if source is None:
        return False
    own = sources.read(find(kernel).file)
    return source.strip() not in (own.strip(), sources.code(own))


def look(  # noqa: PLR0913
    kernel: Key,
    m: int,
    n: int | None = None,
    k: int | None = None,
    params: Mapping[str, int] | None = None,
    source: str | None = None,
    seconds: float = SECONDS,
    local_memory: int | None = None,
) -> Seen | None:
    """Run a text in the simulator on an m x n x k product; None if nothing is wrong with it.

    Args:
        kernel, m, n, k, params, source: as for a measurement.
        seconds: processor time for that product; a smaller one may take `SECONDS_SMALLER` more.
        local_memory: bytes that the device gives to a work-group, if they are known.

    Raises:
        Refused: if the parameters of the text do not fit a product, or it declares more memory.
    """
    try:
        spec = find(kernel)
        full = spec.complete(params)
        sizes = _taken(spec, full, (m, m if n is None else n, m if k is None else k))
        options = {"source": source, "seconds": seconds, "local_memory": local_memory}
        asked = _asked(spec, sizes, full, _some_groups(spec, sizes, full), **options)
        if asked is None:
            unfinished = f"{' x '.join(map(str, sizes))} is too large to simulate"
        elif asked.findings:
            return _seen(asked)
        elif asked.unfinished:
            unfinished = _sentence(asked.unfinished)
        else:
            return None
        return Seen(unfinished=unfinished, elsewhere=_elsewhere(spec, sizes, full, source))
    except LaunchError as error:
        raise Refused(f"line {error.line}: {error.message}") from None
    except TextError as error:
        why = error.message if not error.known else f"it does not take the text, {error.message}"
        return Seen(unread=f"line {error.line}: {why}")
    except (ValueError, MemoryError, TimeoutError) as error:
        return Seen(unread=str(error))
    except Exception as error:  # whatever is wrong in the simulator must not hurt a measurement
        return Seen(unread=f"it failed with {type(error).__name__}: {error}")


def explain(  # noqa: PLR0913
    kernel: Key,
    m: int,
    n: int | None = None,
    k: int | None = None,
    params: Mapping[str, int] | None = None,
    source: str | None = None,
    seen: Seen | None = None,
    first_wrong: tuple[int, int] | None = None,
) -> Seen | None:
    """Why a device computes a wrong product with this text, from a smaller product, or from the
    work-group that computes the first wrong element; `seen` if neither shows it.

    Args:
        kernel, m, n, k, params, source: as for a measurement.
        seen: what `look` reported.
        first_wrong: row and column of the first element that is wrong.
    """
    if seen and (seen.why or seen.unread or seen.elsewhere):
        return seen
    with suppress(ValueError, MemoryError, TimeoutError):
        spec = find(kernel)
        full = spec.complete(params)
        sizes = _taken(spec, full, (m, m if n is None else n, m if k is None else k))
        smaller = _smaller(spec, sizes, full)
        run = _run(spec, smaller, full, source=source, seconds=SECONDS_SMALLER)
        if run.findings and smaller == sizes:
            return _seen(run)
        if run.findings:
            return Seen(elsewhere=_at(smaller, run))
        if first_wrong is not None and seen is None:
            return _computed(spec, sizes, full, source, first_wrong)
    return seen


def _computed(
    spec: KernelSpec,
    sizes: Sizes,
    params: dict[str, int],
    source: str | None,
    at: tuple[int, int],
) -> Seen | None:
    """That the simulator computes an element right, if its work-group does so without a finding."""
    group = [position // tile for position, tile in zip(at, spec.tiles(params)[:2], strict=True)]
    options = {"source": source, "seconds": SECONDS_SMALLER}
    run = _asked(spec, sizes, params, [tuple(group)], **options)
    if run is None or not run.ok or run.c[at] != run.expected[at]:
        return None
    return Seen(right=f"C({at[0]}, {at[1]})")


def closely(
    kernel: Key, params: Mapping[str, int] | None = None, source: str | None = None
) -> ProductRun:
    """Run a text in the simulator on two by two of the smallest work-groups like those of `params`,
    for a picture.

    A text that is right only with the parameters themselves, because a number is written in it,
    runs with these.

    Raises:
        ValueError: if the text is no kernel (a `TextError`), or the parameters are not the
            kernel's.
        TimeoutError: if translating it takes too long.
    """
    spec = find(kernel)
    small, full = shrunk(spec, params), spec.validate(params)

    def run(chosen: dict[str, int]) -> ProductRun:
        m, n, k = (2 * tile if tile > 1 else 8 for tile in spec.tiles(chosen))
        return simulate(spec, m, n, k, chosen, source, seconds=2.5)

    with suppress(TextError):
        found = run(small)
        if found.ok or small == full:
            return found
        whole = run(full)
        return whole if whole.ok else found
    return run(full)


def _taken(spec: KernelSpec, params: dict[str, int], sizes: Sizes) -> Sizes:
    """The sizes that the text sees: whole tiles, where matrices are padded."""
    limits = zip(sizes, spec.multiples(params), spec.minimum_sizes(params), strict=True)
    m, n, k = (max(round_up(size, multiple), least) for size, multiple, least in limits)
    return m, n, k


def _asked(
    spec: KernelSpec,
    sizes: Sizes,
    params: dict[str, int],
    groups: list[tuple[int, ...]] | None,
    **options: Any,
) -> ProductRun | None:
    """The product that was asked for, in some of its work-groups; None if it is too large."""
    m, n, k = sizes
    if m * k + k * n > MOST_ELEMENTS or m * n > MOST_ELEMENTS:
        return None
    return _run(spec, sizes, params, groups=groups, **options)


def _run(spec: KernelSpec, sizes: Sizes, params: dict[str, int], **options: Any) -> ProductRun:
    """A simulation without its log, which is large, and part of reference cycles."""
    run = simulate(spec, *sizes, params, **options)
    run.log.clear()
    return run


def _some_groups(
    spec: KernelSpec, sizes: Sizes, params: dict[str, int]
) -> list[tuple[int, ...]] | None:
    """All work-groups (None) where they are few, or hand partial sums to each other; else the first
    two and the last in each dimension, and some between.
    """
    local, launch = spec.local_size(params), spec.global_size(*sizes[:2], params)
    counts = [whole // part for whole, part in zip(launch, local, strict=True)]
    if prod(launch) <= MOST_ITEMS or spec.takes_workspace:
        return None
    ends = [{0, min(1, count - 1), count - 1} for count in counts]
    draw = random.Random(0)
    between = [tuple(draw.randrange(count) for count in counts) for _ in range(BETWEEN)]
    return sorted({*product(*ends), *between})


def _elsewhere(spec: KernelSpec, sizes: Sizes, params: dict[str, int], source: str | None) -> str:
    """The first finding in a smaller product, with its sizes."""
    smaller = _smaller(spec, sizes, params)
    run = _run(spec, smaller, params, source=source, seconds=SECONDS_SMALLER)
    return _at(smaller, run) if run.findings else ""


def _smaller(spec: KernelSpec, sizes: Sizes, params: dict[str, int]) -> Sizes:
    """Sizes of two tiles along M, three along N, and enough along K to overwrite every buffer. They
    keep the remainder of the asked sizes in a tile, and their divisors up to `DIVISORS`.
    """
    counts = 2, 3, params.get("STAGES", 2) + 1
    limits = zip(
        sizes, spec.tiles(params), counts, DIVISORS, spec.minimum_sizes(params), strict=True
    )
    m, n, k = (
        min(size, max(least, round_up(count * tile, lcm(tile, gcd(size, divisor))) + size % tile))
        for size, tile, count, divisor, least in limits
    )
    return m, n, k


def _seen(run: ProductRun) -> Seen:
    first = run.findings[0]
    unfinished = _sentence(run.unfinished) if run.unfinished else ""
    endless = first.kind == "endless loop"
    return Seen(_sentence(first), len(run.findings), endless, unfinished=unfinished)


def _at(sizes: Sizes, run: ProductRun) -> str:
    m, n, k = sizes
    return f"at M = {m}, N = {n}, K = {k} this text would be wrong: {_sentence(run.findings[0])}"


def _sentence(finding: Finding) -> str:
    where = f"line {finding.line}: " if finding.line else ""
    through = f" (in the macro {finding.macro})" if finding.macro else ""
    return f"{where}{finding.message}{through}"

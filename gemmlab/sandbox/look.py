"""What the simulator adds to a measurement: a race that a CPU hides, or why a kernel is wrong.

It runs the product of the measurement, in some of its work-groups and as far as its time allows, so
whatever it sees there is true of that product. A smaller product only supplements this: what it
shows is reported with its sizes, and never decides a verdict.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import product
from math import gcd, lcm, prod
from typing import Any

from clscope import Finding, TextError

from ..ladder import KernelSpec, Key, find, sources
from ..ladder.spec import positive, round_up
from ..simulation import LaunchError, ProductRun, shrunk, simulate

Sizes = tuple[int, int, int]
Groups = list[tuple[int, ...]]
#: The arguments of a measurement that make a `Case`.
ARGUMENTS = ("kernel", "m", "n", "k", "params", "source")
#: Seconds of processor time for the product of the measurement, and for a smaller one.
SECONDS, SECONDS_SMALLER = 1.5, 1.0
#: Elements of A and B together, or of C, above which only a smaller product is simulated.
MOST_ELEMENTS = 1 << 23
#: Work-items up to which all work-groups of a product are simulated.
MOST_ITEMS = 1 << 14
#: Other work-groups that are simulated, beside those at the ends.
BETWEEN = 3
#: Sizes of a smaller product keep their divisors up to these: of M and N, and of K.
DIVISORS = 16, 16, 64


class Refused(ValueError):
    """A kernel must not be launched; the message says why, with the line."""


@dataclass(frozen=True)
class Seen:
    """What the simulator reports on a kernel in which it does not find everything right.

    Attributes:
        why: the first finding in the product of the measurement, in a sentence with its line.
        count: the number of findings.
        endless: whether the first one is a loop without an end.
        unread: why the simulator could not run the kernel at all.
        unfinished: what it did not look at, because a limit was reached.
        elsewhere: the first finding in a smaller product, with its sizes.
        right: an element that the device computes wrongly, and the simulator right.
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


@dataclass(frozen=True)
class Case:
    """A kernel's source code (None for that of its file), and the product that it runs on.

    `sizes` are M, N and K as the kernel sees them: whole tiles, where matrices are padded.
    """

    spec: KernelSpec
    sizes: Sizes
    params: dict[str, int]
    source: str | None = None

    @classmethod
    def of(
        cls,
        kernel: Key,
        m: int,
        n: int | None = None,
        k: int | None = None,
        params: Mapping[str, int] | None = None,
        source: str | None = None,
    ) -> Case:
        """Return the case of a measurement with these arguments. Raises ValueError or TypeError for
        those that `gemmlab.measure` refuses.
        """
        spec = find(kernel)
        full = spec.complete(params)
        m = positive("m", m)
        n, k = (positive("n, k", m if size is None else size) for size in (n, k))
        return cls(spec, spec.supported_sizes(m, n, k, full), full, source)

    def simulate(self, groups: Groups | None = None, **limits: Any) -> ProductRun:
        """Simulate some work-groups, or all; `limits` are those of `gemmlab.simulate`."""
        run = simulate(self.spec, *self.sizes, self.params, self.source, groups=groups, **limits)
        run.log.clear()  # it is large, and part of reference cycles
        return run

    @property
    def is_large(self) -> bool:
        """Whether the matrices are too large to simulate."""
        m, n, k = self.sizes
        return m * k + k * n > MOST_ELEMENTS or m * n > MOST_ELEMENTS

    def groups(self) -> Groups | None:
        """Return the work-groups to simulate: all (None) where they are few, or hand partial sums
        to each other; else the first two and the last in each dimension, and some between.
        """
        local = self.spec.local_size(self.params)
        launch = self.spec.global_size(*self.sizes[:2], self.params)
        if prod(launch) <= MOST_ITEMS or self.spec.takes_workspace:
            return None
        counts = [whole // part for whole, part in zip(launch, local, strict=True)]
        ends = [{0, min(1, count - 1), count - 1} for count in counts]
        draw = random.Random(0)
        between = [tuple(draw.randrange(count) for count in counts) for _ in range(BETWEEN)]
        return sorted({*product(*ends), *between})

    def smaller(self) -> Case:
        """Return the case with two tiles along M, three along N, and enough along K to overwrite
        every buffer. Sizes keep their remainder in a tile, and their divisors up to `DIVISORS`.
        """
        counts = 2, 3, self.params.get("STAGES", 2) + 1
        tiles, least = self.spec.tiles(self.params), self.spec.minimum_sizes(self.params)
        sides = zip(self.sizes, tiles, counts, DIVISORS, least, strict=True)
        m, n, k = (
            min(size, max(low, round_up(count * tile, lcm(tile, gcd(size, div))) + size % tile))
            for size, tile, count, div, low in sides
        )
        return replace(self, sizes=(m, n, k))


def is_edited(kernel: Key, source: str | None) -> bool:
    """Whether source code differs from the kernel's, which the tests have looked at, as a file or
    as a cell has it.
    """
    if source is None:
        return False
    original = sources.read(find(kernel).file)
    return source.strip() not in (original.strip(), sources.code(original))


def look(case: Case, seconds: float = SECONDS, local_memory: int | None = None) -> Seen | None:
    """Run a case in the simulator; return None if nothing is wrong with it.

    Args:
        case: a kernel and its product.
        seconds: processor time for that product; a smaller one may take `SECONDS_SMALLER` more.
        local_memory: bytes that the device gives to a work-group; None for any number.

    Raises:
        Refused: if the parameters of the kernel do not fit a product, or it declares more memory.
    """
    try:
        if case.is_large:
            unfinished = f"{' x '.join(map(str, case.sizes))} is too large to simulate"
        else:
            run = case.simulate(case.groups(), seconds=seconds, local_memory=local_memory)
            if run.findings:
                return _seen(run)
            if not run.unfinished:
                return None
            unfinished = _sentence(run.unfinished)
        smaller = case.smaller()
        run = smaller.simulate(seconds=SECONDS_SMALLER)
        elsewhere = _at(smaller, run) if run.findings else ""
        return Seen(unfinished=unfinished, elsewhere=elsewhere)
    except LaunchError as error:
        raise Refused(f"line {error.line}: {error.message}") from None
    except TextError as error:
        why = error.message if not error.known else f"it does not take the text, {error.message}"
        return Seen(unread=f"line {error.line}: {why}")
    except (ValueError, MemoryError, TimeoutError) as error:
        return Seen(unread=str(error))
    except Exception as error:  # whatever is wrong in the simulator must not hurt a measurement
        return Seen(unread=f"it failed with {type(error).__name__}: {error}")


def explain(case: Case, seen: Seen | None, first_wrong: tuple[int, int] | None) -> Seen | None:
    """Explain why a device computes a wrong product, by a smaller product or by the work-group that
    computes the first wrong element; return `seen` if neither says more.

    Args:
        case: a kernel and its product.
        seen: what `look` reported on it.
        first_wrong: row and column of the first wrong element.
    """
    if seen and (seen.why or seen.unread or seen.elsewhere):
        return seen
    with suppress(ValueError, MemoryError, TimeoutError):
        smaller = case.smaller()
        run = smaller.simulate(seconds=SECONDS_SMALLER)
        if run.findings:
            return _seen(run) if smaller == case else Seen(elsewhere=_at(smaller, run))
        if first_wrong and not seen and not case.is_large:
            rows, columns, _ = case.spec.tiles(case.params)
            group = first_wrong[0] // rows, first_wrong[1] // columns
            run = case.simulate([group], seconds=SECONDS_SMALLER)
            if run.ok and run.c[first_wrong] == run.expected[first_wrong]:
                return Seen(right="C({}, {})".format(*first_wrong))
    return seen


def simulate_small(
    kernel: Key, params: Mapping[str, int] | None = None, source: str | None = None
) -> ProductRun:
    """Run a kernel in the simulator on two by two of the smallest work-groups like those of
    `params`, for a picture.

    A kernel that is right only with the parameters themselves, because its source code contains one
    of these numbers, runs with these.

    Raises:
        ValueError: if the source code is not a kernel (a `TextError`), or the parameters are not
            the kernel's.
        TimeoutError: if translating it takes too long.
    """
    spec = find(kernel)
    small, full = shrunk(spec, params), spec.validate(params)

    def run(chosen: dict[str, int]) -> ProductRun:
        m, n, k = (2 * tile if tile > 1 else 8 for tile in spec.tiles(chosen))
        return simulate(spec, m, n, k, chosen, source, seconds=2.5)

    with suppress(TextError):
        shrunken = run(small)
        if shrunken.ok or small == full:
            return shrunken
        whole = run(full)
        return whole if whole.ok else shrunken
    return run(full)


def _seen(run: ProductRun) -> Seen:
    first = run.findings[0]
    unfinished = _sentence(run.unfinished) if run.unfinished else ""
    endless = first.kind == "endless loop"
    return Seen(_sentence(first), len(run.findings), endless, unfinished=unfinished)


def _at(case: Case, run: ProductRun) -> str:
    m, n, k = case.sizes
    return f"at M = {m}, N = {n}, K = {k} this text would be wrong: {_sentence(run.findings[0])}"


def _sentence(finding: Finding) -> str:
    where = f"line {finding.line}: " if finding.line else ""
    through = f" (in the macro {finding.macro})" if finding.macro else ""
    return f"{where}{finding.message}{through}"

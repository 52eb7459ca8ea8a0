"""What the simulator adds to a measurement: a race that a CPU hides, or why a text is wrong."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass

from .. import simt
from ..ladder import KernelSpec, Key, find

#: What `look` takes of the arguments of a measurement.
ARGUMENTS = ("kernel", "m", "n", "k", "params", "source")
#: Seconds after which the simulator gives up.
SECONDS = 2.5


@dataclass(frozen=True)
class Seen:
    """The findings in a text: `why` is the first in a sentence with its line, `count` their number.

    With a count of 0 the simulator did not run the text, and `why` gives the reason.
    """

    why: str
    count: int

    @property
    def unread(self) -> bool:
        """Whether the simulator could not read or finish the text: it may have races."""
        return self.count == 0

    def __str__(self) -> str:
        if self.unread:
            return f"the simulator did not look for races: {self.why}"
        others = self.count - 1
        return self.why + (f" (and {others} more finding{'s' * (others > 1)})" if others else "")


def look(  # noqa: PLR0913
    kernel: Key,
    m: int,
    n: int | None = None,
    k: int | None = None,
    params: Mapping[str, int] | None = None,
    source: str | None = None,
    seconds: float = SECONDS,
    tiles: tuple[int, int] = (1, 1),
) -> Seen | None:
    """Run a text in the simulator on a tile or two of an m x n x k product; None if nothing is
    wrong.

    `tiles` is how many of them along m and n. A text that the simulator cannot read, or not in
    `seconds`, gives a `Seen` that says so. Never raises.
    """
    try:
        spec = find(kernel)
        full = spec.complete(params)
        rows, columns, steps = _few_tiles(spec, full, (m, n or m, k or m), tiles)
        findings = simt.simulate(spec, rows, columns, steps, full, source, seconds=seconds).findings
    except simt.TextError as error:
        why = error.message if not error.known else f"it does not take the text, {error.message}"
        return Seen(f"line {error.line}: {why}", 0)
    except (ValueError, MemoryError, TimeoutError) as error:
        return Seen(str(error), 0)
    except Exception as error:  # whatever is wrong in the simulator must not hurt a measurement
        return Seen(f"it failed with {type(error).__name__}: {error}", 0)
    if not findings:
        return None
    first = findings[0]
    where = f"line {first.line}: " if first.line else ""
    through = f" (in the macro {first.macro})" if first.macro else ""
    return Seen(f"{where}{first.message}{through}", len(findings))


def closely(
    kernel: Key, params: Mapping[str, int] | None = None, source: str | None = None
) -> simt.ProductRun:
    """Run a text in the simulator on two by two of the smallest work-groups like those of `params`,
    for a picture.

    A text that is right only with the parameters themselves, because a number is written in it,
    runs with these.

    Raises:
        ValueError: if the text is no kernel (a `TextError`), or the parameters are not the
            kernel's.
        TimeoutError: if it takes too long.
    """
    spec = find(kernel)
    small, full = simt.shrunk(spec, params), spec.validate(params)

    def run(chosen: dict[str, int]) -> simt.ProductRun:
        m, n, k = (2 * tile if tile > 1 else 8 for tile in spec.tiles(chosen))
        return simt.simulate(spec, m, n, k, chosen, source, seconds=SECONDS)

    with suppress(simt.TextError):
        found = run(small)
        if found.ok or small == full:
            return found
        whole = run(full)
        return whole if whole.ok else found
    return run(full)


def _few_tiles(
    spec: KernelSpec, params: dict[str, int], sizes: tuple[int, int, int], tiles: tuple[int, int]
) -> list[int]:
    """Sizes that show what larger ones would: a tile, its edge, enough steps along k to race."""
    steps = params.get("STAGES", 1) + 1
    few = []
    for size, tile, most, least, multiple in zip(
        sizes,
        spec.tiles(params),
        (*tiles, steps),
        spec.minimum_sizes(params),
        spec.multiples(params),
        strict=True,
    ):
        edge = 0 if spec.edges == "pad" else size % tile
        wanted = max(4, most * tile) + edge if tile == 1 else most * tile + edge
        few.append(-(-max(min(size, wanted), least) // multiple) * multiple)
    return few

"""Rules that several records share: what must divide what, with a sentence for when it does not."""

from __future__ import annotations

from .spec import Rule

WIDTH_UP_TO_8 = Rule("8 % WIDTH == 0", "WIDTH={WIDTH} is none of 1, 2, 4 and 8")
SQUARE = Rule("TSM == TSN", "TSM={TSM} and TSN={TSN} differ; this kernel fills both tiles with one loop (10 does not)")


def multiple(of: str, *factors: str) -> Rule:
    """`of` must be a multiple of the product of `factors`."""
    product = " * ".join(factors)
    test = f"{of} % {product} == 0" if len(factors) == 1 else f"{of} % ({product}) == 0"
    values = "*".join(f"{f}={{{f}}}" for f in factors)
    return Rule(test, f"{of}={{{of}}} is not a multiple of {values}")


def even(tile: str, *width: str) -> Rule:
    """The elements (or vectors) of a tile must be shared out evenly among the work-items."""
    product = " * ".join((tile, *width))
    test = f"(TSK * WPTM * WPTN) % {tile} == 0" if not width else f"(TSK * WPTM * WPTN) % ({product}) == 0"
    values = " times ".join(f"{p}={{{p}}}" for p in (tile, *width))
    broken = (
        f"uneven shares of a tile: TSK={{TSK}} times WPTM={{WPTM}} times WPTN={{WPTN}} is not a multiple of {values}"
    )
    return Rule(test, broken)

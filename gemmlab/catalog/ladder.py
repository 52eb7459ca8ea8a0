"""Kernels 1 to 13: the tutorial's ladder, and what is done about the edges."""

from __future__ import annotations

from dataclasses import replace

from .rules import SQUARE, WIDTH_UP_TO_8, even, multiple
from .spec import KernelSpec, Param, Parameters, Params, Rule, Rules, Switch

TS = Param("TS", 32, "side of the square tiles of A, B and C, in elements", (4, 8, 12, 16, 20, 24, 32))
WPT = Param("WPT", 8, "elements of C a work-item computes, all in one row", (1, 2, 4, 8, 16))
TSK = Param("TSK", 16, "depth of the tiles of A and B, in steps of k", (8, 16, 32))
PAD = Param("PAD", 2, "floats added to each row of Btile against bank conflicts", (0, 1, 2), least=0)
TSM = Param("TSM", 128, "rows of the tile of C", (32, 64, 128, 160))
TSN = Param("TSN", 128, "columns of the tile of C", (32, 64, 128, 160))
WPTM = Param("WPTM", 8, "rows of C a work-item computes", (2, 4, 8, 10))
WPTN = Param("WPTN", 8, "columns of C a work-item computes", (2, 4, 8, 10))
WIDTH = Param("WIDTH", 4, "floats in a vector loaded from global memory: 1, 2, 4 or 8", (1, 2, 4, 8))
UNROLL = Param("UNROLL", 4, "steps of k that the compiler lays out in one turn of the loop", (1, 4, 16))
READONLY = Param("READONLY", 0, "1: load A and B through the read-only cache where the device can", (0, 1), least=0)
SHUFFLE = Param(
    "SHUFFLE", 0, "1: share B among neighbours from register to register where the device can", (0, 1), least=0
)


class Naive(KernelSpec):
    """One work-item computes one element of C."""

    number, file = 1, "01_naive.cl"
    params: Parameters = (replace(TS, meaning="side of the square of C that a work-group covers, in elements"),)

    def tiles(self, p: Params) -> tuple[int, int, int]:
        return p["TS"], p["TS"], 1

    def local_size(self, p: Params) -> tuple[int, int]:
        return p["TS"], p["TS"]

    def global_loads(self, p: Params) -> float:
        return 2.0


class Tiled(Naive):
    """A work-group fetches tiles of A and B into local memory once, and shares them."""

    number, before, file = 2, 1, "02_tiled.cl"
    params: Parameters = (TS,)

    def tiles(self, p: Params) -> tuple[int, int, int]:
        return p["TS"], p["TS"], p["TS"]

    def local_memory(self, p: Params) -> int:
        return 4 * 2 * p["TS"] * p["TS"]

    def global_loads(self, p: Params) -> float:
        return 2 / p["TS"]

    def local_loads(self, p: Params) -> float:
        return 2.0


class WorkPerThread(Tiled):
    """A work-item computes WPT elements of C, so that one load of A serves WPT multiply-adds."""

    number, before, file = 3, 2, "03_work_per_thread.cl"
    params: Parameters = (replace(TS, choices=(*TS.choices, 64)), WPT)
    rules: Rules = (multiple("TS", "WPT"),)

    def local_size(self, p: Params) -> tuple[int, int]:
        return p["TS"], p["TS"] // p["WPT"]

    def local_loads(self, p: Params) -> float:
        return 1 + 1 / p["WPT"]


class VectorTypes(Tiled):
    """Vectors of WIDTH floats for load, compute and store."""

    number, before, file = 4, 3, "04_vector_types.cl"
    params: Parameters = (
        replace(TS, choices=(8, 16, 24, 32, 64)),
        replace(WIDTH, meaning="floats in a vector: 1, 2, 4 or 8"),
    )
    rules: Rules = (WIDTH_UP_TO_8, multiple("TS", "WIDTH"))

    def local_size(self, p: Params) -> tuple[int, int]:
        return p["TS"] // p["WIDTH"], p["TS"]

    def local_loads(self, p: Params) -> float:
        return 1 + 1 / p["WIDTH"]


class RectangularTiles(WorkPerThread):
    """B transposed beforehand, tiles of depth TSK, local rows padded against bank conflicts."""

    number, before, file = 5, 3, "05_rectangular_tiles.cl"
    params: Parameters = (Param("TS", 32, "side of the square tile of C, in elements", (8, 16, 32, 64)), TSK, WPT, PAD)
    rules: Rules = (
        multiple("TS", "WPT"),
        Rule(
            "TSK % (TS / WPT) == 0", "TSK={TSK} is not a multiple of the columns of work-items, TS={TS} over WPT={WPT}"
        ),
    )

    def tiles(self, p: Params) -> tuple[int, int, int]:
        return p["TS"], p["TS"], p["TSK"]

    def local_memory(self, p: Params) -> int:
        return 4 * (p["TSK"] * p["TS"] + p["TS"] * (p["TSK"] + p["PAD"]))

    def wants_transposed(self, p: Params) -> bool:
        return True


class RegisterBlocking(RectangularTiles):
    """A work-item computes a WPTM x WPTN block of C in registers."""

    number, before, file = 6, 5, "06_register_blocking.cl"
    params: Parameters = (TSM, TSN, TSK, WPTM, WPTN, PAD, UNROLL)
    rules: Rules = (SQUARE, multiple("TSM", "WPTM"), multiple("TSN", "WPTN"), even("TSN"), multiple("TSK", "UNROLL"))

    def tiles(self, p: Params) -> tuple[int, int, int]:
        return p["TSM"], p["TSN"], p["TSK"]

    def local_size(self, p: Params) -> tuple[int, int]:
        return p["TSM"] // p["WPTM"], p["TSN"] // p["WPTN"]

    def local_memory(self, p: Params) -> int:
        return 4 * (p["TSK"] * p["TSM"] + p["TSN"] * (p["TSK"] + p["PAD"]))

    def global_loads(self, p: Params) -> float:
        return 1 / p["TSM"] + 1 / p["TSN"]

    def local_loads(self, p: Params) -> float:
        return 1 / p["WPTM"] + 1 / p["WPTN"]


class WideLoads(RegisterBlocking):
    """The tiles come from global memory as vectors of WIDTH floats."""

    number, before, file = 7, 6, "07_wide_loads.cl"
    params: Parameters = (TSM, TSN, TSK, WPTM, WPTN, WIDTH, UNROLL)
    rules: Rules = (
        SQUARE,
        WIDTH_UP_TO_8,
        multiple("TSM", "WPTM"),
        multiple("TSN", "WPTN"),
        multiple("TSM", "WIDTH"),
        multiple("TSN", "WIDTH"),
        even("TSN", "WIDTH"),
        multiple("TSK", "UNROLL"),
    )

    def local_memory(self, p: Params) -> int:
        return 4 * p["TSK"] * (p["TSM"] + p["TSN"])


class VendorFeatures(WideLoads):
    """Read-only loads, and shuffles between registers instead of local loads, where a device has them."""

    number, before, file = 8, 7, "08_vendor_features.cl"
    params: Parameters = (*WideLoads.params[:-1], READONLY, SHUFFLE, UNROLL)
    rules: Rules = (
        *WideLoads.rules,
        Rule("READONLY < 2", "READONLY={READONLY} is neither 0 nor 1"),
        Rule("SHUFFLE < 2", "SHUFFLE={SHUFFLE} is neither 0 nor 1"),
        Rule(
            "SHUFFLE * WPTN <= TSM / WPTM",
            "SHUFFLE={SHUFFLE} needs WPTN={WPTN} to be at most TSM={TSM} over WPTM={WPTM}",
        ),
        Rule("SHUFFLE * 32 % (TSM / WPTM) == 0", "SHUFFLE={SHUFFLE} needs TSM={TSM} over WPTM={WPTM} to divide 32"),
    )
    switches = (
        Switch("READONLY", (("nvidia", "read-only loads (PTX ld.global.nc)"),)),
        Switch("SHUFFLE", (("nvidia", "shuffles (PTX shfl.sync)"), ("shuffle", "shuffles (sub-groups)"))),
    )


class Prefetch(WideLoads):
    """The next tile is fetched into a second local buffer while the first is multiplied."""

    number, before, file = 9, 7, "09_prefetch.cl"

    def local_memory(self, p: Params) -> int:
        return 4 * 2 * p["TSK"] * (p["TSM"] + p["TSN"])


class AnySize(Prefetch):
    """TSM and TSN free of each other, and any size by padding."""

    number, before, file = 10, 9, "10_any_size.cl"
    rules: Rules = (*Prefetch.rules[1:7], even("TSM", "WIDTH"), Prefetch.rules[7])


class RegisterOnly(Naive):
    """Blocks straight from global memory into registers, no local memory."""

    number, before, file = 11, 10, "11_register_only.cl"
    params: Parameters = (
        Param("RX", 8, "rows of C a work-item computes", (4, 8, 16, 32, 48)),
        Param("RY", 4, "columns of C a work-item computes", (2, 4, 8, 12)),
        Param("RK", 1, "steps of k in one turn of the loop", (1, 2, 4)),
        Param("WIDTH", 4, "floats in a vector: 1, 2, 4, 8 or 16", (1, 2, 4, 8, 16)),
        Param("GX", 8, "rows of work-items in a work-group", (1, 2, 4, 8, 16)),
        Param("GY", 8, "columns of work-items", (1, 4, 8, 16)),
        Param("TRANSPOSED", 1, "1: B is N x K; 0: B is K x N", (0, 1), least=0),
    )
    rules: Rules = (
        Rule("16 % WIDTH == 0", "WIDTH={WIDTH} is none of 1, 2, 4, 8 and 16"),
        multiple("RX", "WIDTH"),
        Rule("TRANSPOSED < 2", "TRANSPOSED={TRANSPOSED} is neither 0 nor 1"),
    )

    def tiles(self, p: Params) -> tuple[int, int, int]:
        return p["RX"] * p["GX"], p["RY"] * p["GY"], p["RK"]

    def local_size(self, p: Params) -> tuple[int, int]:
        return p["GX"], p["GY"]

    def global_loads(self, p: Params) -> float:
        return 1 / p["RX"] + 1 / p["RY"]

    def wants_transposed(self, p: Params) -> bool:
        return bool(p["TRANSPOSED"])


class Guarded(WorkPerThread):
    """Any size without a copy: what lies outside the matrix counts as zero."""

    number, before, file = 12, 3, "12_guarded.cl"
    edges = "guard"


class Shifted(AnySize):
    """Any size without a copy: the last tiles move back until they lie inside C."""

    number, before, file = 13, 10, "13_shifted.cl"
    params: Parameters = (TSM, TSN, TSK, WPTM, WPTN, UNROLL)
    rules: Rules = (
        multiple("TSM", "WPTM"),
        multiple("TSN", "WPTN"),
        even("TSN"),
        even("TSM"),
        multiple("TSK", "UNROLL"),
    )
    edges = "shift"


#: The kernels of this page, in order.
LADDER: tuple[KernelSpec, ...] = (
    Naive(),
    Tiled(),
    WorkPerThread(),
    VectorTypes(),
    RectangularTiles(),
    RegisterBlocking(),
    WideLoads(),
    VendorFeatures(),
    Prefetch(),
    AnySize(),
    RegisterOnly(),
    Guarded(),
    Shifted(),
)

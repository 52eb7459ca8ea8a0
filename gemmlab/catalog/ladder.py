"""Kernels 1 to 13: the tutorial's ladder, and what is done about the edges."""

from __future__ import annotations

from .spec import KernelSpec, Switch


class Naive(KernelSpec):
    """One work-item computes one element of C."""

    file = "01_naive.cl"
    tile = "TS, TS, 1"
    work_group = "TS, TS"
    loads = "2, 0"


class Tiled(KernelSpec):
    """A work-group fetches tiles of A and B into local memory once, and shares them."""

    file = "02_tiled.cl"
    tile = "TS, TS, TS"
    work_group = "TS, TS"
    local_floats = "2 * TS * TS"
    loads = "2 / TS, 2"


class WorkPerThread(KernelSpec):
    """A work-item computes WPT elements of C, so that one load of A serves WPT multiply-adds."""

    file = "03_work_per_thread.cl"
    tile = "TS, TS, TS"
    work_group = "TS, TS // WPT"
    local_floats = "2 * TS * TS"
    loads = "2 / TS, 1 + 1 / WPT"


class VectorTypes(KernelSpec):
    """Vectors of WIDTH floats for load, compute and store."""

    file = "04_vector_types.cl"
    tile = "TS, TS, TS"
    work_group = "TS // WIDTH, TS"
    local_floats = "2 * TS * TS"
    loads = "2 / TS, 1 + 1 / WIDTH"


class RectangularTiles(KernelSpec):
    """B transposed beforehand, tiles of depth TSK, local rows padded against bank conflicts."""

    file = "05_rectangular_tiles.cl"
    tile = "TS, TS, TSK"
    work_group = "TS, TS // WPT"
    local_floats = "TSK * TS + TS * (TSK + PAD)"
    loads = "2 / TS, 1 + 1 / WPT"
    b_transposed = True


class RegisterBlocking(KernelSpec):
    """A work-item computes a WPTM x WPTN block of C in registers."""

    file = "06_register_blocking.cl"
    tile = "TSM, TSN, TSK"
    work_group = "TSM // WPTM, TSN // WPTN"
    local_floats = "TSK * TSM + TSN * (TSK + PAD)"
    loads = "1 / TSM + 1 / TSN, 1 / WPTM + 1 / WPTN"
    b_transposed = True


class WideLoads(RegisterBlocking):
    """The tiles come from global memory as vectors of WIDTH floats."""

    file = "07_wide_loads.cl"
    local_floats = "TSK * (TSM + TSN)"


class VendorFeatures(WideLoads):
    """Read-only loads, and shuffles instead of local loads, where a device has them."""

    file = "08_vendor_features.cl"
    switches = (
        Switch("READONLY", (("nvidia", "read-only loads (PTX ld.global.nc)"),)),
        Switch(
            "SHUFFLE",
            (("nvidia", "shuffles (PTX shfl.sync)"), ("shuffle", "shuffles (sub-groups)")),
        ),
    )


class Prefetch(RegisterBlocking):
    """The next tile is fetched into a second local buffer while the first is multiplied."""

    file = "09_prefetch.cl"
    local_floats = "2 * TSK * (TSM + TSN)"


class AnySize(Prefetch):
    """TSM and TSN are independent of each other; padding serves any size."""

    file = "10_any_size.cl"


class RegisterOnly(KernelSpec):
    """Blocks straight from global memory into registers, no local memory."""

    file = "11_register_only.cl"
    tile = "RX * GX, RY * GY, RK"
    work_group = "GX, GY"
    loads = "1 / RX + 1 / RY, 0"


class Guarded(WorkPerThread):
    """Any size without a copy: elements outside the matrix count as zero."""

    file = "12_guarded.cl"
    edges = "guard"


class Shifted(Prefetch):
    """Any size without padding: the last tiles move back until they are inside C."""

    file = "13_shifted.cl"
    edges = "shift"


#: The kernels of this module, in order.
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

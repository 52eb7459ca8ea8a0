"""Kernels 15 to 19: past the end of the tutorial, one idea each."""

from __future__ import annotations

from .ladder import Prefetch
from .spec import KernelSpec, Params, Switch

#: Copies to local memory that do not keep a work-item waiting.
ASYNCHRONOUS = Switch(
    "ASYNC",
    (("nvidia", "asynchronous copies (PTX cp.async)"),),
    "asynchronous",
    "cannot copy to local memory without waiting (compute capability 8.0)",
)
#: Tensor cores, by an instruction of a warp.
MMA = Switch(
    "TENSOR",
    (("tensor", "tensor cores (PTX mma.sync)"),),
    "asynchronous",
    "has no tensor cores that take TF32 (compute capability 8.0)",
)
#: Tensor cores, by an instruction of a warpgroup.
WGMMA = Switch(
    "TENSOR",
    (("warpgroups", "tensor cores (PTX wgmma)"),),
    "warpgroups",
    "has no instructions for warpgroups (compute capability 9.0)",
)


class WarpTiles(Prefetch):
    """A compact block of C for each warp, read from local memory as vectors."""

    file = "15_warp_tiles.cl"
    work_group = "TSM // WPTM * (TSN // WPTN), 1"


class AsyncCopies(KernelSpec):
    """The next tiles are copied asynchronously, the next fragments loaded into registers."""

    file = "16_async_copies.cl"
    tile = "TSM, TSN, TSK"
    work_group = "TSM // WPTM * (TSN // 8), 1"
    local_floats = "STAGES * TSK * (TSM + TSN)"
    loads = "1 / TSM + 1 / TSN, 1 / WPTM + 1 / 8"
    b_transposed = True
    switches = (ASYNCHRONOUS,)


class StreamK(KernelSpec):
    """Equal work for all work-groups, and tiles in an order that suits the L2 cache."""

    file = "17_stream_k.cl"
    tile = "TSM, TSN, 8"
    work_group = "TSM // 16 * (TSN // 8), 1"
    local_floats = "3 * 8 * (TSM + TSN)"
    loads = "1 / TSM + 1 / TSN, 1 / 16 + 1 / 8"
    workspace_floats = "2 * GROUPS * TSM * TSN"  # two partial tiles for each work-group
    b_transposed = True
    one_dimensional = True
    switches = (ASYNCHRONOUS,)

    def needs_fixup(self, p: Params, features: frozenset[str]) -> bool:
        """Where tiles are shared."""
        return bool(p["GROUPS"])


class TensorCores(KernelSpec):
    """One instruction multiplies small matrices of TF32; two such numbers stand for a float."""

    file = "18_tensor_cores.cl"
    tile = "TSM, TSN, TSK"
    work_group = "TSM // 64 * (TSN // 64) * 32, 1"
    local_floats = "STAGES * TSK * (TSM + TSN + 16)"
    loads = "1 / TSM + 1 / TSN, 1 / 64 + 1 / 64"
    b_transposed = True
    tensor = True
    switches = (MMA,)


class Warpgroups(KernelSpec):
    """One instruction of four warps reads B from local memory and runs while they go on."""

    file = "19_warpgroups.cl"
    tile = "TSM, 128, TSK"
    work_group = "TSM, 1"
    local_floats = "4 * TSK * 130"
    loads = "1 / TSM + 1 / 128, 0"
    tensor = True
    switches = (WGMMA,)


#: The kernels of this module, in order.
BEYOND: tuple[KernelSpec, ...] = (
    WarpTiles(),
    AsyncCopies(),
    StreamK(),
    TensorCores(),
    Warpgroups(),
)

"""Kernels' texts with changes, and small parameters for each kernel: what several tests share."""

import dataclasses

from conftest import DEVICES, lacking

from gemmlab import catalog
from gemmlab.ladder import Limits, sources

#: What makes a device one that the table of choices has constants for.
H200 = {
    "name": "NVIDIA H200",
    "platform": "NVIDIA CUDA",
    "kind": "GPU",
    "units": 132,
    "limits": Limits("an H200", 1024, (1024, 1024, 64), 48 * 1024),
    "features": frozenset({"nvidia", "tensor", "warpgroups", "double"}),
}

BARRIER = "barrier(CLK_LOCAL_MEM_FENCE);"


#: Before a text: it takes the path in plain OpenCL C even where the compiler is NVIDIA's.
PORTABLE = "#undef __NV_CL_C_VERSION\n"


def portable(device):
    """A device without the features by which kernels take another path than the portable one."""
    features = device.features - {"nvidia", "tensor", "warpgroups"}
    return dataclasses.replace(device, features=features)


def edited(number: int | str, *edits: tuple[str, str]) -> str:
    """A kernel's text with changes, for a `portable` device; each old text must be there."""
    text = PORTABLE + sources.read(catalog[number].file)
    for old, new in edits:
        assert text.count(old) == 1, f"{old!r} is {text.count(old)} times in {catalog[number].file}"
        text = text.replace(old, new)
    return text


def without_barrier(number: int | str, *which: int) -> str:
    """A kernel's text without its first (1), second (2) ... barrier."""
    start, mark, kernel = sources.read(catalog[number].file).partition("__kernel __attribute__")
    parts = kernel.split(BARRIER)
    assert max((2, *which)) <= len(parts) <= 9
    text = start + mark + parts[0]
    for i, part in enumerate(parts[1:], 1):
        text += ("" if i in which else BARRIER) + part
    return text


def and_store(number: int, statement: str) -> tuple[str, str]:
    """An edit that adds a statement at the end of one of the first three kernels."""
    text = sources.read(catalog[number].file)
    last = text.rindex("\n}\n")
    end = text[last - 60 : last + 2]
    return end, f"{end[:-1]}    {statement}\n}}"


OUTSIDE = {
    "right behind C": "C[M*N] = 1.0f;",
    "right before C": "C[-1] = 1.0f;",
    "a little behind C": "if (get_global_id(0) == 0) C[M*N + 4095] = 1.0f;",
    "a little before C": "if (get_global_id(0) == 0) C[-4096] = 1.0f;",
}
BLOCKS = {"TSM": 8, "TSN": 8, "TSK": 8, "WPTM": 2, "WPTN": 2, "UNROLL": 1}
WARPS = {"TSM": 32, "TSN": 32, "TSK": 8, "WPTM": 4, "WPTN": 4, "WARPM": 8}
#: Parameters that compile, run and can be simulated in a moment; for the tutorial, tiles of 8.
SMALL: dict[int | str, dict[str, int]] = {
    1: {"TS": 8},
    2: {"TS": 8},
    3: {"TS": 8, "WPT": 4},
    4: {"TS": 8, "WIDTH": 4},
    5: {"TS": 8, "TSK": 8, "WPT": 4, "PAD": 1},
    6: BLOCKS | {"PAD": 1},
    7: BLOCKS | {"WIDTH": 4},
    8: BLOCKS | {"WIDTH": 2},
    9: BLOCKS | {"WIDTH": 4},
    10: BLOCKS | {"TSN": 16, "WPTN": 4, "WIDTH": 2},
    11: {"RX": 4, "RY": 2, "RK": 2, "WIDTH": 4, "GX": 2, "GY": 4},
    12: {"TS": 8, "WPT": 4},
    13: BLOCKS,
    15: {"TSM": 16, "TSN": 32, "TSK": 8, "WPTM": 4, "WPTN": 4, "WARPM": 4, "UNROLL": 1},
    16: {"TSM": 64, "TSN": 32, "TSK": 8, "WPTM": 8},
    17: {"TSM": 64, "TSN": 64, "GROUPS": 5},
    18: {"TSM": 64, "TSN": 64},
    19: {"TSM": 128, "TSK": 8},
    "warp_tiling": WARPS | {"WIDTH": 1},
    "tensor_cores": {"TSM": 32, "TSN": 32, "TSK": 8, "WM": 32, "WN": 32, "STAGES": 2},
    "warpgroups": {"TSK": 8},
}


def intel():
    """A runtime on which a missing barrier shows; PoCL forgives."""
    found = [d for d in DEVICES.values() if "intel" in d.platform.lower() and d.kind == "CPU"]
    return found[0] if found else lacking("Intel's CPU runtime is not installed")

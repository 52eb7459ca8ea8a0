"""GPUs that a CPU plays, behind the compilers of the two browsers."""

from __future__ import annotations

import pytest
from microscope.harness import lacking

from clscope.wgsl.host import Host


def naga() -> Host:
    """The compiler of Firefox, with Mesa's Vulkan."""
    return _opened("wgpu", "llvmpipe")


def tint() -> Host:
    """The compiler of Chrome, with the Vulkan driver that Debian's Chromium brings."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("VK_ICD_FILENAMES", "/usr/lib/chromium/vk_swiftshader_icd.json")
        return _opened("wgpudawn", "SwiftShader")


def _opened(backend: str, name: str) -> Host:
    try:
        return Host(backend, name)
    except (ImportError, RuntimeError) as error:
        lacking(f"no WebGPU through {backend} and {name}: {error}")
        raise

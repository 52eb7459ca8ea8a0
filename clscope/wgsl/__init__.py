"""OpenCL C becomes WGSL, the language of WebGPU: readable, with a map to the kernel's lines.

`runner.js` runs a `Shader` in a page. The translation needs no package: it runs in a page, too.
"""

from .memory import RefusedError, Style
from .shader import NAGA, STYLES, TINT, Shader, translate

__all__ = ["NAGA", "STYLES", "TINT", "RefusedError", "Shader", "Style", "translate"]

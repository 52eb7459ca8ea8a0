"""A kernel's own text on the GPU of a browser: OpenCL C becomes WGSL, the language of WebGPU.

    shader = gemmlab.web.translate(text)      # readable WGSL, with a map to the kernel's lines
    gemmlab.web.job(6, 512, 512, 512, {...})  # all that runner.js needs to run and check a product
    gemmlab.web.run(6, 512)                   # in JupyterLab: on the GPU of the reader's browser

The translation needs the front end of `simt` and no NumPy: it runs in a page, too (see site/).
"""

from __future__ import annotations

from importlib import import_module

from .memory import RefusedError, Style
from .plan import Job, job, limits
from .shader import NAGA, STYLES, TINT, Shader, translate

__all__ = [
    "NAGA",
    "STYLES",
    "TINT",
    "BrowserGPU",
    "Job",
    "RefusedError",
    "Shader",
    "Style",
    "job",
    "limits",
    "run",
    "translate",
]


def __getattr__(name: str):
    if name not in ("BrowserGPU", "run"):
        raise AttributeError(f"module 'gemmlab.web' has no attribute {name!r}")
    return getattr(import_module(".panel", __name__), name)

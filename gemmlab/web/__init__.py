"""A kernel's own text on the GPU of a browser: OpenCL C becomes WGSL, the language of WebGPU.

    shader = gemmlab.web.translate(text)      # readable WGSL, with a map to the kernel's lines
    gemmlab.web.job(6, 512, 512, 512, {...})  # all that runner.js needs to run and check a product

In JupyterLab, ``gemmlab.Explorer(6, 512, device="browser")`` runs such a product. The translation
needs the front end of `simt` and no NumPy: it runs in a page, too (see site/).
"""

from __future__ import annotations

from .memory import RefusedError, Style
from .plan import Job, job, limits
from .shader import NAGA, STYLES, TINT, Shader, translate

__all__ = [
    "NAGA",
    "STYLES",
    "TINT",
    "Job",
    "RefusedError",
    "Shader",
    "Style",
    "job",
    "limits",
    "translate",
]

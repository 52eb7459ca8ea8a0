"""Translate a kernel of the ladder from OpenCL C to CUDA C++, line by line."""

from __future__ import annotations

import re

from . import sources
from .header import Params
from .spec import KernelSpec

#: Kernels that are translated. The others use what CUDA expresses in another way: extensions (8), a
#: second kernel (17), and components of vectors (18, 19).
TRANSLATED = (1, 2, 3, 4, 5, 6, 7, 9, 10, 11, 12, 13, 15, 16)

#: Patterns of OpenCL C in a line of code, and what replaces them, in this order.
_RULES = (
    # the kernel and other functions
    (r"__kernel __attribute__\(\(reqd_work_group_size\((.+), 1, 1\)\)\)",
     r'extern "C" __global__ __launch_bounds__(\1)'),
    (r"__kernel __attribute__\(\(reqd_work_group_size\((.+), (.+), 1\)\)\)",
     r'extern "C" __global__ __launch_bounds__(\1*\2)'),
    (r"^static inline ", "static inline __device__ "),
    (r"^(?=(?:void|int|float4) (?!gemm)\w+\(.*\)$)", "__device__ "),
    # memory
    (r"(__local )?(float\w*) (\w+)((?:\[[^\]]+\])+) __attribute__\(\(aligned\((\d+)\)\)\)",
     r"\1__align__(\5) \2 \3\4"),
    (r"(?:volatile )?__(?:local|global) (?=\w+\*)", ""),
    (r"__local ", "__shared__ "),
    (r"\brestrict\b", "__restrict__"),
    (r"\(uint\)\(size_t\)(\w+)", r"(unsigned)__cvta_generic_to_shared(\1)"),
    # threads and blocks
    (r"get_local_id\(0\)", "threadIdx.x"),
    (r"get_local_id\(1\)", "threadIdx.y"),
    (r"get_group_id\(0\)", "blockIdx.x"),
    (r"get_group_id\(1\)", "blockIdx.y"),
    (r"get_global_id\(0\)", "(blockIdx.x*blockDim.x + threadIdx.x)"),
    (r"get_global_id\(1\)", "(blockIdx.y*blockDim.y + threadIdx.y)"),
    (r"= \((blockIdx.+)\);", r"= \1;"),
    (r"barrier\(CLK_LOCAL_MEM_FENCE\)", "__syncthreads()"),
    (r"__NV_CL_C_VERSION", "__CUDACC__"),
)  # fmt: skip
#: Words of OpenCL in comments of the code, and those of CUDA.
_WORDS = {"work-item": "thread", "work-group": "block", "local memory": "shared memory"}


def translate(spec: KernelSpec, params: Params) -> str:
    """Return a kernel as CUDA C++ for nvcc or NVRTC: `gemm` with the same arguments, launched with
    a block for each work-group.

    Args:
        spec: a kernel of `TRANSLATED`.
        params: its complete parameters.

    Raises:
        ValueError: for another kernel, or for vectors that CUDA does not have.
    """
    if spec.number not in TRANSLATED:
        numbers = ", ".join(map(str, TRANSLATED))
        raise ValueError(f"kernel {spec.number} is not translated to CUDA; {numbers} are")
    width = params.get("WIDTH", params.get("LWIDTH", 1))
    if width > 4:
        raise ValueError(f"WIDTH={width}: CUDA has vectors of at most 4 floats")
    text = sources.read(spec.file).replace(sources.read("parts/floatX.cl"), "")
    head, _, code = sources.with_values(text, params).partition("\n\n")
    code = "\n".join(map(_line, code.splitlines()))
    for name, value in params.items():
        code = re.sub(rf"(#pragma unroll) {name}\b", rf"\1 {value}", code)
    if width > 1 and "(floatX)(" in code:
        operators, start = _operators(width), code.index('extern "C"')
        code = f"{code[:start]}{operators}\n{code[start:]}"
    code = code.replace("(floatX)(", "vector(" if width > 1 else "(float)(")
    code = code.replace("floatX", f"float{width}" if width > 1 else "float")
    tiles = zip("MN", spec.tiles(params), strict=False)
    grid = ", ".join(f"({size} + {side - 1})/{side}" for size, side in tiles)
    block = ", ".join(map(str, spec.local_size(params)))
    launch = f"// CUDA:     gemm<<<dim3({grid}), dim3({block})>>>(M, N, K, A, B, C)"
    head = re.sub("\n(?=#define)", f"\n{launch}\n//\n", head, count=1)
    return f"{head}\n\n{code}\n"


def _line(line: str) -> str:
    """Return a line of code as CUDA C++."""
    code, mark, comment = line.partition("//")
    column = len(code)
    for pattern, new in _RULES:
        code = re.sub(pattern, new, code)
    for word, other in _WORDS.items():
        comment = comment.replace(word, other)
    if mark and code.strip():  # comments keep their column
        code = f"{code.rstrip()} ".ljust(column)
    return f"{code}{mark}{comment}"


def _operators(width: int) -> str:
    """Return arithmetic on vectors."""
    x, names = f"float{width}", "xyzw"[:width]

    def made(component: str) -> str:
        return f"make_{x}({', '.join(component.format(n=n) for n in names)})"

    return (
        "// CUDA has no arithmetic on vectors\n"
        f"static inline __device__ {x} vector(float s) {{ return {made('s')}; }}\n"
        f"static inline __device__ {x} operator*({x} a, float b) "
        f"{{ return {made('a.{n}*b')}; }}\n"
        f"static inline __device__ void operator+=({x}& a, {x} b) "
        f"{{ a = {made('a.{n} + b.{n}')}; }}\n"
    )

"""The names of a WGSL module: those of WGSL itself, and what a name of OpenCL C becomes."""

from __future__ import annotations

from collections.abc import Collection, Iterable

#: Built-in functions that WGSL has, too, by their names here and there.
SAME = {
    "fma": "fma", "mad": "fma", "sqrt": "sqrt", "fabs": "abs", "exp": "exp", "exp2": "exp2",
    "log": "log", "log2": "log2", "sin": "sin", "cos": "cos", "tan": "tan", "tanh": "tanh",
    "floor": "floor", "ceil": "ceil", "rint": "round", "trunc": "trunc", "pow": "pow",
    "powr": "pow", "fmin": "min", "fmax": "max", "rsqrt": "inverseSqrt", "mix": "mix",
    "sign": "sign", "min": "min", "max": "max", "clamp": "clamp", "popcount": "countOneBits",
    "clz": "countLeadingZeros", "length": "length", "dot": "dot",
}  # fmt: skip

_RESERVED = """
NULL Self abstract active alignas alignof as asm asm_fragment async attribute auto await become
cast catch class co_await co_return co_yield coherent column_major common compile compile_fragment
concept const_cast consteval constexpr constinit crate debugger decltype delete demote
demote_to_helper do dynamic_cast enum explicit export extends extern external fallthrough filter
final finally friend from fxgroup get goto groupshared highp impl implements import inline
instanceof interface layout lowp macro macro_rules match mediump meta mod module move mut mutable
namespace new nil noexcept noinline nointerpolation non_coherent noncoherent noperspective null
nullptr of operator package packoffset partition pass patch pixelfragment precise precision
premerge priv protected pub public readonly ref regardless register reinterpret_cast require
resource restrict self set shared sizeof smooth snorm static static_assert static_cast std
subroutine super target template this thread_local throw trait try type typedef typeid typename
typeof union unless unorm unsafe unsized use using varying virtual volatile wgsl where with
writeonly yield alias break case const const_assert continue continuing default diagnostic discard
else enable false fn for if let loop override requires return struct switch true var while
array atomic bool f16 f32 i32 u32 ptr sampler vec2 vec3 vec4 bitcast select arrayLength
workgroupBarrier workgroupUniformLoad storageBarrier atomicLoad atomicStore
atomicCompareExchangeWeak storage uniform workgroup read read_write
Args args lid wid gid nwg inside endless ended turns watch bits
"""
#: Keywords and reserved words of WGSL, and every name that a translation uses itself.
RESERVED = frozenset(_RESERVED.split()) | frozenset(SAME.values())


def unused(name: str, taken: Iterable[Collection[str]]) -> str:
    """Return a name that WGSL allows and that none of the collections `taken` contains."""
    if name == "_" or name.startswith("__"):  # reserved in WGSL, whatever follows
        name = f"v{name}"
    stem = f"{name}_" if name in RESERVED else name
    chosen, number = stem, 1
    while any(chosen in scope for scope in taken):
        number += 1
        chosen = f"{stem}_{number}"
    return chosen

"""What OpenCL C 1.2 has built in: functions by their signatures.

A signature is written with letters. T is the general type, of which each kind below has many; S is
one number of it, N an int for each of its numbers, U and D the unsigned and signed whole type of
its size, R what a comparison of it gives, W a type of twice the size. i, u, z, e and v are int,
uint, size_t, event_t and void; * is a pointer to global, local or private memory, l* and g* are
pointers to local and global memory, lc* and gc* if these are only read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from itertools import product

from .types import (
    CHAR,
    DOUBLE,
    EVENT,
    FLOAT,
    HALF,
    INT,
    LONG,
    NUMBERS,
    SHORT,
    UCHAR,
    UINT,
    ULONG,
    USHORT,
    VOID,
    WIDTHS,
    Opaque,
    Pointer,
    Scalar,
    Type,
    Vector,
    as_signed,
    as_unsigned,
    compared,
    named,
    with_size,
    words,
)

Signature = tuple[Type, tuple[Type, ...]]


def _family(scalars: tuple[Scalar, ...], widths: tuple[int, ...] = (1, *WIDTHS)) -> list[Type]:
    return [Vector(s, n) if n > 1 else s for s in scalars for n in widths]


_WHOLE = tuple(s for s in NUMBERS if s.whole)
_FLOATS = (FLOAT, DOUBLE, HALF)
KINDS: dict[str, list[Type]] = {
    "float": _family(_FLOATS),
    "single": _family((FLOAT,)),
    "whole": _family(_WHOLE),
    "signed": _family((CHAR, SHORT, INT, LONG)),
    "24": _family((INT, UINT)),
    "narrow": _family((CHAR, UCHAR, SHORT, USHORT, INT, UINT)),
    "geometric": _family(_FLOATS, (1, 2, 3, 4)),
    "single geometric": _family((FLOAT,), (1, 2, 3, 4)),
    "cross": _family(_FLOATS, (3, 4)),
    "any": _family(NUMBERS),
    "vector": _family(NUMBERS, WIDTHS),
    "moved": _family((*NUMBERS, HALF)),
    "one": [INT],
}

#: Functions by kind and signature (section 6.12 of the specification).
_TABLE = """
float | T(T) | acos acosh acospi asin asinh asinpi atan atanh atanpi cbrt ceil cos cosh cospi
    erf erfc exp exp2 exp10 expm1 fabs floor lgamma log log2 log10 log1p logb rint round rsqrt
    sin sinh sinpi sqrt tan tanh tanpi tgamma trunc degrees radians sign
float | T(T,T) | atan2 atan2pi copysign fdim fmax fmin fmod hypot maxmag minmag nextafter pow
    powr remainder max min step
float | T(T,S) | fmax fmin max min
float | T(S,T) | step
float | T(T,T,T) | fma mad clamp mix smoothstep bitselect
float | T(T,S,S) | clamp
float | T(T,T,S) | mix
float | T(S,S,T) | smoothstep
float | T(T,*T) | fract modf sincos
float | T(T,*N) | frexp lgamma_r
float | T(T,T,*N) | remquo
float | N(T) | ilogb
float | T(T,N) | ldexp pown rootn
float | T(T,i) | ldexp
float | T(U) | nan
float | R(T) | isfinite isinf isnan isnormal signbit
float | R(T,T) | isequal isnotequal isgreater isgreaterequal isless islessequal islessgreater
    isordered isunordered
single | T(T) | native_cos native_exp native_exp2 native_exp10 native_log native_log2
    native_log10 native_recip native_rsqrt native_sin native_sqrt native_tan half_cos half_exp
    half_exp2 half_exp10 half_log half_log2 half_log10 half_recip half_rsqrt half_sin half_sqrt
    half_tan
single | T(T,T) | native_divide native_powr half_divide half_powr
whole | U(T) | abs
whole | U(T,T) | abs_diff
whole | T(T) | clz popcount
whole | T(T,T) | add_sat hadd max min mul_hi rhadd rotate sub_sat
whole | T(T,S) | max min
whole | T(T,T,T) | clamp mad_hi mad_sat bitselect
whole | T(T,S,S) | clamp
narrow | W(T,U) | upsample
24 | T(T,T) | mul24
24 | T(T,T,T) | mad24
any | T(T,T,U) | select
any | T(T,T,D) | select
signed | i(T) | any all
geometric | S(T) | length
geometric | S(T,T) | distance dot
geometric | T(T) | normalize
single geometric | S(T) | fast_length
single geometric | S(T,T) | fast_distance
single geometric | T(T) | fast_normalize
cross | T(T,T) | cross
one | z(u) | get_global_id get_local_id get_group_id get_local_size get_global_size
    get_num_groups get_global_offset
one | u() | get_work_dim
one | v(u) | barrier mem_fence read_mem_fence write_mem_fence
one | v(i,*e) | wait_group_events
moved | e(l*T,gc*T,z,e) | async_work_group_copy
moved | e(g*T,lc*T,z,e) | async_work_group_copy
moved | e(l*T,gc*T,z,z,e) | async_work_group_strided_copy
moved | e(g*T,lc*T,z,z,e) | async_work_group_strided_copy
moved | v(gc*T,z) | prefetch
"""
FUNCTIONS: dict[str, list[tuple[str, str]]] = {}
for _row in _TABLE.replace("\n    ", " ").strip().split("\n"):
    _kind, _signature, _names = _row.split(" | ")
    for _name in _names.split():
        FUNCTIONS.setdefault(_name, []).append((_kind, _signature))

IDENTIFIERS = {name for name in FUNCTIONS if name.startswith("get_")}
#: Functions that order a work-item's accesses, or hint at them: they change no value.
FENCES = {"mem_fence", "read_mem_fence", "write_mem_fence", "prefetch"}
#: Atomic functions by how many arguments they take.
ATOMIC = {"inc": 1, "dec": 1, "cmpxchg": 3} | dict.fromkeys(
    words("add sub xchg min max and or xor"), 2
)
#: How functions of the language begin that this simulator does not know.
UNKNOWN = ("read_image", "write_image", "get_image_", "__builtin_")
WIDER = {CHAR: SHORT, UCHAR: USHORT, SHORT: INT, USHORT: UINT, INT: LONG, UINT: ULONG}


@cache
def overloads(name: str) -> list[Signature]:
    """All versions of a function; none of what is not built in."""
    found: dict[Signature, None] = {}
    for kind, signature in FUNCTIONS.get(name, ()):
        result, _, params = signature.rstrip(")").partition("(")
        for of in KINDS[kind]:
            for space in ("private", "local", "global") if "*" in params else ("",):
                types = tuple(_meant(p, of, space) for p in params.split(",") if p)
                found[_meant(result, of, space), types] = None
    for pattern, versions in _FAMILIES:
        match = pattern.fullmatch(name)
        found |= dict.fromkeys(versions(*match.groups())) if match else {}
    return list(found)


def _as(name: str) -> Iterator[Signature]:
    to = named(name)
    if to in KINDS["moved"]:
        yield from ((to, (of,)) for of in KINDS["moved"] if of.stride == to.stride)


def _convert(name: str, saturated: str | None) -> Iterator[Signature]:
    to = named(name)
    if to in KINDS["moved"] and (to.scalar.whole or not saturated):
        yield from ((to, (of,)) for of in KINDS["moved"] if of.length == to.length)


def _vector_access(word: str, half: str | None, n: str | None) -> Iterator[Signature]:
    """vloadN(i, p) and vstoreN(v, i, p), also of half numbers, with N as small as none."""
    for scalar in (FLOAT, DOUBLE)[: 1 + (word == "store")] if half else NUMBERS * bool(n):
        (value,) = _family((scalar,), (int(n or 1),))
        of = HALF if half else scalar
        for space in ("private", "local", "global", "constant"):
            if word == "load":
                yield value, (ULONG, Pointer(of, space, True))
            elif space != "constant":
                yield VOID, (value, ULONG, Pointer(of, space))


def _atomic(prefix: str, op: str) -> Iterator[Signature]:
    more = (LONG, ULONG) if prefix == "atom" else (FLOAT,) if op == "xchg" else ()
    for of in (INT, UINT, *more):
        for space in ("global", "local"):
            yield of, (Pointer(of, space), *[of] * (ATOMIC[op] - 1))


def _shuffle(two: str) -> Iterator[Signature]:
    for of in NUMBERS:
        for n, wide in product(WIDTHS, WIDTHS):
            mask, vectors = Vector(as_unsigned(of), n), [Vector(of, wide)] * (2 if two else 1)
            yield Vector(of, n), (*vectors, mask)


_TYPE = "([a-z]+(?:_t)?(?:2|3|4|8|16)?)"
#: Functions with names of a pattern, and their versions.
_FAMILIES: list[tuple[re.Pattern[str], Callable[..., Iterable[Signature]]]] = [
    (re.compile(f"as_{_TYPE}"), _as),
    (re.compile(f"convert_{_TYPE}(_sat)?(?:_rt[ezpn])?"), _convert),
    (re.compile(r"v(load|store)(a?_half)?(2|3|4|8|16)?(?:_rt[ezpn])?"), _vector_access),
    (re.compile(f"(atomic|atom)_({'|'.join(ATOMIC)})"), _atomic),
    (re.compile("shuffle(2?)"), _shuffle),
]


def _meant(letter: str, of: Type, space: str) -> Type:
    """The type that a letter stands for, if T is `of`."""
    head, star, pointed = letter.rpartition("*")
    if star:
        where = {"l": "local", "g": "global"}.get(head[:1], space)
        return Pointer(_meant(pointed, of, space), where, "c" in head)
    scalar = of.scalar
    fixed: dict[str, Type] = {"T": of, "S": scalar, "i": INT, "u": UINT, "z": ULONG, "v": VOID}
    fixed["e"] = EVENT
    if letter in fixed:
        return fixed[letter]
    if letter == "R":
        return compared(of)
    related = {"N": lambda s: INT, "U": as_unsigned, "D": as_signed, "W": WIDER.__getitem__}
    return with_size(of, related[letter](scalar))


# ---- which of several versions is called
def rank(of: Type, to: Type, zero: bool) -> int | None:
    """How far an argument is from a parameter: 0 the same, 1 promoted, 2 converted, None if it does
    not fit.

    `zero`: whether the argument is the number 0, which is a pointer as well.
    """
    if of == to:
        return 0
    if isinstance(to, Pointer) and isinstance(of, Pointer):
        fits = of.space == to.space and (to.const or not of.const)
        if fits and of.to == to.to:
            return 0
        return 2 if fits and to.to is VOID else None
    if isinstance(to, (Pointer, Opaque)):
        return 2 if zero else None
    if not isinstance(of, Scalar) or not isinstance(to, (Scalar, Vector)):
        return None
    if isinstance(to, Vector):
        return 3
    if (of is FLOAT and to is DOUBLE) or (of.rank < INT.rank and to is INT):
        return 1
    return 2


def best(
    name: str, choices: list[tuple[Type, ...]], args: tuple[Type, ...], zeros: tuple[bool, ...]
) -> list[int]:
    """The best choices by C++'s rules: one, none, or several if the call is ambiguous."""
    if args in choices or name.startswith("as_"):  # as_... converts no argument
        return [n for n, params in enumerate(choices) if params == args]
    ranked: list[tuple[int, list[int]]] = []
    for number, params in enumerate(choices):
        if len(params) != len(args):
            continue
        ranks = [rank(a, p, z) for a, p, z in zip(args, params, zeros, strict=True)]
        if None not in ranks:
            ranked.append((number, ranks))  # type: ignore[arg-type]

    def better(a: list[int], b: list[int]) -> bool:
        return a != b and all(x <= y for x, y in zip(a, b, strict=True))

    return [n for n, ranks in ranked if not any(better(other, ranks) for _, other in ranked)]

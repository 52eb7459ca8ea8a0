"""clang as a judge of the simulator's front end: what it accepts, where it refuses, and the types
of expressions.

libclang (from PyPI) reads OpenCL C 1.2 with its table of built-in functions and a header for the
vector types.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

from clang import cindex

from clscope import tree
from clscope.parser import parse_with
from clscope.text import PREDEFINED, Preprocessor, TextError, shown

#: What the simulator refuses on purpose although clang takes it, as an extension or with a warning;
#: such as a declaration without a type (C99, 6.7.2), or `? :` of a pointer and a number (6.5.15).
STRICTER = re.compile(
    "division by zero|not known to this simulator|cannot have 0 elements|too many values|"
    "one value is expected|has no element|not one character|not a number|is not an integer|"
    "#include|twice|a declaration needs its own block|expected '{', found 'case'|"
    "there is no (atom|wait_group_events|async_work_group_.*, int\\),)|no '}'|"
    "expected a type, found ';'|"
    "'. :' cannot be applied to .*[*] and an? u?(int|long)"
)
_NUMBERS = ["char", "uchar", "short", "ushort", "int", "uint", "long", "ulong", "float", "double"]
_UNSIGNED = {f"u{of}": f"unsigned {of}" for of in ("char", "short", "int", "long")}


def header() -> str:
    """What clang's own header declares, as far as kernels here use it."""
    lines = [f"typedef {long} {short};" for short, long in _UNSIGNED.items()]
    lines += ["typedef unsigned long size_t; typedef long ptrdiff_t; typedef long intptr_t;",
              "typedef unsigned long uintptr_t;",
              "#pragma OPENCL EXTENSION cl_khr_fp64 : enable"]  # fmt: skip
    lines += [
        f"typedef {t} {t}{n} __attribute__((ext_vector_type({n})));"
        for t in _NUMBERS
        for n in (2, 3, 4, 8, 16)
    ]
    lines += [
        f"#define {name} {shown(m.body)}"
        for name, m in PREDEFINED.items()
        if name.isupper() and not name.startswith(("_", "CL_")) or name in ("true", "false")
    ]
    lines.append("typedef uint cl_mem_fence_flags;")
    scopes = ["work_item", "work_group", "device", "all_svm_devices", "sub_group"]
    orders = ["relaxed", "acquire", "release", "acq_rel", "seq_cst"]
    lines += [
        f"typedef enum memory_scope {{ {', '.join('memory_scope_' + s for s in scopes)} }} "
        "memory_scope;",
        f"typedef enum memory_order {{ {', '.join('memory_order_' + s for s in orders)} }} "
        "memory_order;",
        "int printf(__constant const char* st, ...) __attribute__((format(printf, 1, 2)));",
    ]
    for t in _NUMBERS:
        for n in ("", 2, 3, 4, 8, 16):
            lines.append(f"#define as_{t}{n}(x) __builtin_astype((x), {t}{n})")
    return "\n".join(lines)


@dataclass
class Verdict:
    """The line of the first error (0: none), what it says, and of expressions the types, by line
    and column.
    """

    line: int
    message: str
    types: dict[tuple[int, int], set[str]]


@cache
def _folder() -> Path:
    folder = Path(mkdtemp())
    (folder / "opencl-c-base.h").write_text(header())
    return folder


@cache
def _index() -> cindex.Index:
    return cindex.Index.create()


def judged(
    text: str, defines: dict[str, object] | None = None, types: bool = False
) -> Verdict | None:
    """What clang says of a text; None if it crashes on it."""
    macros = [f"-D{name}={value}" for name, value in (defines or {}).items()]
    macros += ["-D__OPENCL_VERSION__=300", "-D__opencl_c_named_address_space_builtins=1"]
    more = "-x cl -cl-std=CL1.2 -Xclang -fdeclare-opencl-builtins -target spir64 -isystem"
    arguments = [*more.split(" "), str(_folder()), *macros]
    for attempt in (1, 2):  # it crashes now and then on a text that it reads the next time
        try:
            unit = _index().parse("k.cl", args=arguments, unsaved_files=[("k.cl", text)])
            break
        except cindex.TranslationUnitLoadError:
            if attempt == 2:
                return None
    errors = [d for d in unit.diagnostics if d.severity >= cindex.Diagnostic.Error]
    if errors:
        return Verdict(max(1, errors[0].location.line), errors[0].spelling, {})
    found: dict[tuple[int, int], set[str]] = {}
    if types:
        _collect(unit.cursor, found)
    return Verdict(0, "", found)


def _collect(cursor: cindex.Cursor, found: dict[tuple[int, int], set[str]]) -> None:
    for child in cursor.walk_preorder():
        if child.kind.is_expression() and str(child.location.file) == "k.cl":
            found.setdefault((child.location.line, child.location.column), set()).add(
                plain(child.type)
            )


def plain(of: cindex.Type) -> str:
    """A type as the simulator writes it."""
    of = of.get_canonical()
    kind = of.kind
    if kind.name == "POINTER":
        to = of.get_pointee()
        space = next((s for s in ("global", "local", "constant") if f"__{s}" in _outer(to)), "")
        shown = plain(to)
        shown = shown.replace("[", "(*)[", 1) if "[" in shown else f"{shown}*"
        return f"{space} {shown}".strip()
    if kind.name == "CONSTANTARRAY":
        head, bracket, tail = plain(of.element_type).partition("[")
        return f"{head}[{of.element_count}]{bracket}{tail}"
    if kind.name in ("EXTVECTOR", "VECTOR"):
        return f"{plain(of.element_type)}{of.element_count}"
    qualifiers = r"\b(const|volatile|restrict|__private|__global|__local|__constant)\b"
    words = " ".join(re.sub(qualifiers, "", of.spelling).split())
    words = words if "unsigned" in words else words.replace("signed char", "char")
    return next((short for short, long in _UNSIGNED.items() if words == long), words)


def _outer(of: cindex.Type) -> str:
    """The words of a type that are about itself, and not about what it points to."""
    while of.kind.name == "CONSTANTARRAY":
        of = of.element_type
    return of.spelling.rpartition("*")[2] if "*" in of.spelling else of.spelling


def ours(text: str, defines=None) -> tuple[int, str, list[tree.Function]]:
    """The line of the first mistake (0: none), what it is, and the functions."""
    try:
        functions = parse_with(Preprocessor(defines), text).functions
        problem = next((f.problem for f in functions if f.problem), None)
        if problem:
            raise problem
        return 0, "", functions
    except TextError as error:
        return error.line, error.message, []


def start(node: tree.Expr) -> tree.Expr:
    """The expression that begins where this one does."""
    parts = {"Binary": "left", "Index": "array", "Assign": "target", "Choice": "condition",
             "Member": "vector", "Cast": "operand"}  # fmt: skip
    while type(node).__name__ in parts and not (
        node.source and node.spot == node.source[0].spot  # *p, ++i
    ):
        node = getattr(node, parts[type(node).__name__])
    return node


def differences(text: str, defines=None) -> tuple[list[str], int]:
    """Expressions whose type is not clang's, and how many are compared."""
    verdict = judged(text, defines, types=True)
    line, message, functions = ours(text, defines)
    assert verdict is not None
    assert (line, verdict.line) == (0, 0), (message, verdict.message)
    lines, wrong, count = text.split("\n"), [], 0
    for node in (n for f in functions if f.body for n in f.body.walk()):
        nameless = (tree.Braces, tree.Text, tree.Part)
        if not isinstance(node, tree.Expr) or isinstance(node, nameless) or not node.source:
            continue
        first, shown = start(node), str(node.type)
        before = lines[first.spot.line - 1][: first.spot.column - 1].rstrip()
        theirs = verdict.types.get((first.spot.line, first.spot.column))
        in_bracket = first is not node and before.endswith("(")
        of_a_macro = node.spot.macro or first.spot.macro
        if of_a_macro or theirs is None or in_bracket or shown.startswith(("struct", "union")):
            continue
        count += 1
        if "(*)" in shown:  # libclang does not say in which memory the array is
            shown = re.sub("^(local|global|constant) | (?=[(])", "", shown)
        if shown not in theirs:
            wrong.append(
                f"{node.spot.line}:{node.spot.column} {tree.written(node)}: {shown}, not {theirs}"
            )
    return wrong, count


def agree(text: str, defines=None) -> bool:
    """Both accept a text, or both refuse it; whether in the same line."""
    verdict = judged(text, defines)
    if verdict is None:
        return True
    line, message, _ = ours(text, defines)
    if stricter(message):
        return True
    assert (line > 0) == (verdict.line > 0), f"{text}\nclang: {verdict}\nours: {line} {message}"
    return line == verdict.line


def stricter(message: str) -> bool:
    """Whether the simulator refuses this on purpose although clang takes it."""
    return bool(STRICTER.search(message))

"""A kernel's text as a module of WGSL, with what a host needs to run it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from .. import tree
from ..parser import kernel_of, parse_with
from ..text import Preprocessor, explained
from ..types import LONG, ULONG, Pointer, Scalar, Vector
from . import wide
from .memory import KeptError, Ref, ShaderArray, Style, refuse
from .names import unused
from .statements import StatementWriter

#: For tint, the compiler of Chrome and Edge, and for naga, that of Firefox.
TINT = Style()
NAGA = Style(laid_out=True)
#: The styles that a page tries on a GPU, once for each kernel.
STYLES = {"even": TINT, "laid out": NAGA}

#: What a watched kernel calls, see `Style.watched`. The first mistake wins.
WATCH = """\
fn inside(index: i32, size: i32, line: i32) -> i32 {
    if (index >= 0 && index < size) { return index; }
    if (atomicCompareExchangeWeak(&watch[0], 0, line).exchanged) {
        atomicStore(&watch[1], index);
        atomicStore(&watch[2], size);
    }
    return 0;
}

fn endless(line: i32) {
    atomicStore(&watch[3], line);
}
"""
#: How a work-group of a counted kernel begins, see `Style.counted`.
BEGIN = """\
    if (lid.x + lid.y + lid.z == 0) { ended = atomicLoad(&watch[3]); }
    if (workgroupUniformLoad(&ended) != 0) { return; }"""


@dataclass(frozen=True)
class Buffer:
    """A pointer argument: its binding is its position."""

    name: str
    written: bool


@dataclass(frozen=True)
class Shader:
    """A kernel in WGSL.

    Attributes:
        code: the module; entry: the name of its entry point.
        size: work-items of a work-group.
        buffers: the pointer arguments, at bindings 0, 1, 2 ...
        watched: whether a storage buffer of four i32 follows: the line, index and size of an
            access outside its array, and the line of a loop without end, 0 for none.
        scalars: the other arguments, by name and type, in a uniform buffer at the next binding.
        local_bytes: of workgroup memory.
        lines: for each line of `code`, the line of the kernel's text, 0 for none.
    """

    code: str
    entry: str
    size: tuple[int, int, int]
    buffers: tuple[Buffer, ...]
    scalars: tuple[tuple[str, str], ...]
    watched: bool
    local_bytes: int
    lines: tuple[int, ...]


def translate(
    text: str,
    kernel: str | None = None,
    defines: Mapping[str, object] | None = None,
    style: Style = TINT,
    size: tuple[int, ...] = (),
) -> Shader:
    """Translate a kernel of an OpenCL C text to WGSL.

    Args:
        kernel: its name; None for the first one.
        defines: macros, as for a compiler.
        size: work-items of a work-group, for a kernel that does not require a size itself.

    Raises:
        TextError: the text is no OpenCL C; `RefusedError` if WGSL cannot say it. Both name the
            line.
    """
    with explained(text):
        return _translated(text, kernel, defines, style, size)


def _translated(
    text: str,
    kernel: str | None,
    defines: Mapping[str, object] | None,
    style: Style,
    size: tuple[int, ...],
) -> Shader:
    unit = parse_with(Preprocessor(defines), text)
    chosen = kernel_of(unit.functions, kernel)
    if chosen.problem is not None:
        raise chosen.problem
    for outside in unit.variables:
        if outside.variable.constant is None:
            words = f"{outside.variable.name!r}: only numbers are translated outside functions"
            raise refuse(words, outside)
    wide.check(chosen)
    kept: dict[tree.Variable | None, int] = {}
    while True:
        try:
            return _Module(style, kept).shader(chosen, chosen.size or size)
        except KeptError as error:
            kept[error.variable] = error.kept


class _Module(StatementWriter):
    def shader(self, kernel: tree.Function, size: tuple[int, ...]) -> Shader:
        if not size:
            raise refuse("WGSL needs the size of a work-group: write reqd_work_group_size", kernel)
        x, y, z = [*size, 1, 1][:3]
        self.size = x, y, z
        entry = self.claim(kernel.name, module=True)
        self.scopes.append(set())
        self.begin(kernel)
        memories, scalars, members = self.arguments(kernel)
        assert kernel.body is not None
        self.statements(kernel.body.body)
        line = kernel.spot.line
        is_watched = self.style.watched or bool(self.counted)
        begin = BEGIN.split("\n") if self.counted and not self.style.watched else []
        if begin:
            self.ids.add("lid")
            self.top.append(("var<workgroup> ended: i32;", 0))
        lines = [
            *((code, line) for code in self.bindings(memories, members, kernel, is_watched)),
            *self.top,
            ("", 0),
            *((code, 0) for code in WATCH.split("\n") if is_watched),
            *self.bodies,
            (f"@compute @workgroup_size({x}, {y}, {z})", line),
            (f"fn {entry}({self.heads()}) {{", line),
            *((code, 0) for code in begin),
            *self.finished(),
            ("}", 0),
        ]
        return Shader(
            "\n".join(code for code, _ in lines) + "\n",
            entry,
            self.size,
            tuple(Buffer(name, memory.written) for name, memory in memories.items()),
            tuple(scalars.items()),
            is_watched,
            self.local_bytes,
            tuple(line for _, line in lines),
        )

    def arguments(
        self, kernel: tree.Function
    ) -> tuple[dict[str, ShaderArray], dict[str, str], dict[str, str]]:
        """Return the kernel's buffers, and the types of its other arguments: by their names, and
        by the names of the members that hold them.
        """
        memories: dict[str, ShaderArray] = {}
        scalars: dict[str, str] = {}
        members: dict[str, str] = {}
        for param in kernel.params:
            if not isinstance(param.type, Pointer):
                member = unused(param.name, [members])
                scalars[param.name] = members[member] = self.value_type(param.type, param)
                self.parameter(param, f"args.{member}")
                continue
            of = param.type.to
            if param.type.space not in ("global", "constant"):
                raise refuse(f"{param.name!r}: a pointer to local memory is not translated", param)
            if not isinstance(of, (Scalar, Vector)) or of.scalar in (LONG, ULONG):
                raise refuse(f"{param.name!r}: WGSL has no buffer of {of}", param)
            name = self.claim(param.name, module=True)
            memory = memories[param.name] = ShaderArray(name, of.scalar, of.length, "global")
            self.declare_pointer(param, Ref(memory, of))
        return memories, scalars, members

    def bindings(
        self,
        memories: dict[str, ShaderArray],
        members: dict[str, str],
        kernel: tree.Function,
        is_watched: bool,
    ) -> list[str]:
        """The declarations of the arguments."""
        lines, variables = [], []
        for memory in memories.values():
            of = Vector(memory.scalar, memory.width) if memory.width > 1 else memory.scalar
            access = "read_write" if memory.written else "read"
            kind = f"array<{self.value_type(of, kernel)}>"
            variables.append(f"var<storage, {access}> {memory.name}: {kind};")
        if is_watched:
            variables.append("var<storage, read_write> watch: array<atomic<i32>, 4>;")
        if members:
            fields = (f"    {name}: {kind}," for name, kind in members.items())
            lines = ["struct Args {", *fields, "}"]
            variables.append("var<uniform> args: Args;")
        numbered = enumerate(variables)
        return [*lines, *(f"@group(0) @binding({i}) {code}" for i, code in numbered)]

"""A kernel's text as a module of WGSL, with what a host needs to run it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass

from ..simt import tree
from ..simt.meaning import constant
from ..simt.parse import Parser
from ..simt.text import Preprocessor, Spot, TextError
from ..simt.types import LONG, ULONG, Pointer, Scalar, Vector, length, scalar_of
from .expressions import Entry
from .places import Memory, NotProvedError, Ref, Value, refuse
from .statements import HEADS, Statements, Style

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


@dataclass(frozen=True)
class Buffer:
    """A pointer argument: binding by position; `width` numbers of type `of` per element."""

    name: str
    written: bool
    width: int
    of: str


@dataclass(frozen=True)
class Shader:
    """A kernel in WGSL.

    Attributes:
        code: the module; entry: the name of its entry point.
        size: work-items of a work-group.
        buffers: the pointer arguments, at bindings 0, 1, 2 ...
        scalars: the other arguments, by name and type, in a uniform buffer at the next binding.
        watched: whether a storage buffer of four i32 follows: the line, index and size of an
            access outside its array, and the line of a loop without end, 0 for none.
        local_bytes: of workgroup memory.
        notes: what it means differently from OpenCL C.
        lines: for each line of `code`, the line of the kernel's text, 0 for none.
    """

    code: str
    entry: str
    size: tuple[int, int, int]
    buffers: tuple[Buffer, ...]
    scalars: tuple[tuple[str, str], ...]
    watched: bool
    local_bytes: int
    notes: tuple[str, ...]
    lines: tuple[int, ...]

    def as_dict(self) -> dict:
        """For JSON, as runner.js expects it."""
        return asdict(self)


def translate(
    text: str,
    kernel: str | None = None,
    defines: Mapping[str, object] | None = None,
    style: Style = TINT,
) -> Shader:
    """Translate a kernel of an OpenCL C text to WGSL.

    Args:
        kernel: its name; None for the first one.
        defines: macros, as for a compiler.

    Raises:
        TextError: the text is no OpenCL C; `RefusedError` if WGSL cannot say it. Both name the
            line.
    """
    try:
        return _translated(text, kernel, defines, style)
    except TextError as error:
        error.source = text
        raise


def _translated(text, kernel, defines, style) -> Shader:
    parser = Parser(Preprocessor(defines).run(text))
    functions, constants = parser.file()
    kernels = [f for f in _each(functions) if f.kernel]
    chosen = next((f for f in kernels if kernel in (None, f.name)), None)
    if chosen is None:
        missing = f"there is no __kernel {kernel!r}" if kernel else "there is no __kernel"
        raise TextError(f"{missing} in this text", Spot(1))
    if chosen.problem is not None:
        raise chosen.problem
    flat: set[tree.Variable] = set()
    while True:
        try:
            return _Module(style, flat).shader(chosen, constants)
        except NotProvedError as error:
            flat.add(error.variable)


def _each(functions) -> list[tree.Function]:
    found: list[tree.Function] = []
    for value in functions.values():
        found += value if isinstance(value, list) else [value]
    return found


class _Module(Statements):
    def shader(self, kernel: tree.Function, constants) -> Shader:
        self.constants: list[tree.Variable] = []
        self.local_bytes = 0
        given = tuple(constant(n) for n in kernel.size)
        if not given:
            raise refuse("WGSL needs the size of a work-group: write reqd_work_group_size", kernel)
        across, down, deep = (*given, 1, 1)[:3]
        self.size = (across, down, deep)
        for found in constants:
            if found.variable.constant is None:
                raise refuse(
                    f"{found.name!r}: only numbers are translated outside functions", found
                )
        entry = self.claim(kernel.name, module=True)
        memories, scalars = self.parameters(kernel)
        self.scopes.append(set())
        self.begin(kernel)
        for param in kernel.params:
            self.kernel_parameter(param, memories.get(param.name))
        assert kernel.body is not None
        try:
            self.statements(kernel.body.body)
        finally:
            for variable in self.constants:
                variable.constant = None
        head = ", ".join(
            f"@builtin({HEADS[i][0]}) {i}: {HEADS[i][1]}" for i in HEADS if i in self.ids
        )
        lines = self.heading(memories, scalars, kernel)
        lines += self.bodies
        x, y, z = self.size
        lines.append((f"@compute @workgroup_size({x}, {y}, {z})", kernel.spot.line))
        lines.append((f"fn {entry}({head}) {{", kernel.spot.line))
        lines += [*self.finished(self.lines), ("}", 0)]
        buffers = tuple(
            Buffer(name, m.written, m.width, self.scalar_type(m.scalar, kernel))
            for name, m in memories.items()
        )
        return Shader(
            "\n".join(code for code, _ in lines) + "\n",
            entry,
            self.size,
            buffers,
            tuple(scalars),
            self.watched,
            self.local_bytes,
            tuple(self.notes),
            tuple(line for _, line in lines),
        )

    def parameters(self, kernel) -> tuple[dict[str, Memory], list[tuple[str, str]]]:
        memories: dict[str, Memory] = {}
        scalars = []
        for param in kernel.params:
            if not isinstance(param.type, Pointer):
                scalars.append((param.name, self.value_type(param.type, param)))
                continue
            of = param.type.to
            if param.type.space not in ("global", "constant"):
                raise refuse(f"{param.name!r}: a pointer to local memory is not translated", param)
            if not isinstance(of, (Scalar, Vector)) or scalar_of(of) in (LONG, ULONG):
                raise refuse(f"{param.name!r}: WGSL has no buffer of {of}", param)
            name = self.claim(param.name, module=True)
            memories[param.name] = Memory(name, scalar_of(of), min(4, length(of)), "global")
        return memories, scalars

    def kernel_parameter(self, param: tree.Declaration, memory: Memory | None) -> None:
        if memory is None:
            field = Value([f"args.{param.name}"], param.type, named=True)
            self.parameter(param, field)
            return
        assert isinstance(param.type, Pointer)
        ref = Ref(memory, param.type.to)
        if param.variable.assigned:
            self.declare_pointer(param.variable, ref)
        else:
            self.entries[param.variable] = Entry(memory.name, param.type, ref=ref)

    def heading(self, memories, scalars, kernel) -> list[tuple[str, int]]:
        """What stands before the functions."""
        line = kernel.spot.line
        lines = []
        if scalars:
            lines.append(("struct Args {", line))
            lines += [(f"    {name}: {kind},", line) for name, kind in scalars]
            lines.append(("}", line))
        binding = 0
        for memory in memories.values():
            of = Vector(memory.scalar, memory.width) if memory.width > 1 else memory.scalar
            access = "read_write" if memory.written else "read"
            kind = f"array<{self.part_type(of, kernel)}>"
            variable = f"var<storage, {access}> {memory.name}: {kind};"
            lines.append((f"@group(0) @binding({binding}) {variable}", line))
            binding += 1
        if scalars:
            lines.append((f"@group(0) @binding({binding}) var<uniform> args: Args;", line))
            binding += 1
        if self.watched:
            watch = "var<storage, read_write> watch: array<atomic<i32>, 4>;"
            lines.append((f"@group(0) @binding({binding}) {watch}", 0))
        lines += [*self.top, ("", 0)]
        if self.watched:
            lines += [(code, 0) for code in WATCH.split("\n")]
        return lines

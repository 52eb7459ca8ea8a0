"""A kernel's text written anew from the simulator's own tree, with a counter at every load and
store.

A real device runs the result, so what it counts depends on nothing of the simulator but its parser.
Counters are bumped by atomic functions: loads and stores of global memory, then those of local
memory.
"""

from __future__ import annotations

import math
import re

from gemmlab.simt import tree
from gemmlab.simt.meaning import address_of
from gemmlab.simt.parse import Parser
from gemmlab.simt.text import Preprocessor
from gemmlab.simt.types import Array, Pointer, leaf_of, length


def instrumented(text: str, defines: dict[str, int]) -> str:
    """OpenCL C whose functions have one more parameter, `global int* counted`: four counters."""
    functions, constants = Parser(Preprocessor(defines).run(text)).file()
    writer = Instrument(functions)
    parts = [f"constant {writer.declared(d)};" for d in constants]
    return "\n".join(parts + [writer.function(f) for f in functions.values()])


def bump(space: str, store: bool, width: int) -> str:
    return f"atomic_add(counted + {2 * (space == 'local') + store}, {width})"


def accessed(node) -> tuple[str, int] | None:
    """The memory of which an expression is an element, and how many numbers that has."""
    of_pointer = isinstance(node, tree.Unary) and node.op == "*"
    if not (isinstance(node, tree.Index) or of_pointer) or isinstance(node.type, (Array, Pointer)):
        return None
    space = address_of(node).space
    return None if space == "private" else (space, length(node.type))


class Instrument:
    """Writes C from a tree."""

    def __init__(self, functions: dict[str, tree.Function]) -> None:
        self.functions = functions

    # ---- expressions
    def place(self, node) -> str:
        """An expression that is stored to, or whose address is taken: what it holds is not
        loaded.
        """
        if isinstance(node, tree.Index):
            return f"{self.place(node.array)}[{self.value(node.index)}]"
        if isinstance(node, tree.Member):
            return f"{self.place(node.vector)}.{node.name}"
        if isinstance(node, tree.Unary) and node.op == "*":
            return f"(*{self.value(node.operand)})"
        return self.value(node)

    def value(self, node) -> str:
        access = accessed(node)
        if access:
            return f"({bump(access[0], False, access[1])}, {self.place(node)})"
        return getattr(self, f"_{type(node).__name__.lower()}")(node)

    def values(self, nodes) -> str:
        return ", ".join(self.value(n) for n in nodes)

    def _number(self, node) -> str:
        if node.type.whole:
            suffix = "u" * (node.type.kind == "uint") + "l" * (node.type.size == 8)
            return f"{int(node.value)}{suffix}"
        if not math.isfinite(node.value):
            return "NAN" if math.isnan(node.value) else "INFINITY"
        return f"{node.value!r}{'f' * (node.type.name == 'float')}"

    def _name(self, node) -> str:
        return node.name

    def _text(self, node) -> str:
        return node.value

    def _index(self, node) -> str:
        return self.place(node)

    def _member(self, node) -> str:
        return f"{self.value(node.vector)}.{node.name}"

    def _unary(self, node) -> str:
        inner = self.place(node.operand) if node.op == "&" else self.value(node.operand)
        return f"({node.op}{inner})"

    def _binary(self, node) -> str:
        return f"({self.value(node.left)} {node.op} {self.value(node.right)})"

    def _choice(self, node) -> str:
        return f"({self.value(node.condition)} ? {self.value(node.yes)} : {self.value(node.no)})"

    def _convert(self, node) -> str:
        return self.value(node.operand)

    def _cast(self, node) -> str:
        return f"(({node.type})(({self.value(node.operand)})))"

    def _vectorliteral(self, node) -> str:
        return f"(({node.type})({self.values(node.parts)}))"

    def _braces(self, node) -> str:
        return f"{{{self.values(node.items)}}}"

    def changed(self, target, code: str, loads: bool) -> str:
        access = accessed(target)
        stores = ((False,) if loads else ()) + (True,)
        bumps = [bump(access[0], store, access[1]) for store in stores] if access else []
        return f"({', '.join([*bumps, code])})"

    def _assign(self, node) -> str:
        code = f"{self.place(node.target)} {node.op}= {self.value(node.value)}"
        return self.changed(node.target, code, bool(node.op))

    def _step(self, node) -> str:
        place = self.place(node.target)
        code = f"{node.op}{place}" if node.before else f"{place}{node.op}"
        return self.changed(node.target, code, True)

    def _call(self, node) -> str:
        args = [self.value(n) for n in node.args] + ["counted"] * (node.name in self.functions)
        code = f"{node.name}({', '.join(args)})"
        moves = re.fullmatch(r"v(load|store)(\d+)", node.name)
        if moves and node.args[-1].type.space != "private":
            counter = bump(node.args[-1].type.space, moves[1] == "store", int(moves[2]))
            return f"({counter}, {code})"
        return code

    # ---- statements
    def statement(self, node) -> str:
        known = getattr(self, f"do_{type(node).__name__.lower()}", None)
        return known(node) if known else f"{self.value(node)};"

    def declared(self, node) -> str:
        """A declaration without its semicolon."""
        start = f" = {self.value(node.value)}" if node.value is not None else ""
        leaf, sizes = leaf_of(node.type)
        space = "local " if node.space == "local" else ""
        return f"{space}{leaf} {node.name}{''.join(f'[{n}]' for n in sizes)}{start}"

    def do_declaration(self, node) -> str:
        return f"{self.declared(node)};"

    def do_declarations(self, node) -> str:
        return " ".join(map(self.statement, node.items))

    def do_block(self, node) -> str:
        body = "\n".join(map(self.statement, node.body))
        return f"{{\n{body}\n}}"

    def do_if(self, node) -> str:
        no = f" else {self.statement(node.no)}" if node.no else ""
        return f"if ({self.value(node.condition)}) {{ {self.statement(node.yes)} }}{no}"

    def do_loop(self, node) -> str:
        start = self.statement(node.start) if node.start else ""
        condition = self.value(node.condition) if node.condition else "1"
        step, body = self.value(node.step) if node.step else "", self.statement(node.body)
        if node.first:
            return f"{{ {start} for (; {condition}; {step}) {body} }}"
        return f"do {body} while ({condition});"

    def do_jump(self, node) -> str:
        return f"{node.word} {self.value(node.value) if node.value else ''};"

    def function(self, node: tree.Function) -> str:
        params = [f"{p.type} {p.name}" for p in node.params] + ["global int* counted"]
        size = f"reqd_work_group_size({self.values(node.size)})" if node.size else ""
        head = f"{'kernel ' * node.kernel}{f'__attribute__(({size})) ' * bool(size)}{node.type}"
        return f"{head} {node.name}({', '.join(params)})\n{self.statement(node.body)}"

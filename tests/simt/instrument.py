"""A kernel's text written anew from the simulator's own tree, with a counter at every load and store.

A real device runs the result, so what it counts depends on nothing of the simulator but its parser. Counters are bumped
by atomic functions; there is one for the loads and one for the stores of each array in global or local memory.
"""

from __future__ import annotations

import re

from gemmlab.simt import tree
from gemmlab.simt.parse import Parser
from gemmlab.simt.text import Preprocessor
from gemmlab.simt.types import Array, Pointer, Type, Vector, leaf_of, length


def instrumented(text: str, defines: dict[str, int]) -> tuple[str, list[tuple[str, bool]]]:
    """OpenCL C with one more parameter, `global int* counted`; and of each counter its array, and whether it stores."""
    functions, constants = Parser(Preprocessor(defines).run(text)).file()
    writer = Instrument()
    parts = [f"constant {writer.declared(d)};" for d in constants]
    parts += [writer.function(f) for f in functions.values()]
    return "\n".join(parts), writer.counters


class Instrument:
    """Writes C from a tree. `names` says of each variable its type, and the array that it is or points into."""

    def __init__(self) -> None:
        self.counters: list[tuple[str, bool]] = []
        self.names: list[dict[str, tuple[Type, str]]] = [{}]

    # ---- which array
    def known(self, name: str) -> tuple[Type, str]:
        return next((scope[name] for scope in reversed(self.names) if name in scope), (Vector, ""))  # type: ignore[return-value]

    def array(self, node) -> str:
        """The array that an expression points into, or nothing for private memory."""
        if isinstance(node, tree.Name):
            return self.known(node.name)[1]
        if isinstance(node, (tree.Cast, tree.Unary)):
            return self.array(node.operand)
        if isinstance(node, (tree.Index, tree.Member)):
            return self.array(node.array if isinstance(node, tree.Index) else node.vector)
        if isinstance(node, tree.Binary):
            return self.array(node.left) or self.array(node.right)
        if isinstance(node, tree.Choice):
            return self.array(node.yes)
        return ""

    def type(self, node) -> Type | None:
        """The type of an expression, as far as it is one that leads to an array."""
        if isinstance(node, tree.Name):
            return self.known(node.name)[0]
        if isinstance(node, tree.Cast):
            return node.type
        if isinstance(node, tree.Index) or isinstance(node, tree.Unary) and node.op == "*":
            of = self.type(node.array if isinstance(node, tree.Index) else node.operand)
            return of.of if isinstance(of, Array) else of.to if isinstance(of, Pointer) else None
        if isinstance(node, tree.Unary) and node.op == "&":
            of = self.type(node.operand)
            return Pointer(of) if of else None
        if isinstance(node, tree.Binary):
            found = self.type(node.left)
            return found if isinstance(found, (Pointer, Array)) else self.type(node.right)
        return None

    def bump(self, array: str, store: bool, width: int) -> str:
        if (array, store) not in self.counters:
            self.counters.append((array, store))
        return f"atomic_add(counted + {self.counters.index((array, store))}, {width})"

    def accessed(self, node) -> tuple[str, int] | None:
        """The array that an expression is an element of, and how many numbers that has; None if it is none."""
        if not (isinstance(node, tree.Index) or isinstance(node, tree.Unary) and node.op == "*"):
            return None
        array, of = self.array(node), self.type(node)
        return (array, length(of)) if array and not isinstance(of, Array) else None

    # ---- expressions
    def place(self, node) -> str:
        """An expression that is stored to, or whose address is taken: what it holds is not loaded."""
        if isinstance(node, tree.Index):
            return f"{self.place(node.array)}[{self.value(node.index)}]"
        if isinstance(node, tree.Member):
            return f"{self.place(node.vector)}.{node.name}"
        if isinstance(node, tree.Unary) and node.op == "*":
            return f"(*{self.value(node.operand)})"
        return self.value(node)

    def value(self, node) -> str:
        access = self.accessed(node)
        if access:
            return f"({self.bump(access[0], False, access[1])}, {self.place(node)})"
        return getattr(self, f"_{type(node).__name__.lower()}")(node)

    def values(self, nodes) -> str:
        return ", ".join(self.value(n) for n in nodes)

    def _number(self, node) -> str:
        if node.type.whole:
            return f"{int(node.value)}{'u' * (node.type.kind == 'uint')}{'l' * (node.type.size == 8)}"
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
        return f"({node.op}{self.place(node.operand) if node.op == '&' else self.value(node.operand)})"

    def _binary(self, node) -> str:
        return f"({self.value(node.left)} {node.op} {self.value(node.right)})"

    def _choice(self, node) -> str:
        return f"({self.value(node.condition)} ? {self.value(node.yes)} : {self.value(node.no)})"

    def _cast(self, node) -> str:
        return f"(({node.type}){self.value(node.operand)})"

    def _vectorliteral(self, node) -> str:
        return f"(({node.type})({self.values(node.parts)}))"

    def _braces(self, node) -> str:
        return f"{{{self.values(node.items)}}}"

    def _changed(self, target, code: str, loads: bool) -> str:
        access = self.accessed(target)
        bumps = [self.bump(access[0], store, access[1]) for store in (False, True) if store or loads] if access else []
        return f"({', '.join([*bumps, code])})"

    def _assign(self, node) -> str:
        code = f"{self.place(node.target)} {node.op}= {self.value(node.value)}"
        return self._changed(node.target, code, bool(node.op))

    def _step(self, node) -> str:
        place = self.place(node.target)
        return self._changed(node.target, f"{node.op}{place}" if node.before else f"{place}{node.op}", True)

    def _call(self, node) -> str:
        code = f"{node.name}({self.values(node.args)})"
        moves = re.fullmatch(r"v(load|store)(\d+)", node.name)
        if moves and (array := self.array(node.args[-1])):
            return f"({self.bump(array, moves[1] == 'store', int(moves[2]))}, {code})"
        return code

    # ---- statements
    def statement(self, node) -> str:
        known = getattr(self, f"do_{type(node).__name__.lower()}", None)
        return known(node) if known else f"{self.value(node)};"

    def declared(self, node) -> str:
        """A declaration without its semicolon."""
        shared = isinstance(node.type, Array) and node.space == "local"
        into = self.array(node.value) if isinstance(node.type, Pointer) and node.value is not None else ""
        code = self.value(node.value) if node.value is not None else ""
        self.names[-1][node.name] = (node.type, node.name if shared else into)
        leaf, sizes = leaf_of(node.type)
        space = "local " if node.space == "local" else ""
        return f"{space}{leaf} {node.name}{''.join(f'[{n}]' for n in sizes)}{' = ' * bool(code)}{code}"

    def do_declaration(self, node) -> str:
        return f"{self.declared(node)};"

    def do_declarations(self, node) -> str:
        return " ".join(map(self.statement, node.items))

    def do_block(self, node) -> str:
        self.names.append({})
        body = "\n".join(map(self.statement, node.body))
        self.names.pop()
        return f"{{\n{body}\n}}"

    def do_if(self, node) -> str:
        no = f" else {self.statement(node.no)}" if node.no else ""
        return f"if ({self.value(node.condition)}) {{ {self.statement(node.yes)} }}{no}"

    def do_loop(self, node) -> str:
        self.names.append({})
        start = self.statement(node.start) if node.start else ""
        condition = self.value(node.condition) if node.condition else "1"
        step, body = self.value(node.step) if node.step else "", self.statement(node.body)
        self.names.pop()
        return f"{{ {start} for (; {condition}; {step}) {body} }}" if node.first else f"do {body} while ({condition});"

    def do_jump(self, node) -> str:
        return f"{node.word} {self.value(node.value) if node.value else ''};"

    def function(self, node: tree.Function) -> str:
        """A function; the kernel gets the counters. Functions that it calls may not touch shared arrays."""
        self.names.append({p.name: (p.type, p.name if node.kernel and isinstance(p.type, Pointer) else "")
                           for p in node.params})  # fmt: skip
        params = [f"{p.type} {p.name}" for p in node.params] + ["global int* counted"] * node.kernel
        body = self.statement(node.body)
        self.names.pop()
        size = f"__attribute__((reqd_work_group_size({self.values(node.size)}))) " if node.size else ""
        return f"{'kernel ' * node.kernel}{size}{node.type} {node.name}({', '.join(params)})\n{body}"

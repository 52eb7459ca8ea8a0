"""A kernel's text written anew from the simulator's own tree, with a counter at every load and
store.

A real device runs the result, so what it counts depends on nothing of the simulator but its parser.
Counters are bumped by atomic functions; there is one for the loads and one for the stores of each
array in global or local memory, and two without a name for private arrays. A function that takes a
pointer also takes the counters of the array behind it.
"""

from __future__ import annotations

import math
import re

from gemmlab.simt import tree
from gemmlab.simt.parse import Parser
from gemmlab.simt.text import Preprocessor
from gemmlab.simt.types import Array, Pointer, leaf_of, length


def instrumented(text: str, defines: dict[str, int]) -> tuple[str, list[tuple[str, bool]]]:
    """OpenCL C with one more parameter, `global int* counted`; and of each counter its array, and
    whether it stores.
    """
    functions, constants = Parser(Preprocessor(defines).run(text)).file()
    writer = Instrument(functions)
    parts = [f"constant {writer.declared(d)};" for d in constants]
    parts += [writer.function(f) for f in functions.values()]
    return "\n".join(parts), writer.counters


Counters = tuple[str, str] | None  # C for pointers to the counters of an array's loads and stores


class Instrument:
    """Writes C from a tree.

    `names` says of each variable the counters of the array that it is or points into, if that is
    shared. A variable that is a pointer has pointers to these counters beside it, because it may be
    set to another array.
    """

    def __init__(self, functions: dict[str, tree.Function]) -> None:
        self.functions = functions
        self.counters: list[tuple[str, bool]] = []
        self.names: list[dict[str, Counters]] = [{}]

    # ---- which array
    def own(self, array: str) -> tuple[str, str]:
        """The counters of an array."""
        if (array, False) not in self.counters:
            self.counters += [(array, False), (array, True)]
        first = self.counters.index((array, False))
        return f"counted + {first}", f"counted + {first + 1}"

    def array(self, node) -> Counters:
        """The counters of the array that an expression points into, or None for private memory."""
        if isinstance(node, tree.Name):
            return next(
                (scope[node.name] for scope in reversed(self.names) if node.name in scope), None
            )
        if isinstance(node, (tree.Cast, tree.Convert, tree.Unary)):
            return self.array(node.operand)
        if isinstance(node, tree.Member):
            return self.array(node.vector)
        if isinstance(node, tree.Index):
            of = self.array(node.array)
            if of is None or not isinstance(node.type, Pointer):
                return of
            # of an array of pointers
            loads, stores = (f"{counter}[{self.value(node.index)}]" for counter in of)
            return loads, stores
        if isinstance(node, tree.Binary):
            return self.array(node.left) or self.array(node.right)
        if isinstance(node, tree.Choice):
            yes, no = self.behind(node.yes), self.behind(node.no)
            loads, stores = (
                f"({self.value(node.condition)} ? {a} : {b})" for a, b in zip(yes, no, strict=True)
            )
            return loads, stores
        return None

    def behind(self, node) -> tuple[str, str]:
        """The counters of the array that a pointer points into; of private ones, those without a
        name.
        """
        return self.array(node) or self.own("")

    def bump(self, array: tuple[str, str], store: bool, width: int) -> str:
        return f"atomic_add({array[store]}, {width})"

    def accessed(self, node) -> tuple[tuple[str, str], int] | None:
        """The array that an expression is an element of, and how many numbers the element has; None
        if it is none.
        """
        if not (isinstance(node, tree.Index) or isinstance(node, tree.Unary) and node.op == "*"):
            return None
        array, of = self.array(node), node.type
        return (array, length(of)) if array and not isinstance(of, (Array, Pointer)) else None

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
        access = self.accessed(node)
        if access:
            return f"({self.bump(access[0], False, access[1])}, {self.place(node)})"
        return getattr(self, f"_{type(node).__name__.lower()}")(node)

    def values(self, nodes) -> str:
        return ", ".join(self.value(n) for n in nodes)

    def _number(self, node) -> str:
        if node.type.whole:
            return (
                f"{int(node.value)}{'u' * (node.type.kind == 'uint')}{'l' * (node.type.size == 8)}"
            )
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
        return (
            f"({node.op}{self.place(node.operand) if node.op == '&' else self.value(node.operand)})"
        )

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

    def _changed(self, target, code: str, loads: bool) -> str:
        access = self.accessed(target)
        bumps = (
            [self.bump(access[0], store, access[1]) for store in (False, True) if store or loads]
            if access
            else []
        )
        return f"({', '.join([*bumps, code])})"

    def _assign(self, node) -> str:
        if not node.op and isinstance(node.target.type, Pointer):
            counters = zip(self.behind(node.target), self.behind(node.value), strict=True)
            set_to = [f"{mine} = {its}" for mine, its in counters]
            return f"({', '.join(set_to)}, {self.place(node.target)} = {self.value(node.value)})"
        code = f"{self.place(node.target)} {node.op}= {self.value(node.value)}"
        return self._changed(node.target, code, bool(node.op))

    def _step(self, node) -> str:
        place = self.place(node.target)
        return self._changed(
            node.target, f"{node.op}{place}" if node.before else f"{place}{node.op}", True
        )

    def _call(self, node) -> str:
        args = [self.value(n) for n in node.args]
        if node.name in self.functions:
            pointers = pointers_of(self.functions[node.name])
            args += [
                c for n, p in zip(node.args, pointers, strict=True) if p for c in self.behind(n)
            ] + ["counted"]
        code = f"{node.name}({', '.join(args)})"
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
        code = self.value(node.value) if node.value is not None else ""
        leaf, sizes = leaf_of(node.type)
        space = "local " if node.space == "local" else ""
        start, each = f" = {code}" if code else "", "".join(f"[{n}]" for n in sizes)
        mine, more = self.own(node.name) if node.space == "local" else None, ""
        if isinstance(leaf, Pointer):
            mine = companions(node.name)
            given = [f" = {counter}" for counter in self.behind(node.value)] if code else ["", ""]
            more = "".join(f"; global int* {a}{each}{b}" for a, b in zip(mine, given, strict=True))
        self.names[-1][node.name] = mine
        return f"{space}{leaf} {node.name}{each}{start}{more}"

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
        return (
            f"{{ {start} for (; {condition}; {step}) {body} }}"
            if node.first
            else f"do {body} while ({condition});"
        )

    def do_jump(self, node) -> str:
        return f"{node.word} {self.value(node.value) if node.value else ''};"

    def function(self, node: tree.Function) -> str:
        """A function with a parameter more, the counters; two more for each pointer, if it is no
        kernel.
        """
        pointers = [name for name in pointers_of(node) if name]
        of = self.own if node.kernel else companions
        self.names.append({p.name: of(p.name) if p.name in pointers else None for p in node.params})
        params = [f"{p.type} {p.name}" for p in node.params]
        params += [f"global int* {c}" for name in pointers for c in companions(name)] * (
            not node.kernel
        )
        body = self.statement(node.body)
        self.names.pop()
        size = (
            f"__attribute__((reqd_work_group_size({self.values(node.size)}))) " if node.size else ""
        )
        head = f"{'kernel ' * node.kernel}{size}{node.type} {node.name}"
        return f"{head}({', '.join([*params, 'global int* counted'])})\n{body}"


def pointers_of(function: tree.Function) -> list[str]:
    """The names of its parameters, empty for those that are no pointers."""
    return [p.name if isinstance(p.type, Pointer) else "" for p in function.params]


def companions(name: str) -> tuple[str, str]:
    """The variables beside a pointer."""
    return f"{name}_loaded", f"{name}_stored"

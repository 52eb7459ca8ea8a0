"""A kernel's tree becomes the text of Python functions: one variable is all work-items' value of it.

Kernel 02's inner loop, for example, becomes (numbers keep names apart; s5 is a place in the kernel's text)

    while True:
        c_21 = (k_20 < 8)
        if c_21 is not True:
            mask, _ = wave.branch(mask, c_21, s6)
            if mask is False: break
        t_22 = wave.load(s7, Atile_8, (k_20, tm_4, ), mask)
        ...

so Python runs the loop once for all work-items. `mask` says for which of them. A barrier is a `yield`: the same text
serves as one wave of all work-items, or as many that take turns.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

from . import tree, values
from .calls import Calls
from .parse import Parser, constant
from .text import Macro, Preprocessor, Spot, TextError
from .tree import Node, written
from .types import SCALARS, Array, Scalar, Type, Vector, Void, an, layout, leaf_of, length, stride
from .writer import Value


@dataclass(eq=False)
class Program:
    """A kernel that is ready to run.

    Attributes:
        name: of its `__kernel` function; params: its parameters.
        size: what it requires of a work-group, or an empty tuple.
        code: the function of Python that it became.
        locals: its arrays in local memory.
        text: the kernel's own text; spot: where its name stands; macros: those that hold at its end, by name.
    """

    name: str
    params: list[tree.Declaration]
    size: tuple[int, ...]
    code: Callable[..., Any]
    locals: list[tree.Declaration]
    text: str
    spot: Spot
    macros: dict[str, Macro]


def compile_kernel(text: str, name: str | None = None, defines: Mapping[str, object] | None = None) -> Program:
    """Translate the kernel `name` of a text, or its first. Raises TextError with line and column."""
    try:
        return _compiled(text, name, defines)
    except TextError as error:
        error.source = text
        raise
    except (RecursionError, MemoryError, SyntaxError) as error:
        if isinstance(error, SyntaxError) and "too many" not in str(error):
            raise
        raise TextError("this text is nested too deeply for Python", Spot(1)) from None


def _compiled(text: str, name: str | None, defines: Mapping[str, object] | None) -> Program:
    preprocessor = Preprocessor(defines)
    tokens = preprocessor.run(text)
    functions, constants = Parser(tokens).file()
    kernels = [f for f in functions.values() if f.kernel]
    if not kernels:
        raise TextError("there is no __kernel function in this text", Spot(1))
    chosen = next((f for f in kernels if f.name == name), None) if name else kernels[0]
    if chosen is None:
        others = ", ".join(f.name for f in kernels)
        raise TextError(f"there is no __kernel {name!r} in this text, but {others}", Spot(1))
    translator = Translator(functions, constants, preprocessor.macros)
    python = translator.program(chosen)
    names = {n: getattr(values, n) for n in dir(values) if not n.startswith("_")}
    names |= values.FUNCTIONS | translator.constants
    names |= {f"{s.name}_type": s for s in SCALARS.values()}
    names |= {f"s{site.number}": site for site in translator.sites}
    exec(compile(python, f"<{chosen.name}>", "exec"), names)
    size = tuple(constant(n) for n in chosen.size)
    code = names[f"f_{chosen.name}"]
    return Program(chosen.name, chosen.params, size, code, translator.locals, text, chosen.spot, preprocessor.macros)


@dataclass
class _Around:
    """The loop or switch around a statement: variables that collect the lanes of `continue` and of `break`."""

    skipped: str = ""
    left: str = ""


class Translator(Calls):
    """Functions and statements; each statement becomes lines."""

    def __init__(self, functions: dict[str, tree.Function], constants: list[tree.Declaration], macros) -> None:
        super().__init__()
        self.functions, self.globals, self.macros = functions, constants, macros
        self.around: list[_Around] = []
        self.function: tree.Function | None = None
        self._exits: dict[int, frozenset[str]] = {}  # by the id of a node

    def program(self, kernel: tree.Function) -> str:
        """The Python text of a kernel and of all that it calls."""
        needed: list[str] = []

        def need(name: str, callers: tuple[str, ...]) -> None:
            if name in callers:
                self.fail(self.functions[name], f"{name} calls itself, which OpenCL C does not allow")
            if name not in needed:
                for callee in self.calls(name):
                    if callee in self.functions:
                        need(callee, (*callers, name))
                needed.append(name)

        need(kernel.name, ())
        for name in needed:
            self.define(self.functions[name])
        return "\n".join(self.lines) + "\n"

    def define(self, function: tree.Function) -> None:
        self.function, self.scopes, self.around = function, [{}], []
        nodes = list(function.body.walk())
        self.assigned = {_root(n.target) for n in nodes if isinstance(n, (tree.Assign, tree.Step))}
        self.addressed = {_root(n.operand) for n in nodes if isinstance(n, tree.Unary) and n.op == "&"}
        given = [f"given_{param.name}" for param in function.params]
        self.depth = 0
        self.emit(f"def f_{function.name}({', '.join(['wave', 'mask', *given])}):")
        self.depth = 1
        self.emit("gone, result = False, None")
        if function.kernel:
            self.emit("if False: yield  # a kernel may wait at barriers, so it is a generator")
        for declaration in self.globals:
            self.constant(declaration)
        self.scopes.append({})
        for param, name in zip(function.params, given, strict=True):
            self.variable(param, Value(name, param.type))
        self.statements(function.body.body)
        self.emit("return finished(result)")

    def constant(self, node: tree.Declaration) -> None:
        """A variable outside of all functions."""
        if not isinstance(node.type, Scalar) or node.value is None:
            self.fail(node, f"{node.name!r}: outside of functions only constants of one number are known here")
        value = self.convert(self.expression(node.value), node.type, node)
        variable = self.declare(node, node.name, node.type, const=True)
        variable.python = value.code

    def exits(self, node: Node) -> frozenset[str]:
        """By which words lanes may leave a statement in its middle: return, break, continue."""
        known = self._exits.get(id(node))
        if known is None:
            known = frozenset().union(*(self.exits(child) for child in node.children()))
            if isinstance(node, tree.Jump):
                known |= {node.word}
            self._exits[id(node)] = known
        return known

    # ---- statements
    def statements(self, body: list[Node]) -> None:
        """One after the other; behind one that may end the way of some lanes, only for those that go on."""
        depth = self.depth
        for number, node in enumerate(body, 1):
            self.statement(node)
            if number < len(body) and self.exits(node):
                self.emit("if mask is not False:")
                self.depth += 1
        if self.depth > depth and self.lines[-1].endswith("if mask is not False:"):
            self.emit("pass")
        self.depth = depth

    def statement(self, node: Node) -> None:
        known = getattr(self, f"do_{type(node).__name__.lower()}", None)
        if known is not None:
            known(node)
        else:
            self.named(self.expression(node))

    def inner(self, node: Node) -> None:
        """A statement with names of its own."""
        self.scopes.append({})
        self.statement(node)
        self.scopes.pop()

    def do_block(self, node: tree.Block) -> None:
        self.scopes.append({})
        self.statements(node.body)
        self.scopes.pop()

    def do_declarations(self, node: tree.Declarations) -> None:
        for item in node.items:
            self.statement(item)

    def do_declaration(self, node: tree.Declaration) -> None:
        if isinstance(node.type, Void):
            self.fail(node, f"{node.name!r} cannot be void")
        if node.space == "local":
            self.local(node)
        elif node.value is None or isinstance(node.value, tree.Braces):
            self.variable(node, None)
        elif isinstance(node.type, Array):
            self.fail(node, f"{node.name!r} is an array: its values stand in {{ }}")
        else:
            self.variable(node, self.convert(self.expression(node.value), node.type, node.value))

    def variable(self, node: tree.Declaration, value: Value | None) -> None:
        """A private variable with its first value, if there is one."""
        if isinstance(node.type, Array) or node.name in self.addressed:
            self.private(node, value)
            return
        if node.value is not None and value is None:
            self.expression(node.value)  # values in braces are for arrays
        if node.const and value is None:
            self.fail(node, f"{node.name!r} is const, but has no value")
        variable = self.declare(node, node.name, node.type, const=node.const, unset=value is None)
        self.emit(f"{variable.python} = {value.code if value else None}")
        if node.name in self.assigned:
            self.emit(f"mask_{variable.python} = mask")

    def local(self, node: tree.Declaration) -> None:
        """An array that the work-items of a group share."""
        if node.value is not None:
            self.fail(node, f"{node.name!r} is in local memory, which cannot be given values where it is declared")
        leaf, _ = leaf_of(node.type)
        if not isinstance(leaf, (Scalar, Vector)):
            self.fail(node, f"a local array of {leaf} is not known to this simulator")
        variable = self.declare(node, node.name, node.type, in_memory=True, space="local")
        self.locals.append(node)
        self.emit(f"{variable.python} = wave.local_arrays[{len(self.locals) - 1}]")

    def private(self, node: tree.Declaration, value: Value | None) -> None:
        """A private array, or a variable whose address is taken: it lies in memory, too."""
        leaf, _ = leaf_of(node.type)
        scalar, sizes = layout(node.type)
        given = [] if value is None else [(0, self.keep(value.code))]
        zeroes = isinstance(node.value, tree.Braces)
        if isinstance(node.value, tree.Braces):
            places = self.places(node.value, node.type, 0)
            given = [(i, self.convert(self.expression(n), leaf, n).code) for i, n in places]
        variable = self.declare(node, node.name, node.type, in_memory=True, const=node.const)
        self.emit(f"{variable.python} = wave.private({node.name!r}, {scalar}_type, {sizes}, {zeroes})")
        each = stride(leaf) // scalar.size
        for place, code in given:
            self.emit(f"{variable.python}.give({place * each}, {length(leaf)}, {code})")

    def places(self, node: Node, of: Type, first: int) -> list[tuple[int, Node]]:
        """Which element each value between { and } belongs to; those without one become 0."""
        if not isinstance(of, Array):
            if isinstance(node, tree.Braces):
                if len(node.items) != 1:
                    self.fail(node, f"one value is expected here, not {len(node.items)}")
                node = node.items[0]
            return [(first, node)]
        assert isinstance(node, tree.Braces)
        each = prod(leaf_of(of.of)[1])
        found: list[tuple[int, Node]] = []
        at = first
        for item in node.items:
            deep = isinstance(item, tree.Braces)
            if at >= first + of.n * each:
                self.fail(item, f"too many values for {an(of)}")
            found += self.places(item, of.of, at) if deep else [(at, item)]
            at += each if deep else 1
        return found

    def do_if(self, node: tree.If) -> None:
        condition = self.condition(node.condition)
        if condition.constant is not None:
            chosen = node.yes if condition.constant else node.no
            if chosen is not None:
                self.inner(chosen)
            return
        before = self.keep("mask", "before")
        yes, no = self.branch(condition.code, node, written(node.condition))
        jumps = self.exits(node)
        for side, body in ((yes, node.yes), (no, node.no)):
            if body is not None:
                with self.under(f"if {side} is not False:", side):
                    self.inner(body)
                    if jumps:
                        self.emit(f"{side} = mask")
        self.emit(f"mask = union({before}, {yes}, {no})" if jumps else f"mask = {before}")

    def do_loop(self, node: tree.Loop) -> None:
        self.scopes.append({})
        if node.start is not None:
            self.statement(node.start)
        before, rounds, skipped = self.fresh("before"), self.fresh("rounds"), self.fresh("skipped")
        site = self.site("loop", node.spot, written(node.condition) if node.condition else "")
        self.emit(f"{before}, {rounds}, {skipped} = mask, 0, False")
        self.around.append(_Around(skipped))
        with self.under("while True:"):
            if node.first:
                self.leave_unless(node.condition, site)
            self.emit(f"{rounds} += 1")
            self.emit(f"if {rounds} > wave.limit: wave.endless({site}, mask)")
            self.inner(node.body)
            if self.exits(node.body):
                self.emit(f"mask = union({before}, mask, {skipped})")
                self.emit(f"{skipped} = False")
                self.emit("if mask is False: break")
            if node.step is not None:
                self.statement(node.step)
            if not node.first:
                self.leave_unless(node.condition, site)
        self.around.pop()
        self.emit(f"mask = without({before}, gone)" if "return" in self.exits(node.body) else f"mask = {before}")
        self.scopes.pop()

    def leave_unless(self, condition: Node | None, site: str) -> None:
        """Lanes for which a loop's condition does not hold wait behind the loop."""
        if condition is None:
            return
        value = self.keep(self.condition(condition).code, "c")
        with self.under(f"if {value} is not True:"):
            self.emit(f"mask, _ = wave.branch(mask, {value}, {site})")
            self.emit("if mask is False: break")

    def do_switch(self, node: tree.Switch) -> None:
        """Lanes join at their case, go on through the next, and leave at `break`."""
        value = self.promoted(self.expression(node.value), node.value)
        if not isinstance(value.type, Scalar) or not value.type.whole:
            self.fail(node, f"a switch needs a whole number, not {an(value.type)}")
        name, before, left = self.keep(value.code), self.keep("mask", "before"), self.keep("False", "left")
        site = self.site("branch", node.spot, written(node.value))
        cases = [constant(n.value) for n in node.body if isinstance(n, tree.Case) and n.value is not None]
        others = " & ".join(f"({name} != {v})" for v in cases) or "True"
        outer = self.around[-1].skipped if self.around else ""
        self.around.append(_Around(outer, left))
        self.scopes.append({})
        self.emit("mask = False")
        for item in node.body:
            if isinstance(item, tree.Case):
                test = f"({name} == {constant(item.value)})" if item.value is not None else others
                self.emit(f"mask = union({before}, mask, wave.branch({before}, {test}, {site})[0])")
            else:
                with self.under("if mask is not False:"):
                    self.statement(item)
        self.scopes.pop()
        self.around.pop()
        self.emit(f"mask = union({before}, mask, {left})")
        if not any(isinstance(n, tree.Case) and n.value is None for n in node.body):
            self.emit(f"mask = union({before}, mask, wave.branch({before}, {others}, {site})[0])")

    def do_case(self, node: tree.Case) -> None:
        self.fail(node, "'case' and 'default' stand in a switch")

    def do_jump(self, node: tree.Jump) -> None:
        """The lanes are gone from here; those of `continue`, and of a switch's `break`, are collected."""
        if node.word == "return":
            self.finish(node)
            return
        if not self.around:
            self.fail(node, f"{node.word!r} stands in a loop")
        around = self.around[-1]
        collects = around.left if node.word == "break" else around.skipped
        if node.word == "continue" and not around.skipped:
            self.fail(node, "'continue' stands in a loop")
        if collects:
            self.emit(f"{collects} = union(None, {collects}, mask)")
        self.emit("mask = False")

    def finish(self, node: tree.Jump) -> None:
        assert self.function is not None
        if node.value is not None:
            if isinstance(self.function.type, Void):
                self.fail(node, f"{self.function.name} is void and returns nothing")
            value = self.convert(self.expression(node.value), self.function.type, node.value)
            self.emit(f"result = assign(mask, {value.code}, result)")
        elif not isinstance(self.function.type, Void):
            self.fail(node, f"{self.function.name} must return {an(self.function.type)}")
        self.emit("gone = union(None, gone, mask)")
        self.emit("mask = False")


def _root(node: Node) -> str:
    """The name of the variable that is changed, or whose address is taken."""
    while isinstance(node, tree.Member):
        node = node.vector
    return node.name if isinstance(node, tree.Name) else ""

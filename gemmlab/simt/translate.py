"""A kernel's tree becomes the text of Python functions: one variable is all work-items' value of
it.

Kernel 02's inner loop, for example, becomes (numbers keep names apart; s5 is a place in the
kernel's text)

    while True:
        c_21 = (k_20 < 8)
        if c_21 is not True:
            mask, _ = wave.branch(mask, c_21, s6)
            if mask is False: break
        t_22 = wave.load(s7, Atile_8, (k_20, tm_4, ), mask)
        ...

so Python runs the loop once for all work-items. `mask` says for which of them. A barrier is a
`yield`: the same text serves as one wave of all work-items, or as many that take turns.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from . import tree, values
from .calls import Calls
from .meaning import constant, known
from .parse import parsed
from .text import PREDEFINED, Clock, Macro, Preprocessor, Spot, TextError, UnknownError, no_limit
from .tree import Node, written
from .types import SCALARS, ULONG, VOID, Type, Vector, layout, length, scalar_of
from .writer import Site


@dataclass(eq=False)
class Program:
    """A kernel that is ready to run.

    Attributes:
        kernel: the function; functions: all of the text.
        size: what it requires of a work-group, or an empty tuple.
        code: the function of Python that it became; tables: one that fills constant memory.
        locals: its arrays in local memory; sites: see `Site`.
        text: the kernel's own text; macros: its own and the given ones at its end, by name.
    """

    kernel: tree.Function
    functions: list[tree.Function]
    size: tuple[int, ...]
    code: Callable[..., Any]
    tables: Callable[..., Any]
    locals: list[tree.Declaration]
    sites: list[Site]
    text: str
    macros: dict[str, Macro]

    @property
    def name(self) -> str:
        return self.kernel.name

    @property
    def params(self) -> list[tree.Declaration]:
        return self.kernel.params


def compile_kernel(text: str, name: str | None = None, defines: Mapping[str, object] | None = None,
                   clock: Clock = no_limit) -> Program:  # fmt: skip
    """Translate a kernel, by default the first. Raises TextError with line and column."""
    try:
        return _compiled(text, name, defines, clock)
    except TextError as error:
        error.source = text
        raise
    except (RecursionError, MemoryError, SyntaxError) as error:
        if isinstance(error, SyntaxError) and "too many" not in str(error):
            raise
        raise UnknownError("a text that is nested so deeply", Spot(1)) from None


def _compiled(
    text: str, name: str | None, defines: Mapping[str, object] | None, clock: Clock
) -> Program:
    preprocessor = Preprocessor(defines, clock)
    functions, constants = parsed(text, preprocessor)
    kernels = [f for f in functions.values() if f.kernel and f.body]
    if not kernels:
        raise TextError("there is no __kernel function in this text", Spot(1))
    chosen = next((f for f in kernels if f.name == name), None) if name else kernels[0]
    if chosen is None:
        others = ", ".join(f.name for f in kernels)
        raise TextError(f"there is no __kernel {name!r} in this text, but {others}", Spot(1))
    translator = Translator(functions, constants, clock)
    python = translator.program(chosen)
    names = {n: getattr(values, n) for n in dir(values) if not n.startswith("_")}
    names |= {f"np_{n}": function for n, function in values.FUNCTIONS.items()}
    names |= {f"{s.name}_type": s for s in SCALARS.values()}
    names |= {f"s{site.number}": site for site in translator.sites} | translator.constants
    exec(compile(python, f"<{chosen.name}>", "exec"), names)
    size = tuple(constant(n) for n in chosen.size)
    code, tables = names[f"f_{chosen.name}"], names["f__tables"]
    every, arrays, sites = list(functions.values()), translator.locals, translator.sites
    macros = {n: m for n, m in preprocessor.macros.items() if m is not PREDEFINED.get(n)}
    return Program(chosen, every, size, code, tables, arrays, sites, text, macros)


def one_of(name: str, numbers: range) -> str:
    """Python text: whether a value is one of some numbers, without gaps."""
    if len(numbers) == 1:
        return f"({name} == {numbers[0]})"
    return f"(({name} >= {numbers.start}) & ({name} < {numbers.stop}))"


@dataclass
class _Around:
    """The enclosing loop or switch: names of the masks of `continue` and of `break`."""

    skipped: str = ""
    left: str = ""


class Translator(Calls):
    """Functions and statements; each statement becomes lines."""

    def __init__(self, functions: dict[str, tree.Function], constants: list[tree.Declaration],
                 clock: Clock = no_limit) -> None:  # fmt: skip
        super().__init__()
        self.clock = clock
        self.functions, self.globals = functions, constants
        self.around: list[_Around] = []
        self._exits: dict[int, frozenset[str]] = {}  # by the id of a node

    def program(self, kernel: tree.Function) -> str:
        """The Python text of a kernel and of all that it calls."""
        needed: list[tree.Function] = []

        def need(function: tree.Function, callers: tuple[tree.Function, ...]) -> None:
            if function in callers:
                self.fail(function, f"{function.name} calls itself, which OpenCL C does not allow")
            if function.body is None:
                self.fail(function, f"{function.name} is declared, but has no body")
            if function.problem:
                raise function.problem
            if function not in needed:
                for call in self.calls(function):
                    if call.target:
                        need(call.target, (*callers, function))
                needed.append(function)

        need(kernel, ())
        self.tables()
        for function in needed:
            self.define(function)
        return "\n".join(self.lines) + "\n"

    def tables(self) -> None:
        """The function that fills constant memory."""
        self.depth = 0
        self.emit("def f__tables(wave, mask):")
        self.depth = 1
        self.emit("gone = False")
        for node in self.globals:
            if node.variable.constant is None or node.variable.addressed:
                name = self.names[node.variable] = f"wave.machine.tables[{node.name!r}]"
                assert node.value is not None
                plain = not isinstance(node.value, tree.Braces)
                self.memory(name, node, self.expression(node.value) if plain else None)

    def define(self, function: tree.Function) -> None:
        assert function.body is not None
        self.early = []
        given = [f"given_{number}" for number, _ in enumerate(function.params)]
        self.depth = 0
        self.emit(f"def f_{function.key}({', '.join(['wave', 'mask', *given])}):")
        self.depth = 1
        result = "None" if function.type is VOID else self.nothing(function.type)
        self.emit(f"gone, result, called = False, {result}, mask")
        if function.kernel:
            self.emit("if False: yield  # a kernel may wait at barriers, so it is a generator")
        start = len(self.lines)
        for param, name in zip(function.params, given, strict=True):
            self.variable(param, name)
        self.statements(function.body.body)
        self.lines[start:start] = self.early
        if function.type is VOID:
            self.emit("return None")
        else:
            text = f"the result of {function.name}"
            site = self.site("unset", function.spot, text, function.type)
            self.emit(f"return wave.given(result, called, {site})")

    def exits(self, node: Node) -> frozenset[str]:
        """By which words lanes may leave a statement in its middle: return, break, continue."""
        found = self._exits.get(id(node))
        if found is None:
            found = frozenset().union(*(self.exits(child) for child in node.children()))
            if isinstance(node, tree.Jump):
                # of a goto the lanes are gone until they come to its label
                found |= {"return" if node.word == "goto" else node.word}
            self._exits[id(node)] = found
        return found

    # ---- statements
    def statements(self, body: list[Node]) -> None:
        """A list of statements; after one that some lanes leave, for the rest."""
        labels = [n.name for n in body if isinstance(n, tree.Label)]
        jumps = (n for s in body for n in s.walk() if isinstance(n, tree.Jump))
        if labels and any(jump.word == "goto" for jump in jumps):
            self.with_labels(body, labels)
        else:
            self.guarded(body)

    def guarded(self, body: list[Node]) -> None:
        guarded = False
        depth = self.depth
        for number, node in enumerate(body, 1):
            start = len(self.lines)
            self.statement(node)
            if guarded and len(self.lines) == start:
                self.emit("pass")
            if number < len(body) and self.exits(node):
                self.depth = depth
                self.emit("if mask is not False:")
                self.depth += 1
                guarded = True
        if self.lines[-1].endswith("if mask is not False:"):
            self.emit("pass")
        self.depth = depth

    def with_labels(self, body: list[Node], labels: list[str]) -> None:
        """Lanes that go to a label wait there; the statements run again until nobody waits."""
        waiting = {name: self.keep("False", f"at_{name}") for name in labels}
        outer, self.waiting = self.waiting, {**self.waiting, **waiting}
        self.skips += 1
        through, rounds = self.keep("False", "through"), self.keep("0", "rounds")
        site = self.site("loop", body[0].spot, "goto")
        with self.under("while True:"):
            self.emit(f"{rounds} += 1")
            self.emit(f"if {rounds} > wave.limit: wave.stop_loop({site}, mask)")
            part: list[Node] = []
            for node in [*body, None]:
                if node is not None and not isinstance(node, tree.Label):
                    part.append(node)
                    continue
                with self.under("if mask is not False:"):
                    if part:
                        self.guarded(part)
                part = []
                if node is not None:
                    here = waiting[node.name]
                    self.emit(f"gone = without(gone, {here})")
                    self.emit(f"mask, {here} = union(called, mask, {here}), False")
            self.emit(f"{through} = union(called, {through}, mask)")
            self.emit(f"if {' and '.join(f'{name} is False' for name in waiting.values())}: break")
            self.emit("mask = False")
        self.emit(f"mask = {through}")
        self.waiting = outer
        self.skips -= 1

    counted = 0  # statements
    waiting: dict[str, str] = {}  # the lanes that wait at each label

    def statement(self, node: Node) -> None:
        self.clock()
        self.counted += 1
        if self.counted % 32 == 0:
            self.emit("wave.limit")  # looks at the time
        special = getattr(self, f"do_{type(node).__name__.lower()}", None)
        if special is not None:
            special(node)
        elif isinstance(node, tree.Expr):
            self.named(self.expression(node))

    def do_block(self, node: tree.Block) -> None:
        self.statements(node.body)

    def do_label(self, node: tree.Label) -> None:
        """A label that nobody goes to."""

    def do_declarations(self, node: tree.Declarations) -> None:
        for item in node.items:
            self.statement(item)

    def do_declaration(self, node: tree.Declaration) -> None:
        if node.space == "local":
            self.local(node)
        elif node.value is None or isinstance(node.value, tree.Braces):
            self.variable(node, None)
        else:
            self.variable(node, self.expression(node.value))

    def local(self, node: tree.Declaration) -> None:
        self.allot(f"{self.declare(node.variable)} = wave.local_arrays[{len(self.locals)}]")
        self.locals.append(node)

    def variable(self, node: tree.Declaration, code: str | None) -> None:
        """A private variable with its first value, if there is one."""
        variable = node.variable
        if variable.in_memory:
            self.private(node, code)
            return
        name = self.declare(variable)
        if code is None or self.skips:
            self.unset.add(variable)
        self.allot(f"{name} = {self.nothing(node.type)}", emits=code is None)
        if code is not None:
            self.emit(f"{name} = {code}")
        if variable.assigned:
            self.allot(f"mask_{name} = ()", emits=False)
            self.emit(f"mask_{name} = mask")

    @staticmethod
    def nothing(of: Type) -> str:
        """Python text for a variable's value before it has any."""
        return f"unset({length(of) if isinstance(of, Vector) else 0}, {scalar_of(of)}_type)"

    def allot(self, line: str, emits: bool = True) -> None:
        """The line that makes a variable; if a jump may skip it, also at the function's begin."""
        if emits:
            self.emit(line)
        if self.skips:
            self.early.append(f"    {line}")

    skips = 0  # how many blocks around a statement may be entered behind their begin
    early: list[str] = []  # each function sets its own

    def private(self, node: tree.Declaration, code: str | None) -> None:
        """A variable in memory: an array, or one that a pointer points to."""
        given = None if code is None else self.keep(code)  # before its name has a new meaning
        self.memory(self.declare(node.variable), node, given)

    def memory(self, name: str, node: tree.Declaration, code: str | None) -> None:
        """Make memory for a variable and fill it, with the value `code` or with those in { }."""
        scalar, sizes = layout(node.type)
        space = "constant" if node.space == "constant" else "private"
        filled = node.value.filled if isinstance(node.value, tree.Braces) else None
        made = f"{node.name!r}, {scalar}_type, {sizes}, {filled is not None}, {space!r}"
        self.allot(f"{name} = wave.private({made})")
        if code is not None:
            self.emit(f"{name}.give(0, {length(node.type)}, {code})")
        for at, item in filled or ():
            of = scalar_of(item.type)
            given = f"{at // of.size}, {length(item.type)}, {self.expression(item)}"
            self.emit(f"{name}.give({given}, {of}_type)")

    def do_if(self, node: tree.If) -> None:
        """if, and a chain of `else if`: each is for the lanes that none before has taken."""
        decided = known(node.condition)
        if decided is not None:
            chosen = node.yes if decided else node.no
            if chosen is not None:
                self.statement(chosen)
            return
        before, jumps = self.keep("mask", "before"), bool(self.exits(node))
        left, ends = before, list[str]()
        other: Node | None = node
        while isinstance(other, tree.If):
            yes, no = self.fresh("yes"), self.fresh("no")
            self.emit(f"{yes} = {no} = False")
            with self.under(f"if {left} is not False:", left):
                condition = self.truth(other.condition)
                site = self.site("branch", other.spot, written(other.condition))
                self.emit(f"{yes}, {no} = wave.branch(mask, {condition}, {site})")
            self.side(yes, other.yes, jumps)
            ends.append(yes)
            left, other = no, other.no
        self.side(left, other, jumps)
        if not jumps:
            self.emit(f"mask = {before}")
            return
        for number, end in enumerate([*ends[1:], left]):
            self.emit(f"mask = union({before}, {'mask' if number else ends[0]}, {end})")

    def side(self, mask: str, body: Node | None, jumps: bool) -> None:
        """What the lanes of a mask do; with jumps, those that are there at the end remain in it."""
        if body is None:
            return
        with self.under(f"if {mask} is not False:", mask):
            self.statement(body)
            if jumps:
                self.emit(f"{mask} = mask")

    def do_loop(self, node: tree.Loop) -> None:
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
            self.emit(f"if {rounds} > wave.limit: wave.stop_loop({site}, mask)")
            self.statement(node.body)
            if self.exits(node.body):
                self.emit(f"mask = union({before}, mask, {skipped})")
                self.emit(f"{skipped} = False")
                self.emit("if mask is False: break")
            if node.step is not None:
                self.statement(node.step)
            if not node.first:
                self.leave_unless(node.condition, site)
        self.around.pop()
        left = f"without({before}, gone)" if "return" in self.exits(node.body) else before
        self.emit(f"mask = {left}")

    def leave_unless(self, condition: tree.Expr | None, site: str) -> None:
        """Lanes for which a loop's condition does not hold wait behind the loop."""
        if condition is None:
            return
        value = self.keep(self.truth(condition), "c")
        with self.under(f"if {value} is not True:"):
            self.emit(f"mask, _ = wave.branch(mask, {value}, {site})")
            self.emit("if mask is False: break")

    def do_switch(self, node: tree.Switch) -> None:
        """Lanes join at their case, go on through the next, and leave at `break`."""
        code = self.expression(node.value)
        code = f"unsigned({code})" if node.value.type is ULONG else code
        name, before, left = (
            self.keep(code), self.keep("mask", "before"), self.keep("False", "left")
        )  # fmt: skip
        site = self.site("branch", node.spot, written(node.value))
        numbers = [n.numbers for n in node.body if isinstance(n, tree.Case)]
        every = [one_of(name, of) for of in numbers if of is not None]
        others = f"(({' | '.join(every)}) ^ True)" if every else "True"
        outer = self.around[-1].skipped if self.around else ""
        self.around.append(_Around(outer, left))
        self.emit("mask = False")
        self.skips += 1
        for item in node.body:
            if isinstance(item, tree.Case):
                test = others if item.numbers is None else one_of(name, item.numbers)
                self.emit(f"mask = union({before}, mask, wave.branch({before}, {test}, {site})[0])")
            else:
                with self.under("if mask is not False:"):
                    self.statement(item)
        self.skips -= 1
        self.around.pop()
        self.emit(f"mask = union({before}, mask, {left})")
        if None not in numbers:
            self.emit(f"mask = union({before}, mask, wave.branch({before}, {others}, {site})[0])")

    def do_jump(self, node: tree.Jump) -> None:
        """The lanes leave; those of `continue` and of a switch's `break` are collected."""
        if node.word in ("return", "goto"):
            if node.word == "goto" and node.label not in self.waiting:
                raise UnknownError("goto into another block", node.spot)
            if node.word == "goto":
                at = self.waiting[node.label]
                self.emit(f"{at} = union(called, {at}, mask)")
            elif node.value is not None:
                value = self.expression(node.value)
                if node.value.type is not VOID:
                    self.emit(f"result = assign(mask, {value}, result)")
            self.emit("gone = union(None, gone, mask)")
        else:
            around = self.around[-1]
            collects = around.left if node.word == "break" else around.skipped
            if collects:
                self.emit(f"{collects} = union(None, {collects}, mask)")
        self.emit("mask = False")

"""A kernel's tree becomes functions of a wave: each carries out a part of it for all work-items at
once.

`wave.mask` says for which of them. So Python runs a loop once for all work-items, and an `if` twice
where they differ.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from itertools import count
from typing import Any

from . import tree
from .budget import RUNNING, Clock, no_limit
from .calls import Calls
from .expressions import Value
from .finding import Site
from .loops import deciding
from .meaning import known
from .parser import kernel_of, parse_with
from .text import PREDEFINED, Macro, Preprocessor, UnknownError, explained
from .tree import Node, written
from .types import ULONG, VOID, Vector
from .values import one_of, union, unsigned
from .wave import Wave

#: A function of the text: what it returns, of a wave and a list of arguments.
Function = Callable[[Wave, list[Any]], Any]
#: Where lanes that have jumped wait: a word, a label or the numbers of a case, and a serial number.
Target = tuple[Hashable, int]


@dataclass(eq=False)
class Program:
    """A kernel that is ready to run.

    Attributes:
        kernel: the function; functions: all of the text.
        size: what it requires of a work-group, or an empty tuple.
        code: runs it; tables: fill constant memory.
        locals: its arrays in local memory; sites: see `Site`.
        text: the kernel's own text; macros: its own and the given ones at its end, by name.
    """

    kernel: tree.Function
    functions: list[tree.Function]
    size: tuple[int, ...]
    code: Function
    tables: list[Value]
    locals: list[tree.Variable]
    sites: list[Site]
    text: str
    macros: dict[str, Macro]

    @property
    def name(self) -> str:
        return self.kernel.name

    @property
    def params(self) -> list[tree.Variable]:
        return self.kernel.params


def compile_kernel(text: str, name: str | None = None, defines: Mapping[str, object] | None = None,
                   clock: Clock = no_limit) -> Program:  # fmt: skip
    """Translate a kernel, by default the first. Raises TextError with line and column."""
    if not isinstance(text, str):
        raise TypeError(f"source must be OpenCL C text, not {type(text).__name__}: {text!r}")
    with explained(text):
        return _compiled(text, name, Preprocessor(defines, clock))


def _compiled(text: str, name: str | None, preprocessor: Preprocessor) -> Program:
    unit = parse_with(preprocessor, text)
    chosen = kernel_of(unit.functions, name)
    translator = Translator(preprocessor.clock)
    for node in unit.variables:
        if node.variable.constant is None or node.variable.addressed:
            translator.tables.append(translator.memory(node.variable, node.value))
    code, size = translator.function(chosen), chosen.size
    arrays, sites = translator.locals, translator.sites
    macros = {n: m for n, m in preprocessor.macros.items() if m is not PREDEFINED.get(n)}
    return Program(
        chosen, unit.functions, size, code, translator.tables, arrays, sites, text, macros
    )


class Translator(Calls):
    """Functions and statements; each statement becomes a `Value` that returns nothing."""

    def __init__(self, clock: Clock = no_limit) -> None:
        super().__init__()
        self.clock = clock
        self.locals: list[tree.Variable] = []  # the arrays in local memory
        self.done: dict[tree.Function, Function] = {}
        self.around: list[tree.Function] = []  # functions that are being translated
        # where the jumps of a statement lead: by words such as `break`, labels and cases
        self.targets: dict[Hashable, Target] = {}
        self.serial = count()
        self.skips = False  # whether a jump may skip the statement

    def target(self, name: Hashable) -> Target:
        """A new target of jumps that name it."""
        made = name, next(self.serial)
        self.targets = {**self.targets, name: made}
        return made

    # ---- functions
    def function(self, function: tree.Function) -> Function:
        if function in self.around:
            self.fail(function, f"{function.name} calls itself, which OpenCL C does not allow")
        if function.body is None:
            self.fail(function, f"{function.name} is declared, but has no body")
        if function.problem:
            raise function.problem
        if function not in self.done:
            self.around.append(function)
            outer, self.targets, self.skips = (self.targets, self.skips), {}, False
            self.done[function] = self.defined(function, function.body.body)
            self.targets, self.skips = outer
            self.around.pop()
        return self.done[function]

    def defined(self, function: tree.Function, nodes: list[Node]) -> Callable[..., Any]:
        params, void = function.params, function.type is VOID
        made = [self.memory(p) if p.in_memory else None for p in params]
        self.declared.update(params)
        end, result = self.target("return"), f"the result of {function.name}"
        body = self.scoped(nodes)
        site = self.site("unset", function.spot, result)

        def run(w: Wave, args: list[Any]) -> Any:
            before = w.mask
            w.held[function], w.since[function] = w.blank(result, function.type), before
            for variable, make, value in zip(params, made, args, strict=True):
                w.held[variable], w.since[variable] = value, before
                if make:
                    make(w)
                    w.held[variable].give(0, variable.type.length, value, variable.type.scalar)
            body(w)
            if not void and w.mask is not False:  # some have not reached a `return`
                w.check(site, False)
            w.waiting.pop(end, None)
            w.mask = before
            return w.held[function]

        return run

    def call(self, node: tree.Call) -> Value:
        if node.target is None:
            return self.built_in(node)
        args, run = self.args(node), self.function(node.target)
        return lambda w: run(w, [arg(w) for arg in args])

    def value(self, node: tree.Expr) -> Value:
        if isinstance(node, tree.Statements):
            return self.inner(node)
        return super().value(node)

    def inner(self, node: tree.Statements) -> Value:
        outer, self.targets = self.targets, {}  # no jump leads out of an expression
        skips, self.skips = self.skips, False
        steps = self.statements(node.body)
        value = self.value(node.value) if node.value else None
        self.targets, self.skips = outer, skips

        def run(w: Wave) -> Any:
            steps(w)
            return value(w) if value else None

        return run

    # ---- statements
    def statements(self, body: list[Node]) -> Value:
        labels = [n.name for n in body if isinstance(n, tree.Label)]
        jumps = (n for s in body for n in s.walk() if isinstance(n, tree.Jump))
        if labels and any(jump.word == "goto" for jump in jumps):
            return self.labelled(body, labels)[0]
        return self.sequence([self.statement(node) for node in body])

    @staticmethod
    def sequence(steps: list[Value]) -> Value:
        def run(w: Wave) -> None:
            w.machine.budget(RUNNING)
            for step in steps:
                if w.mask is False:
                    return
                step(w)

        return run

    def labelled(self, body: list[Node], names: list[Any]) -> tuple[Value, list[Target]]:
        """Statements with labels or cases, at which lanes wait; they run until none waits."""
        outer, self.skips = (self.targets, self.skips), True
        targets = [self.target(name) for name in names]
        parts: list[Value | Target] = []
        for node in body:
            if isinstance(node, tree.Label):
                parts.append(self.targets[node.name])
            elif isinstance(node, tree.Case):
                parts.append(self.targets[node.numbers])
            else:
                parts.append(self.statement(node))
        self.targets, self.skips = outer
        jumps = (n for s in body for n in s.walk() if isinstance(n, tree.Jump) and n.label)
        site = self.site("loop", next(jumps, body[0]).spot, "goto")
        variables = deciding(body) if len(targets) == 1 else None  # where lanes wait decides, too

        def run(w: Wave) -> None:
            before, loop = w.mask, w.enter(site, variables)
            through: Any = False
            while True:
                coming = w.mask if not loop.rounds else False
                for target in targets:
                    coming = union(before, coming, w.waiting.get(target, False))
                if loop.rounds and coming is False:
                    break
                w.iterate(loop, coming)
                for part in parts:
                    if isinstance(part, tuple):
                        w.arrive(part, before)
                    elif w.mask is not False:
                        part(w)
                through, w.mask = union(before, through, w.mask), False
            w.mask = through
            w.loops.pop()

        return run, targets

    def statement(self, node: Node) -> Value:
        self.clock()
        match node:
            case tree.Block():
                return self.block(node)
            case tree.Declaration():
                return self.declaration(node)
            case tree.If():
                return self.branch(node)
            case tree.Loop():
                return self.loop(node)
            case tree.Switch():
                return self.switch(node)
            case tree.Jump():
                return self.jump(node)
            case tree.Label():  # to which no goto leads
                return self.sequence([])
            case tree.Expr():
                return self.value(node)
        raise TypeError(f"{type(node).__name__} is not a statement")

    def block(self, node: tree.Block) -> Value:
        if not node.scope:
            return self.statements(node.body)
        outer, self.skips = self.skips, False
        steps, self.skips = self.scoped(node.body), outer
        return steps

    def scoped(self, body: list[Node]) -> Value:
        """Statements, at whose end their variables end."""
        steps = self.statements(body)
        parts = [n.body if isinstance(n, tree.Block) and not n.scope else [n] for n in body]
        declared = [n.variable for part in parts for n in part if isinstance(n, tree.Declaration)]
        ending = [v for v in declared if v.in_memory and v.space == "private"]

        def run(w: Wave) -> None:
            steps(w)
            for variable in ending:
                w.end(variable)

        return run if ending else steps

    def declaration(self, node: tree.Declaration) -> Value:
        variable, value = node.variable, node.value
        if variable.space == "local":
            self.locals.append(variable)
            self.declared.add(variable)
            return lambda w: None
        if value is None and isinstance(variable.type, Vector):
            variable.addressed = True  # memory knows which of its numbers have a value
        if variable.in_memory:
            return self.memory(variable, value)
        x = self.value(value) if value else None
        self.declared.add(variable)
        skips, unset = self.skips, x is None or self.skips
        if unset:
            self.unset.add(variable)

        def declare(w: Wave) -> None:
            if not skips:
                w.since[variable] = w.mask
            if unset:
                w.unset(variable)
            if x and skips:
                w.assign(variable, x(w))
            elif x:
                w.held[variable] = x(w)

        return declare

    def branch(self, node: tree.If) -> Value:
        decided = known(node.condition)
        if decided is not None:
            chosen = node.yes if decided else node.no
            return self.statement(chosen) if chosen else self.sequence([])
        site = self.site("branch", node.spot, written(node.condition))
        condition, yes = self.truth(node.condition), self.statement(node.yes)
        sides = yes, self.statement(node.no) if node.no else None

        def run(w: Wave) -> None:
            w.both_sides(condition(w), sides, site)

        return run

    def loop(self, node: tree.Loop) -> Value:
        start = self.statement(node.start) if node.start else None
        test = self.truth(node.condition) if node.condition else None
        site = self.site("loop", node.spot, written(node.condition) if node.condition else "")
        outer, again, end = self.targets, self.target("continue"), self.target("break")
        body, step = self.statement(node.body), self.statement(node.step) if node.step else None
        self.targets, first = outer, node.first
        variables = deciding([node.body, node.step], node.condition)

        def run(w: Wave) -> None:
            if start:
                start(w)
            before, loop = w.mask, w.enter(site, variables)
            done: Any = False
            while w.mask is not False:
                if test and (first or loop.rounds):
                    w.mask, no = w.branch(test(w), site)
                    done = union(before, done, no)
                    if w.mask is False:
                        break
                w.iterate(loop, w.mask)
                body(w)
                w.arrive(again, before)
                if step and w.mask is not False:
                    step(w)
            w.mask = done
            w.arrive(end, before)
            w.loops.pop()

        return run

    def switch(self, node: tree.Switch) -> Value:
        """Lanes wait at their case, fall through to the next ones, and leave at `break`."""
        value, wide = self.value(node.value), node.value.type is ULONG
        site = self.site("branch", node.spot, written(node.value))
        numbers = [n.numbers for n in node.body if isinstance(n, tree.Case)]
        outer, end = self.targets, self.target("break")
        body, targets = self.labelled(node.body, numbers)
        self.targets = outer
        cases = {one: t for one, t in zip(numbers, targets, strict=True) if one}
        default = dict(zip(numbers, targets, strict=True)).get(None, end)

        def run(w: Wave) -> None:
            x, before = value(w), w.mask
            x = unsigned(x) if wide else x
            for one, target in cases.items():
                if w.mask is not False:
                    w.mask, others = w.branch(one_of(x, one), site)
                    w.leave(target)
                    w.mask = others
            w.leave(default)
            body(w)
            w.arrive(end, before)

        return run

    def jump(self, node: tree.Jump) -> Value:
        word, value = node.word, self.value(node.value) if node.value else None
        target, function = self.targets.get(node.label or word), self.around[-1]
        gives = node.value is not None and node.value.type is not VOID
        if target is None:
            raise UnknownError(f"{word} to another block", node.spot)

        def jump(w: Wave) -> None:
            if value:
                result = value(w)
                if gives:
                    w.assign(function, result)
            w.leave(target)

        return jump

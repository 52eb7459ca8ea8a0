"""A kernel's tree becomes functions of a wave: each carries out a part of it for all work-items at
once.

`wave.mask` says for which of them. So Python runs a loop once for all work-items, and an `if` twice
where they differ.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from . import tree
from .calls import Calls
from .expressions import Value, nothing
from .meaning import known
from .parse import kernel_of, parsed
from .text import PREDEFINED, Clock, Macro, Preprocessor, UnknownError, explained, no_limit
from .tree import Node, written
from .types import ULONG, VOID
from .values import assign, one_of, union, unsigned, without
from .watch import Site

if TYPE_CHECKING:
    from .machine import Wave

#: A function of the text: what it returns, of a wave and a list of arguments.
Function = Callable[["Wave", list], Any]
Label = tuple[tree.Function, str]


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
    with explained(text):
        return _compiled(text, name, Preprocessor(defines, clock))


def _compiled(text: str, name: str | None, preprocessor: Preprocessor) -> Program:
    functions, constants = parsed(text, preprocessor)
    chosen = kernel_of(functions, name)
    translator = Translator(preprocessor.clock)
    tables = [
        translator.memory(node.variable, node.value)
        for node in constants
        if node.variable.constant is None or node.variable.addressed
    ]
    code, size = translator.function(chosen), chosen.size
    arrays, sites = translator.locals, translator.sites
    macros = {n: m for n, m in preprocessor.macros.items() if m is not PREDEFINED.get(n)}
    return Program(chosen, functions, size, code, tables, arrays, sites, text, macros)


class Translator(Calls):
    """Functions and statements; each statement becomes a `Step`."""

    def __init__(self, clock: Clock = no_limit) -> None:
        super().__init__()
        self.clock = clock
        self.locals: list[tree.Variable] = []  # the arrays in local memory
        self.done: dict[tree.Function, Function] = {}
        self.around: list[tree.Function] = []  # functions that are being translated
        self.labels: set[Label] = set()  # of the blocks around a statement
        self.skips = 0  # of these blocks, how many may be entered behind their begin

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
            self.done[function] = self.defined(function, function.body.body)
            self.around.pop()
        return self.done[function]

    def defined(self, function: tree.Function, nodes: list[Node]) -> Callable:
        params = function.params
        made = [self.memory(p) if p.in_memory else None for p in params]
        self.declared.update(params)
        outer, self.labels = self.labels, set()
        body, self.labels = self.statements(nodes), outer
        text, void = f"the result of {function.name}", function.type is VOID
        site = self.site("unset", function.spot, text, function.type)
        blank = None if void else nothing(function.type)

        def run(w: Wave, args: list) -> Any:
            outer = w.gone, w.result, w.called
            w.gone, w.result, w.called = False, blank, w.mask
            for variable, make, value in zip(params, made, args, strict=True):
                w.held[variable], w.since[variable] = value, w.mask
                if make:
                    make(w)
                    w.held[variable].give(0, variable.type.length, value, variable.type.scalar)
            body(w)
            w.mask = w.called
            result = None if void else w.given(w.result, site)
            w.gone, w.result, w.called = outer
            return result

        return run

    def _call(self, node: tree.Call) -> Value:
        if node.target is None:
            return super()._call(node)
        args, run = self.args(node), self.function(node.target)
        return lambda w: run(w, [arg(w) for arg in args])

    # ---- statements
    def statements(self, body: list[Node]) -> Value:
        labels = [n.name for n in body if isinstance(n, tree.Label)]
        jumps = (n for s in body for n in s.walk() if isinstance(n, tree.Jump))
        if labels and any(jump.word == "goto" for jump in jumps):
            return self.with_labels(body, labels)
        return self.sequence([self.statement(node) for node in body])

    @staticmethod
    def sequence(steps: list[Value]) -> Value:
        def run(w: Wave) -> None:
            w.machine.clock()
            for step in steps:
                if w.mask is False:
                    return
                step(w)

        return run

    def with_labels(self, body: list[Node], labels: list[str]) -> Value:
        """Lanes that go to a label wait there; the statements run again until nobody waits."""
        keys = [self.label(name) for name in labels]
        self.labels.update(keys)
        self.skips += 1
        parts: list[Value | Label] = [
            self.label(n.name) if isinstance(n, tree.Label) else self.statement(n) for n in body
        ]
        self.skips -= 1
        self.labels.difference_update(keys)
        site = self.site("loop", body[0].spot, "goto")

        def run(w: Wave) -> None:
            waiting, rounds = w.waiting, 0
            through: Any = False
            waiting.update(dict.fromkeys(keys, False))
            while True:
                rounds += 1
                w.round(rounds, site)
                for part in parts:
                    if isinstance(part, tuple):
                        w.gone = without(w.gone, waiting[part])
                        w.mask, waiting[part] = union(w.called, w.mask, waiting[part]), False
                    elif w.mask is not False:
                        part(w)
                through = union(w.called, through, w.mask)
                if all(waiting[key] is False for key in keys):
                    break
                w.mask = False
            w.mask = through

        return run

    def label(self, name: str) -> Label:
        return self.around[-1], name

    def statement(self, node: Node) -> Value:
        self.clock()
        special = getattr(self, f"do_{type(node).__name__.lower()}", None)
        return special(node) if special else self.value(node)  # type: ignore[arg-type]

    def do_block(self, node: tree.Block) -> Value:
        return self.statements(node.body)

    def do_label(self, node: tree.Label) -> Value:
        return lambda w: None  # nobody goes there

    def do_declaration(self, node: tree.Declaration) -> Value:
        variable, value = node.variable, node.value
        if variable.space == "local":
            self.locals.append(variable)
            self.declared.add(variable)
            return lambda w: None
        if variable.in_memory:
            return self.memory(variable, value)
        x, blank = self.value(value) if value else None, nothing(variable.type)
        self.declared.add(variable)
        if x is None or self.skips:
            self.unset.add(variable)

        def declare(w: Wave) -> None:
            w.held[variable] = x(w) if x else blank
            w.since[variable] = w.mask

        return declare

    def do_if(self, node: tree.If) -> Value:
        decided = known(node.condition)
        if decided is not None:
            chosen = node.yes if decided else node.no
            return self.statement(chosen) if chosen else self.sequence([])
        site = self.site("branch", node.spot, written(node.condition))
        condition, yes = self.truth(node.condition), self.statement(node.yes)
        sides = yes, self.statement(node.no) if node.no else None

        def run(w: Wave) -> None:
            before, masks, ends = w.mask, w.branch(condition(w), site), list[Any]()
            for mask, side in zip(masks, sides, strict=True):
                w.mask = mask
                if side and mask is not False:
                    side(w)
                ends.append(w.mask)
            stay = all(end is mask for end, mask in zip(ends, masks, strict=True))
            w.mask = before if stay else union(before, *ends)

        return run

    def do_loop(self, node: tree.Loop) -> Value:
        start = self.statement(node.start) if node.start else None
        test = self.truth(node.condition) if node.condition else None
        site = self.site("loop", node.spot, written(node.condition) if node.condition else "")
        body, step = self.statement(node.body), self.statement(node.step) if node.step else None
        first, last = (test, None) if node.first else (None, test)

        def run(w: Wave) -> None:
            if start:
                start(w)
            outer, before, gone, rounds = (w.skipped, w.left), w.mask, w.gone, 0
            w.skipped = False
            while w.stays(first, site):
                rounds += 1
                w.round(rounds, site)
                body(w)
                w.mask, w.skipped = union(before, w.mask, w.skipped), False
                if w.mask is False:
                    break
                if step:
                    step(w)
                if not w.stays(last, site):
                    break
            w.skipped, w.left = outer
            w.mask = before if w.gone is gone else without(before, w.gone)

        return run

    def do_switch(self, node: tree.Switch) -> Value:
        """Lanes join at their case, go on through the next, and leave at `break`."""
        value, wide = self.value(node.value), node.value.type is ULONG
        site = self.site("branch", node.spot, written(node.value))
        numbers = [n.numbers for n in node.body if isinstance(n, tree.Case)]
        self.skips += 1
        parts: list[tuple[tree.Case | None, Value]] = [
            (n, lambda w: None) if isinstance(n, tree.Case) else (None, self.statement(n))
            for n in node.body
        ]
        self.skips -= 1

        def run(w: Wave) -> None:
            x, before, outer = value(w), w.mask, w.left
            x, w.mask, w.left = unsigned(x) if wide else x, False, False

            def join(numbers: range | None) -> None:
                fits = one_of(x, numbers) if numbers else others
                here, w.mask = w.mask, before
                w.mask = union(before, here, w.branch(fits, site)[0])

            others = True
            for one in filter(None, numbers):
                others = others & (one_of(x, one) ^ True)
            for case, step in parts:
                if case:
                    join(case.numbers)
                elif w.mask is not False:
                    step(w)
            w.mask = union(before, w.mask, w.left)
            if None not in numbers:
                join(None)
            w.left = outer

        return run

    def do_jump(self, node: tree.Jump) -> Value:
        """The lanes leave; those of `continue` and of a switch's `break` are collected."""
        word, value = node.word, self.value(node.value) if node.value else None
        key, gives = self.label(node.label), node.value is not None and node.value.type is not VOID
        if word == "goto" and key not in self.labels:
            raise UnknownError("goto into another block", node.spot)

        def jump(w: Wave) -> None:
            if value:
                result = value(w)
                w.result = assign(w.mask, result, w.result) if gives else None
            if word == "goto":
                w.waiting[key] = union(w.called, w.waiting[key], w.mask)
            if word in ("goto", "return"):
                w.gone = union(None, w.gone, w.mask)
            elif word == "break":
                w.left = union(None, w.left, w.mask)
            else:
                w.skipped = union(None, w.skipped, w.mask)
            w.mask = False

        return jump

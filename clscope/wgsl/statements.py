"""Statements, declarations and functions of OpenCL C as WGSL."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

from .. import tree
from ..meaning import known
from ..types import INT, LONG, UINT, ULONG, VOID, Array, Pointer, Scalar
from .expressions import IDS, NOTHING, ExpressionWriter
from .memory import Lines, Ref, ShaderArray, Snippet, numbers_of, refuse

#: Iterations of all loops of a function together after which a watched kernel gives up.
MOST_ITERATIONS = 1 << 15
#: The same of loops that are not proved to end, for a counted kernel: its products may be large.
MOST_UNPROVED = 1 << 20
#: Iterations that are laid out at most.
MOST_LAID_OUT = 64


def root_of(node: tree.Node) -> tree.Variable | None:
    """The variable whose element, or part, an expression is."""
    while isinstance(node, (tree.Index, tree.Member)):
        node = node.array if isinstance(node, tree.Index) else node.vector
    return node.variable if isinstance(node, tree.Name) else None


def changes(node: tree.Node, variable: tree.Variable) -> bool:
    """Whether a loop's body may change its variable, or leave the loop."""
    return any(
        isinstance(n, tree.Jump) or (isinstance(n, tree.Assign) and root_of(n.target) is variable)
        for n in node.walk()
    )


def ends(loop: tree.Loop) -> bool:
    """Whether a loop certainly ends: a whole number goes up, or down, to a fixed limit."""
    test, step = loop.condition, loop.step
    if not (isinstance(test, tree.Binary) and isinstance(step, tree.Assign)):
        return False
    variable, place = root_of(step.target), tree.plain(test.left)
    if isinstance(place, tree.Binary) and place.op == "+" and is_fixed(place.right):
        place = tree.plain(place.left)
    if variable is None or variable.in_memory or root_of(place) is not variable:
        return False
    if not is_fixed(test.right) or any(
        isinstance(n, tree.Assign) and root_of(n.target) is variable for n in loop.body.walk()
    ):
        return False
    compared, by = test.left.type, known(step.value) or 0
    if variable.type not in (INT, UINT, LONG, ULONG) or compared not in (INT, UINT, LONG, ULONG):
        return False
    if step.op == "+" and by > 0:
        return test.op in ("<", "<=")
    is_signed = variable.type in (INT, LONG) and compared in (INT, LONG)
    return step.op == "-" and by > 0 and test.op in ((">", ">=") if is_signed else ())


def is_fixed(node: tree.Node) -> bool:
    """Whether an expression visibly always has the same value in a work-item."""
    return not any(
        isinstance(n, tree.Index | tree.Assign)
        or (isinstance(n, tree.Call) and n.target is not None)
        or (isinstance(n, tree.Name) and (n.variable.assigned or n.variable.in_memory))
        for n in node.walk()
    )


def returns(node: tree.Node | None) -> bool:
    """Whether a statement visibly always ends in a return, as WGSL sees it."""
    if isinstance(node, tree.Block):
        return bool(node.body) and returns(node.body[-1])
    if isinstance(node, tree.If):
        return known(node.condition) is None and returns(node.yes) and returns(node.no)
    return isinstance(node, tree.Jump) and node.word == "return"


class StatementWriter(ExpressionWriter):
    # ---- statements
    def statements(self, body: list[tree.Node]) -> None:
        for node in body:
            self.statement(node)

    def statement(self, node: tree.Node) -> None:
        self.line = node.spot.line
        match node:
            case tree.Block():
                self.do_block(node)
            case tree.If():
                self.do_if(node)
            case tree.Jump():
                self.do_jump(node)
            case tree.Declaration():
                self.do_declaration(node)
            case tree.Loop():
                self.do_loop(node)
            case tree.Expr():
                self.effect(node)
            case _:
                raise refuse(f"{type(node).__name__.lower()} is not translated", node)

    def block(self, node: tree.Node) -> None:
        """The statements of a block, without its braces."""
        self.scopes.append(set())
        self.depth += 1
        self.statements(node.body if isinstance(node, tree.Block) else [node])
        self.depth -= 1
        self.scopes.pop()

    def do_block(self, node: tree.Node) -> None:
        if isinstance(node, tree.Block) and not node.scope:
            self.statements(node.body)
        elif not isinstance(node, tree.Block) or node.body:
            self.emit("{")
            self.block(node)
            self.emit("}")

    def do_if(self, node: tree.If) -> None:
        condition = self.condition(node.condition)
        if condition.constant is not None:
            chosen = node.yes if condition.constant else node.no
            if chosen is not None:
                self.do_block(chosen)
            return
        self.emit(f"if ({condition.code}) {{")
        self.block(node.yes)
        if node.no is not None:
            self.emit("} else {")
            self.block(node.no)
        self.emit("}")

    def do_jump(self, node: tree.Jump) -> None:
        if node.word == "goto":
            raise refuse("WGSL has no goto", node)
        if node.word == "return" and node.value is not None:
            value = self.converted(self.expression(node.value), self.result, node)
            self.emit(f"return {value.code};")
        else:
            self.emit(f"{node.word};")

    # ---- declarations
    def do_declaration(self, node: tree.Declaration) -> None:
        variable, value = node.variable, node.value
        of = variable.type
        if variable.space == "local" or variable.addressed or isinstance(of, Array):
            self.declare_array(variable, value)
        elif isinstance(of, Pointer):
            if value is None:
                words = f"{variable.name!r}: a pointer needs its value where it is declared"
                raise refuse(words, node)
            self.declare_pointer(variable, replace(self.pointee(value), type=of.to))
        elif variable.constant is None:  # expressions contain the value of a constant
            self.declare_value(variable, None if value is None else self.expression(value))

    def declare_value(self, node: tree.Variable, value: Snippet | None) -> None:
        kind, name = self.value_type(node.type, node), self.claim(node.name)
        # with a value always: in a loop, `var x: f32;` keeps that of the iteration before
        code = f"{kind}()" if value is None else value.code
        fixed = value is not None and not node.assigned
        self.emit(f"{'let' if fixed else 'var'} {name}: {kind} = {code};")
        span = value.range if value is not None and fixed else None
        self.entries[node] = Snippet(name, node.type, range=span, named=fixed)

    def declare_array(self, node: tree.Variable, braces: tree.Expr | None) -> None:
        """An array; so is a variable that pointers point to."""
        local = node.space == "local"
        value = self.expression(braces) if braces and not isinstance(braces, tree.Braces) else None
        name = self.claim(node.name, module=local)
        kept = self.kept.get(node) if isinstance(node.type, Array) else 0
        memory, kind = self.array(name, node.type, node.space, kept, node)
        ref = self.entries[node] = Ref(memory, node.type)
        if local:
            self.local_bytes += numbers_of(node.type) * memory.scalar.size
            self.top.append((f"var<workgroup> {name}: {kind};", self.line))
            return
        self.emit(f"var {name} = {kind}();" if braces else f"var {name}: {kind};")
        if value is not None:
            self.store(ref, value, node)
        elif isinstance(braces, tree.Braces):
            for offset, item in braces.filled:
                to = self.numbered(ref, offset)
                self.store(to, self.converted(self.expression(item), to.type, item), item)

    def numbered(self, ref: Ref, offset: int) -> Ref:
        """The element of an array that begins at a byte."""
        while isinstance(ref.type, Array):
            index, offset = divmod(offset, ref.type.of.stride)
            ref = self.element(ref, Snippet(f"{index}", INT, constant=index, range=(index, index)))
        return ref

    def declare_pointer(self, variable: tree.Variable, ref: Ref) -> None:
        """A pointer; one that is assigned keeps its offset in a variable."""
        name = self.claim(variable.name)
        if variable.assigned:
            start, unit, _ = self.sum(ref.terms, numbers_of(ref.type))
            self.emit(f"var {name}: i32 = {start};")
            ref = replace(ref, terms=((unit, Snippet(name, INT)),))
            self.entries[variable] = Snippet(name, variable.type, ref=ref)
            return
        terms = []
        for unit, value in ref.terms:
            if not value.named:
                self.emit(f"let {name} = {value.code};")
                value = Snippet(name, INT, range=value.range, named=True)
                name = self.claim(variable.name)
            terms.append((unit, value))
        self.entries[variable] = Snippet("", variable.type, ref=replace(ref, terms=tuple(terms)))

    # ---- loops
    def do_loop(self, node: tree.Loop) -> None:
        if self.lay_out(node):
            return  # its statements are now those of the block around it, and so are its names
        self.scopes.append(set())
        if not self.plain_for(node):
            self.any_loop(node)
        self.scopes.pop()

    def loop_variable(self, node: tree.Loop) -> tree.Declaration | None:
        """The one variable, of whole numbers, that the head of a `for` declares."""
        start = node.start
        if not node.first or not isinstance(start, tree.Block) or len(start.body) != 1:
            return None
        found = start.body[0]
        assert isinstance(found, tree.Declaration)
        fits = found.variable.type in (INT, UINT, LONG, ULONG) and found.value is not None
        return found if fits else None

    def iterations(self, node: tree.Loop) -> range | None:
        """The values of a loop's variable, if they are the same in every run."""
        found, test, step = self.loop_variable(node), node.condition, node.step
        if found is None or found.value is None or not isinstance(test, tree.Binary):
            return None
        variable = found.variable
        if root_of(tree.plain(test.left)) is not variable or changes(node.body, variable):
            return None
        if not isinstance(step, tree.Assign) or root_of(step.target) is not variable:
            return None
        first, last, by = (known(node) for node in (found.value, test.right, step.value))
        if not by or by < 0 or first is None or last is None:
            return None
        compared = test.left.type
        if not (isinstance(compared, Scalar) and compared.whole and isinstance(step.common, Scalar)
                and step.common.whole):  # fmt: skip
            return None
        start, end, by = int(first), int(last), int(by)
        if test.op in ("<", "<=") and step.op == "+":
            values = range(start, end + (test.op == "<="), by)
        elif test.op in (">", ">=") and step.op == "-":
            values = range(start, end - (test.op == ">="), -by)
        else:
            return None
        after = start + len(values) * values.step  # if it wraps around, the loop goes on
        signed = all(of.kind == "int" for of in (variable.type.scalar, compared))
        least, most = (INT.least, INT.most) if signed else (0, INT.most)
        return values if all(least <= value <= most for value in (start, after)) else None

    def lay_out(self, node: tree.Loop) -> bool:
        """Write a loop over private arrays iteration by iteration."""
        values = self.iterations(node) if self.style.laid_out else None
        if values is None or len(values) > MOST_LAID_OUT:
            return False
        variable = self.loop_variable(node).variable  # type: ignore[union-attr]
        if not self.indexes_registers(node.body, variable):
            return False
        body = node.body.body if isinstance(node.body, tree.Block) else [node.body]
        declares = any(isinstance(n, tree.Block) and not n.scope for n in body)
        try:
            for value in values:
                variable.constant = value
                if declares:
                    self.do_block(node.body)
                else:
                    self.statements(body)
        finally:  # the tree is not ours
            variable.constant = None
        return True

    def indexes_registers(self, body: tree.Node, variable: tree.Variable) -> bool:
        def within(index: tree.Node) -> bool:
            return any(isinstance(n, tree.Name) and n.variable is variable for n in index.walk())

        for node in body.walk():
            if isinstance(node, tree.Index) and within(node.index):
                base = root_of(node)
                if base is not None and isinstance(base.type, Array) and base.space == "private":
                    return True
        return False

    def plain_for(self, node: tree.Loop) -> bool:
        """A loop that is a `for` in WGSL, too; False if its head needs statements before it."""
        found = self.loop_variable(node)
        if found is None or found.value is None:
            return False
        begin = found.value
        lines, start = self.captured(lambda: self.expression(begin))
        if lines:
            return False
        values = self.iterations(node)
        variable = found.variable
        name, kind = self.claim(variable.name), self.value_type(variable.type, variable)
        span = (min(values[0], values[-1]), max(values[0], values[-1])) if values else None
        self.entries[variable] = Snippet(name, variable.type, range=span, named=bool(values))
        if values and values.step > 1:
            self.even_for(node, name, kind, values)
            return True
        test, step = node.condition, node.step
        if test is None or step is None:
            return False
        lines, condition = self.captured(lambda: self.condition(test))
        steps, _ = self.captured(lambda: self.effect(step))
        if lines or len(steps) != 1:
            return False
        last = steps[0][0].strip().rstrip(";")
        self.emit(f"for (var {name}: {kind} = {start.code}; {condition.code}; {last}) {{")
        self.count_iteration(node, values)
        self.block(node.body)
        self.emit("}")
        return True

    def even_for(self, node: tree.Loop, name: str, kind: str, values: range) -> None:
        """A loop in larger steps, counted in steps of one: then tint, the compiler of Chrome,
        proves the range of its variable.
        """
        turn = self.claim(f"{name}_turn")
        unsigned = "u" if kind == "u32" else ""
        self.emit(f"for (var {turn}: {kind} = 0; {turn} < {len(values)}{unsigned}; {turn}++) {{")
        code = f"{turn} * {values.step}{unsigned}"
        if values.start:
            code = f"{values.start}{unsigned} + {code}"
        self.emit(f"    let {name}: {kind} = {code};")
        self.count_iteration(node, values)
        self.block(node.body)
        self.emit("}")

    def count_iteration(self, node: tree.Loop, values: range | None = None) -> None:
        """Count the iterations of a loop, if the style says so, and it may go on for too long."""
        if self.style.watched:
            most, is_safe = MOST_ITERATIONS, values is not None and len(values) <= MOST_ITERATIONS
        else:
            most, is_safe = MOST_UNPROVED, not self.style.counted or ends(node)
        if not is_safe:
            self.loops = True
            self.counted.append(self.line)
            self.emit(f"    turns++; if (turns > {most}) {{ endless({self.line}); break; }}")

    def any_loop(self, node: tree.Loop) -> None:
        self.emit("{")
        self.depth += 1
        if node.start is not None:
            self.statement(node.start)
        self.emit("loop {")
        self.count_iteration(node)
        if node.first and node.condition is not None:
            self.depth += 1
            self.emit(f"if (!({self.condition(node.condition).code})) {{ break; }}")
            self.depth -= 1
        self.block(node.body)
        if node.step is not None or not node.first:
            self.emit("    continuing {")
            self.depth += 2
            self.line = node.spot.line
            if node.step is not None:
                self.effect(node.step)
            if not node.first and node.condition is not None:
                self.emit(f"break if !({self.condition(node.condition).code});")
            self.depth -= 2
            self.emit("    }")
        self.emit("}")
        self.depth -= 1
        self.emit("}")

    # ---- functions
    def begin(self, function: tree.Function) -> None:
        """Look at a function before its first line is written."""
        assert function.body is not None
        self.result, self.ids, self.loops = function.type, set(), False

    def finished(self) -> Lines:
        """The lines of a function, with the counter of its watched loops."""
        return [("    var turns: i32 = 0;", 0), *self.lines] if self.loops else self.lines

    def own_call(self, node: tree.Call) -> Snippet:
        """A function of the text: one in WGSL for each choice of what its pointers point into."""
        function = node.target
        assert function is not None
        given: list[str] = []
        pointers: dict[str, tuple[ShaderArray, int, int]] = {}
        for param, arg in zip(function.params, node.args, strict=True):
            value = self.expression(arg)
            if not isinstance(param.type, Pointer):
                given.append(value.code)
                continue
            if value.ref is None or value.ref.memory.space == "private":
                raise refuse("a pointer to private memory as an argument is not translated", arg)
            code, unit, _ = self.sum(value.ref.terms, numbers_of(param.type.to))
            pointers[param.name] = (value.ref.memory, unit, len(value.ref.indices))
            given += [*(i.code for i in value.ref.indices), code]
        key = (function, *pointers.items())
        if key not in self.special:
            name = self.claim(function.name, module=True)
            self.special[key] = name, self.define(function, name, pointers)
        name, needs = self.special[key]
        self.ids |= needs
        call = f"{name}({', '.join([*sorted(needs), *given])})"
        if function.type is VOID:
            self.emit(f"{call};")
            return NOTHING
        return self.keep(Snippet(call, function.type))

    def define(self, function: tree.Function, name: str, pointers: dict[Any, Any]) -> set[str]:
        """Write a function; returns the ids that it needs as arguments."""
        inner = copy.copy(self)
        inner.lines, inner.depth, inner.scopes = [], 1, [self.scopes[0], set()]
        inner.begin(function)
        heads: list[str] = []
        for param in function.params:
            if isinstance(param.type, Pointer):
                heads += inner.pointer_parameter(param, *pointers[param.name])
            else:
                given = inner.claim(param.name)
                heads.append(f"{given}: {inner.value_type(param.type, param)}")
                inner.parameter(param, given)
        assert function.body is not None
        inner.statements(function.body.body)
        result = ""
        if function.type is not VOID:
            kind = self.value_type(function.type, function)
            result = f" -> {kind}"
            if not returns(function.body):
                inner.emit(f"return {kind}();")
        ids = [f"{i}: vec3<u32>" for i in sorted(inner.ids)]
        head = f"fn {name}({', '.join([*ids, *heads])}){result} {{"
        self.bodies += [(head, function.spot.line), *inner.finished(), ("}", 0), ("", 0)]
        return inner.ids

    def parameter(self, param: tree.Variable, code: str) -> None:
        """A parameter that is no pointer; one that is changed needs a variable."""
        value = Snippet(code, param.type, named=True)
        if param.assigned:
            self.declare_value(param, value)
        else:
            self.entries[param] = value

    def pointer_parameter(self, param: Any, memory: ShaderArray, unit: int, rows: int) -> list[str]:
        names = [self.claim(f"{param.name}_row") for _ in range(rows)]
        at = self.claim(f"{param.name}_at")
        indices = tuple(Snippet(n, INT, named=True) for n in names)
        ref = Ref(memory, param.type.to, indices, ((unit, Snippet(at, INT, named=True)),))
        self.same_scalar(ref, param.type.to, param)
        self.declare_pointer(param, ref)
        return [f"{n}: i32" for n in (*names, at)]

    def heads(self) -> str:
        """The builtins of the entry point."""
        builtins = dict(IDS.values())
        return ", ".join(f"@builtin({builtins[i]}) {i}: vec3<u32>" for i in sorted(self.ids))

"""Statements, declarations and functions of OpenCL C as WGSL."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from ..simt import tree
from ..simt.meaning import CONSTANT, known
from ..simt.types import (
    INT,
    LONG,
    UINT,
    ULONG,
    VOID,
    Array,
    Pointer,
    Scalar,
    Type,
    leaf_of,
    scalar_of,
    stride,
)
from .expressions import Entry, Expressions
from .places import Memory, Ref, Value, numbers_of, parts_of, refuse

#: Iterations of all loops of a function together after which a watched kernel gives up.
MOST_TURNS = 1 << 15
#: Statements that a loop may become.
MOST_LAID_OUT = 2000
HEADS = {
    "lid": ("local_invocation_id", "vec3<u32>"),
    "wid": ("workgroup_id", "vec3<u32>"),
    "gid": ("global_invocation_id", "vec3<u32>"),
    "nwg": ("num_workgroups", "vec3<u32>"),
}


@dataclass(frozen=True)
class Style:
    """How a kernel is written in WGSL.

    Attributes:
        laid_out: loops over private arrays become as many statements. naga, the compiler of
            Firefox, counts the iterations of every loop, and keeps no array of such a loop in
            registers.
        watched: every index is checked and every loop counted; the first mistake is reported.
    """

    laid_out: bool = False
    watched: bool = False


def root_of(node: tree.Node) -> tree.Variable | None:
    """The variable whose element, or part, an expression is."""
    while isinstance(node, (tree.Index, tree.Member)):
        node = node.array if isinstance(node, tree.Index) else node.vector
    return node.variable if isinstance(node, tree.Name) else None


def changes(node: tree.Node, variable: tree.Variable) -> bool:
    """Whether a loop's body may change its variable, or leave the loop."""
    return any(
        isinstance(n, tree.Jump)
        or (isinstance(n, (tree.Assign, tree.Step)) and root_of(n.target) is variable)
        or (isinstance(n, tree.Unary) and n.op == "&" and root_of(n.operand) is variable)
        for n in node.walk()
    )


class Statements(Expressions):
    constants: list[tree.Variable]
    local_bytes: int

    def __init__(self, style: Style, flat: set[tree.Variable]):
        super().__init__(style.watched)
        self.style = style
        self.flat = flat  # arrays of which no dimension can stay
        self.top: list[tuple[str, int]] = []
        self.bodies: list[tuple[str, int]] = []
        self.special: dict[tuple, str] = {}
        self.needs: dict[str, set[str]] = {}
        self.result: Type = VOID
        self.loops = False

    # ---- statements
    def statements(self, body: list[tree.Node]) -> None:
        for node in body:
            self.statement(node)

    def statement(self, node: tree.Node) -> None:
        self.line = node.spot.line
        method = getattr(self, f"do_{type(node).__name__.lower()}", None)
        if method is not None:
            method(node)
        elif isinstance(node, tree.Expr):
            self.effect(node)
        else:
            raise refuse(f"{type(node).__name__.lower()} is not translated", node)

    def block(self, node: tree.Node) -> None:
        """The statements of a block, without its braces."""
        self.scopes.append(set())
        self.depth += 1
        self.statements(node.body if isinstance(node, tree.Block) else [node])
        self.depth -= 1
        self.scopes.pop()

    def do_block(self, node: tree.Block) -> None:
        if node.body:
            self.emit("{")
            self.block(node)
            self.emit("}")

    def do_if(self, node: tree.If) -> None:
        condition = self.condition(node.condition)
        if condition.constant is not None:
            chosen = node.yes if condition.constant else node.no
            if chosen is not None:
                self.do_block(tree.Block(chosen.spot, [chosen]))
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

    def do_switch(self, node: tree.Switch) -> None:
        value = self.expression(node.value)
        unsigned = "u" if scalar_of(value.type) in (UINT, ULONG) else ""
        groups: list[tuple[list[tree.Case], list[tree.Node]]] = []
        for item in node.body:
            if isinstance(item, tree.Case):
                if not groups or groups[-1][1]:
                    groups.append(([], []))
                groups[-1][0].append(item)
            else:
                groups[-1][1].append(item)
        self.emit(f"switch ({value.code}) {{")
        self.depth += 1
        for cases, body in groups:
            last = body[-1] if body else None
            if not isinstance(last, tree.Jump) and (cases, body) != groups[-1]:
                raise refuse("a case that goes on into the next one is not translated", cases[0])
            if isinstance(last, tree.Jump) and last.word == "break":
                body = body[:-1]
            names = [
                name
                for c in cases
                for name in (
                    ["default"] if c.numbers is None else [f"{n}{unsigned}" for n in c.numbers]
                )
            ]
            self.emit(f"case {', '.join(names)}: {{")
            self.block(tree.Block(node.spot, body))
            self.emit("}")
        if not any(c.numbers is None for cases, _ in groups for c in cases):
            self.emit("default: {}")
        self.depth -= 1
        self.emit("}")

    # ---- declarations
    def do_declarations(self, node: tree.Declarations) -> None:
        for item in node.items:
            self.do_declaration(item)

    def do_declaration(self, node: tree.Declaration) -> None:
        of, variable = node.type, node.variable
        if node.space == "local" or isinstance(of, Array):
            self.declare_array(node)
        elif isinstance(of, Pointer):
            if node.value is None:
                raise refuse(f"{node.name!r}: a pointer needs its value where it is declared", node)
            ref = self.expression(node.value).ref
            if ref is None:
                raise refuse(f"{node.name!r} does not point to memory", node)
            self.declare_pointer(variable, replace(ref, type=of.to))
        elif variable.addressed:
            self.declare_addressed(node)
        else:
            self.declare_value(node)

    def declare_value(self, node: tree.Declaration) -> None:
        of, variable = node.type, node.variable
        value = None if node.value is None else self.expression(node.value)
        kind = self.value_type(of, node)
        if not variable.assigned and value is not None:
            if value.constant is not None and isinstance(of, Scalar):
                variable.constant = value.constant
                self.constants.append(variable)
                return
            if len(value.parts) == 1:
                name = self.claim(node.name)
                self.emit(f"let {name}: {kind} = {value.code};")
                named = Value([name], of, range=value.range, named=True)
                self.entries[variable] = Entry(name, of, named)
                return
        name = self.claim(node.name)
        count = len(parts_of(of))
        if value is None:
            # with a value always: in a loop, `var x: f32;` keeps that of the iteration before
            self.emit(f"var {name}: {kind} = {kind}();")
        elif count == 1:
            self.emit(f"var {name}: {kind} = {value.code};")
        else:
            self.emit(f"var {name} = {kind}({', '.join(value.parts)});")
        parts = [name] if count == 1 else [f"{name}[{i}]" for i in range(count)]
        self.entries[variable] = Entry(name, of, Value(parts, of))

    def declare_addressed(self, node: tree.Declaration) -> None:
        """A variable that pointers point to: an array of one element."""
        value = None if node.value is None else self.expression(node.value)
        name = self.claim(node.name)
        memory, kind = self.array(name, Array(node.type, 1), "private", 0, node)
        self.emit(f"var {name} = {kind}();")
        self.entries[node.variable] = Entry(name, node.type, memory=memory)
        if value is not None:
            self.store(Ref(memory, node.type), value, node)

    def declare_array(self, node: tree.Declaration) -> None:
        local = node.space == "local"
        name = self.claim(node.name, module=local)
        flat = self.decays.get(node.variable)
        if flat is not None and node.variable in self.flat:
            flat = 0
        of = node.type if isinstance(node.type, Array) else Array(node.type, 1)
        memory, kind = self.array(name, of, node.space, flat, node)
        memory.variable = node.variable
        self.entries[node.variable] = Entry(name, node.type, memory=memory)
        if local:
            self.local_bytes += numbers_of(of) * memory.scalar.size
            self.top.append((f"var<workgroup> {name}: {kind};", self.line))
            if not isinstance(node.type, Array):
                memory.kept = 0
            return
        if node.value is None:
            self.emit(f"var {name}: {kind};")
            return
        if not isinstance(node.value, tree.Braces):
            raise refuse(f"{node.name!r}: its values must stand in braces", node)
        self.emit(f"var {name} = {kind}();")
        for offset, item in node.value.filled:
            ref = self.numbered(Ref(memory, node.type), offset)
            self.store(ref, self.converted(self.expression(item), ref.type, item), item)

    def numbered(self, ref: Ref, offset: int) -> Ref:
        """The element of an array that begins at a byte."""
        while isinstance(ref.type, Array):
            index, offset = divmod(offset, stride(ref.type.of))
            ref = self.element(ref, self.int_literal(index))
        return ref

    def declare_pointer(self, variable: tree.Variable, ref: Ref) -> None:
        """A pointer; one that is assigned keeps its offset in a variable."""
        name = self.claim(variable.name)
        if variable.assigned:
            start, unit, _ = self.sum(ref.terms, numbers_of(ref.type))
            self.emit(f"var {name}: i32 = {start};")
            at = Value([name], INT)
            ref = replace(ref, terms=((unit, at),))
            self.entries[variable] = Entry(name, variable.type, ref=ref, at=name)
            return
        terms = []
        for unit, value in ref.terms:
            if not value.named:
                self.emit(f"let {name} = {value.code};")
                value = Value([name], INT, range=value.range, named=True)
                name = self.claim(variable.name)
            terms.append((unit, value))
        self.entries[variable] = Entry(name, variable.type, ref=replace(ref, terms=tuple(terms)))

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
        if not node.first or not isinstance(start, tree.Declarations) or len(start.items) != 1:
            return None
        found = start.items[0]
        fits = found.type in (INT, UINT, LONG, ULONG) and not found.variable.addressed
        return found if fits and found.value is not None else None

    def turns(self, node: tree.Loop) -> range | None:
        """The values of a loop's variable, if they are known."""
        found, test, step = self.loop_variable(node), node.condition, node.step
        if found is None or not isinstance(test, tree.Binary) or test.op not in CONSTANT:
            return None
        variable = found.variable
        if root_of(tree.plain(test.left)) is not variable or step is None:
            return None
        if not isinstance(step, (tree.Step, tree.Assign)) or root_of(step.target) is not variable:
            return None
        if test.op not in ("<", "<=", ">", ">=") or changes(node.body, variable):
            return None
        by = 1 if isinstance(step, tree.Step) else known(step.value)
        down = step.op in ("-", "--")
        if step.op not in ("+", "++", "-", "--") or not by or by < 0:
            return None
        assert found.value is not None
        first, last = known(found.value), known(test.right)
        if first is None or last is None or down != (test.op in (">", ">=")):
            return None
        end = int(last) + {"<": 0, "<=": 1, ">": 0, ">=": -1}[test.op]
        return range(int(first), end, -int(by) if down else int(by))

    def lay_out(self, node: tree.Loop) -> bool:
        """Write a loop over private arrays iteration by iteration."""
        turns = self.turns(node) if self.style.laid_out else None
        if turns is None:
            return False
        variable = self.loop_variable(node).variable  # type: ignore[union-attr]
        if not self.indexes_registers(node.body, variable):
            return False
        weight = sum(
            isinstance(n, (tree.Assign, tree.Declaration, tree.Step)) for n in node.body.walk()
        )
        if len(turns) * max(1, weight) > MOST_LAID_OUT:
            return False
        body = node.body.body if isinstance(node.body, tree.Block) else [node.body]
        declares = any(isinstance(n, tree.Declarations) for n in body)
        for turn in turns:
            variable.constant = turn
            if declares:
                self.do_block(tree.Block(node.spot, body))
            else:
                self.statements(body)
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
        if found is None:
            return False
        variable, spare = found.variable, list(self.scopes[-1])
        assert found.value is not None
        begin = found.value
        lines, start = self.captured(lambda: self.expression(begin))
        if lines:
            self.scopes[-1] = set(spare)
            return False
        turns = self.turns(node)
        name, kind = self.claim(found.name), self.value_type(found.type, found)
        span = (min(turns), max(turns)) if turns else None
        value = Value([name], found.type, range=span, named=turns is not None)
        self.entries[variable] = Entry(name, found.type, value)
        if turns and turns.step > 1:
            self.even_for(node, found, turns)
            return True
        lines, test = self.captured(
            lambda: self.condition(node.condition) if node.condition is not None else None
        )
        step_lines, _ = self.captured(lambda: self.effects(node.step))
        if lines or len(step_lines) > 1:
            self.scopes[-1] = set(spare)
            return False
        step = step_lines[0][0].strip().rstrip(";") if step_lines else ""
        self.emit(
            f"for (var {name}: {kind} = {start.code}; {test.code if test else ''}; {step}) {{"
        )
        self.watched_turn(known=turns is not None)
        self.block(node.body)
        self.emit("}")
        return True

    def effects(self, node: tree.Node | None) -> None:
        if node is not None:
            self.effect(node)

    def even_for(self, node: tree.Loop, found: tree.Declaration, turns: range) -> None:
        """A loop in larger steps, counted in steps of one: then tint, the compiler of Chrome, knows
        what range its variable has.
        """
        name, kind = self.entries[found.variable].name, self.value_type(found.type, found)
        turn = self.claim(f"{name}_turn")
        unsigned = "u" if kind == "u32" else ""
        self.emit(f"for (var {turn}: {kind} = 0; {turn} < {len(turns)}{unsigned}; {turn}++) {{")
        code = f"{turn} * {turns.step}{unsigned}"
        if turns.start:
            code = f"{turns.start}{unsigned} + {code}"
        self.emit(f"    let {name}: {kind} = {code};")
        self.block(node.body)
        self.emit("}")

    def watched_turn(self, known: bool) -> None:
        """Count the iterations of a watched loop that may have no end."""
        if self.watched and not known:
            self.loops = True
            self.emit(f"    turns++; if (turns > {MOST_TURNS}) {{ endless({self.line}); break; }}")

    def any_loop(self, node: tree.Loop) -> None:
        self.emit("{")
        self.depth += 1
        if node.start is not None:
            self.statement(node.start)
        self.emit("loop {")
        self.watched_turn(known=False)
        if node.first and node.condition is not None:
            self.depth += 1
            condition = self.condition(node.condition)
            self.emit(f"if (!{condition.at_least(9)[0]}) {{ break; }}")
            self.depth -= 1
        self.block(node.body)
        if node.step is not None or not node.first:
            self.emit("    continuing {")
            self.depth += 2
            self.line = node.spot.line
            if node.step is not None:
                self.effect(node.step)
            if not node.first and node.condition is not None:
                condition = self.condition(node.condition)
                self.emit(f"break if !{condition.at_least(9)[0]};")
            self.depth -= 2
            self.emit("    }")
        self.emit("}")
        self.depth -= 1
        self.emit("}")

    # ---- functions
    def begin(self, function: tree.Function) -> None:
        """What must be known before the first line of a function."""
        assert function.body is not None
        self.result, self.ids, self.loops = function.type, set(), False
        self.decays: dict[tree.Variable, int] = {}
        for node in function.body.walk():
            for variable, depth in decaying(node):
                self.decays[variable] = min(depth, self.decays.get(variable, depth))

    def finished(self, lines: list[tuple[str, int]]) -> list[tuple[str, int]]:
        """The lines of a function, with the counter of its watched loops."""
        return [("    var turns: i32 = 0;", 0), *lines] if self.loops else lines

    def own_call(self, node: tree.Call) -> Value:
        """A function of the text: one in WGSL for each choice of what its pointers point into."""
        function = node.target
        assert function is not None
        given: list[str] = []
        pointers: dict[str, tuple[Memory, int, int]] = {}
        for param, arg in zip(function.params, node.args, strict=True):
            value = self.expression(arg)
            if not isinstance(param.type, Pointer):
                if len(value.parts) > 1:
                    raise refuse(f"{param.type} as an argument is not translated", arg)
                given.append(value.code)
                continue
            if value.ref is None or value.ref.memory.space == "private":
                raise refuse("a pointer to private memory as an argument is not translated", arg)
            code, unit, _ = self.sum(value.ref.terms, numbers_of(param.type.to))
            pointers[param.name] = (value.ref.memory, unit, len(value.ref.indices))
            given += [*(i.code for i in value.ref.indices), code]
        key = (
            function.key or function.name,
            *((n, m.name, u, i) for n, (m, u, i) in pointers.items()),
        )
        if key not in self.special:
            self.special[key] = self.claim(function.name, module=True)
            self.define(function, self.special[key], pointers)
        name = self.special[key]
        self.ids |= self.needs[name]
        call = f"{name}({', '.join([*sorted(self.needs[name]), *given])})"
        if function.type is VOID:
            self.emit(f"{call};")
            return Value([], VOID, named=True)
        return self.keep(Value([call], function.type))

    def define(self, function: tree.Function, name: str, pointers: dict) -> None:
        outer = (self.lines, self.depth, self.scopes, self.result, self.ids, self.decays)
        line, loops = self.line, self.loops
        self.lines, self.depth, self.scopes = [], 1, [self.scopes[0], set()]
        self.begin(function)
        heads: list[str] = []
        for param in function.params:
            if isinstance(param.type, Pointer):
                heads += self.pointer_parameter(param, *pointers[param.name])
                continue
            given, kind = self.claim(param.name), self.value_type(param.type, param)
            heads.append(f"{given}: {kind}")
            self.parameter(param, Value([given], param.type, named=True))
        assert function.body is not None
        self.statements(function.body.body)
        result = (
            f" -> {self.value_type(function.type, function)}" if function.type is not VOID else ""
        )
        ids = [f"{i}: {HEADS[i][1]}" for i in sorted(self.ids)]
        head = f"fn {name}({', '.join([*ids, *heads])}){result} {{"
        body = self.finished(self.lines)
        self.bodies += [(head, function.spot.line), *body, ("}", 0), ("", 0)]
        self.needs[name] = self.ids
        self.lines, self.depth, self.scopes, self.result, self.ids, self.decays = outer
        self.line, self.loops = line, loops

    def parameter(self, param: tree.Declaration, value: Value) -> None:
        """A parameter that is no pointer; one that is changed needs a variable."""
        if not (param.variable.assigned or param.variable.addressed):
            self.entries[param.variable] = Entry(value.code, param.type, value)
            return
        self.entries[given := tree.Variable(param.name, param.type)] = Entry(
            value.code, param.type, value
        )
        self.do_declaration(
            tree.Declaration(
                param.spot,
                param.variable,
                tree.Name(param.spot, param.name, given, type=param.type),
            )
        )

    def pointer_parameter(self, param, memory: Memory, unit: int, rows: int) -> list[str]:
        of = param.type.to
        if scalar_of(leaf_of(of)[0]) is not memory.scalar:
            raise refuse(f"memory of {memory.scalar} read as {of} is not translated", param)
        names = [self.claim(f"{param.name}_row") for _ in range(rows)]
        at = self.claim(f"{param.name}_at")
        indices = tuple(Value([n], INT, named=True) for n in names)
        ref = Ref(memory, of, indices, ((unit, Value([at], INT, named=True)),))
        self.declare_pointer(param.variable, ref)
        return [f"{n}: i32" for n in (*names, at)]


def decaying(node: tree.Node) -> Iterator[tuple[tree.Variable, int]]:
    """Arrays that become pointers in an expression, with the indices before that."""
    inner, depth = None, 0
    if isinstance(node, tree.Convert) and isinstance(node.operand.type, Array):
        inner = node.operand
    elif isinstance(node, tree.Unary) and node.op == "&" and isinstance(node.operand, tree.Index):
        inner, depth = node.operand, -1
    while isinstance(inner, tree.Index):
        inner, depth = inner.array, depth + 1
    if isinstance(inner, tree.Name) and isinstance(inner.variable.type, Array):
        yield inner.variable, max(depth, 0)

"""From tokens to a tree, by recursive descent: each method reads one kind of thing, and calls those for its parts."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import NoReturn

from . import tree
from .text import Spot, TextError, Token, near
from .tree import Node
from .types import (
    DOUBLE,
    FLOAT,
    HALF,
    INT,
    LONG,
    SCALARS,
    UINT,
    ULONG,
    VOID,
    Array,
    Pointer,
    Type,
    Vector,
    named,
    stride,
)
from .values import quotient_of, remainder_of

SPACES = {
    "__global": "global", "global": "global", "__constant": "global", "constant": "global",
    "__local": "local", "local": "local", "__private": "private", "private": "private",
}  # fmt: skip
QUALIFIERS = {"const", "volatile", "restrict", "__restrict", "__restrict__", "static", "inline", "__inline", "extern",
              "register", "__kernel", "kernel"}  # fmt: skip
UNKNOWN = {"struct", "union", "enum", "goto", "asm", "__asm__"}
JUMPS = ("break", "continue", "return")
ASSIGNMENTS = {"=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>="}
#: Operators by how tightly they bind, the loosest first.
LEVELS = [["||"], ["&&"], ["|"], ["^"], ["&"], ["==", "!="], ["<", ">", "<=", ">="], ["<<", ">>"], ["+", "-"],
          ["*", "/", "%"]]  # fmt: skip
LEVEL = {op: level for level, ops in enumerate(LEVELS) for op in ops}


@dataclass
class Specified:
    """What stands before the name in a declaration."""

    type: Type
    space: str = "private"
    const: bool = False
    kernel: bool = False
    size: list[Node] = field(default_factory=list)


class Parser:
    """Reads a list of tokens from its beginning to its end."""

    def __init__(self, tokens: list[Token]):
        self.tokens = [*tokens, Token("end", "", tokens[-1].spot if tokens else Spot(1))]
        self.at = 0
        self.typedefs: dict[str, Type] = {}

    # ---- tokens
    def ahead(self, steps: int = 1) -> Token:
        return self.tokens[min(self.at + steps, len(self.tokens) - 1)]

    @property
    def token(self) -> Token:
        return self.tokens[self.at]

    @property
    def text(self) -> str:
        return self.token.text

    @property
    def at_end(self) -> bool:
        return self.token.kind == "end"

    def fail(self, message: str, spot: Spot | None = None) -> NoReturn:
        raise TextError(message, spot or self.token.spot)

    def found(self) -> str:
        return "found the end of the text" if self.at_end else f"found {self.text!r}"

    def next(self) -> Token:
        token = self.token
        self.at += 1
        return token

    def accept(self, text: str) -> bool:
        if self.token.text == text and self.token.kind != "string":
            self.at += 1
            return True
        return False

    def expect(self, text: str, after: str = "") -> Token:
        if self.token.text == text:
            return self.next()
        message = f"expected {text!r}{' ' + after if after else ''}"
        before = self.tokens[self.at - 1] if self.at else self.token
        if text in ";)]}" and (self.at_end or before.spot.line != self.token.spot.line):
            # where it is missing, and not at the beginning of the next line
            self.fail(message, replace(before.spot, column=before.spot.column + len(before.text)))
        self.fail(f"{message}, {self.found()}")

    def name(self, of: str) -> Token:
        if self.token.kind != "name":
            self.fail(f"expected the name of {of}, {self.found()}")
        return self.next()

    # ---- types
    def is_type(self, token: Token | None = None) -> bool:
        token = token or self.token
        word = token.text
        return token.kind == "name" and (
            word in QUALIFIERS or word in SPACES or word in self.typedefs or named(word) is not None
            or word in ("unsigned", "signed", "struct", "union", "enum", "__attribute__")
        )  # fmt: skip

    def specifiers(self) -> Specified:
        """Qualifiers and one type, in any order."""
        found = Specified(VOID)
        known: Type | None = None
        while self.token.kind == "name":
            word = self.text
            if word in SPACES:
                found.space = SPACES[word]
            elif word in QUALIFIERS:
                found.const |= word == "const"
                found.kernel |= word in ("__kernel", "kernel")
            elif word == "__attribute__":
                found.size = self.attributes() or found.size
                continue
            elif word in UNKNOWN:
                self.fail(f"{word} is not known to this simulator")
            elif known is not None:
                break
            elif word in ("unsigned", "signed"):
                after = self.ahead().text if self.ahead().text in ("int", "long", "char", "short") else ""
                self.at += bool(after)
                known = named("u" * (word == "unsigned") + (after or "int"))
            else:
                known = self.typedefs.get(word) or named(word)
                if known is None:
                    break
            self.at += 1
        if known is None:
            self.fail(f"expected a type, {self.found()}")
        found.type = known
        return found

    def attributes(self) -> list[Node]:
        """__attribute__((...)), any number of them; only the sizes of reqd_work_group_size matter here."""
        size: list[Node] = []
        while self.text == "__attribute__":
            start = self.next()
            self.expect("(")
            depth = 1
            while depth:
                if self.at_end:
                    self.fail("this __attribute__ has no ')'", start.spot)
                token = self.next()
                depth += (token.text == "(") - (token.text == ")")
                if token.text == "reqd_work_group_size":
                    self.expect("(", "after reqd_work_group_size")
                    size = self.arguments("reqd_work_group_size")
        return size

    def pointers(self, of: Type, space: str) -> tuple[Type, str]:
        """The stars behind a type; a pointer itself is private."""
        while self.accept("*"):
            of, space = Pointer(of, space), "private"
            while self.text in QUALIFIERS or self.text in SPACES:
                self.at += 1
        return of, space

    def type_name(self) -> Type:
        specified = self.specifiers()
        return self.pointers(specified.type, specified.space)[0]

    # ---- expressions, from the loosest binding to the tightest
    def whole_expression(self) -> Node:
        """An expression behind which nothing comes."""
        found = self.expression()
        if not self.at_end:
            self.fail(f"{self.text!r} was not expected here")
        return found

    def expression(self) -> Node:
        left = self.assignment()
        while self.text == ",":
            left = tree.Binary(self.next().spot, ",", left, self.assignment())
        return left

    def assignment(self) -> Node:
        left = self.choice()
        if self.text in ASSIGNMENTS:
            token = self.next()
            return tree.Assign(token.spot, token.text[:-1], left, self.assignment())
        return left

    def choice(self) -> Node:
        condition = self.binary(0)
        if self.text != "?":
            return condition
        spot = self.next().spot
        yes = self.expression()
        self.expect(":", "of this '? :'")
        return tree.Choice(spot, condition, yes, self.choice())

    def binary(self, level: int) -> Node:
        left = self.unary()
        while LEVEL.get(self.text, -1) >= level:
            token = self.next()
            left = tree.Binary(token.spot, token.text, left, self.binary(LEVEL[token.text] + 1))
        return left

    def unary(self) -> Node:
        token = self.token
        if token.text in ("++", "--"):
            return tree.Step(self.next().spot, token.text, self.unary(), before=True)
        if token.text in ("+", "-", "!", "~", "*", "&"):
            return tree.Unary(self.next().spot, token.text, self.unary())
        if token.text == "(" and self.is_type(self.ahead()):
            return self.cast()
        if token.text == "sizeof":
            self.next()
            self.expect("(", "after sizeof")
            if not self.is_type():
                self.fail("sizeof is only known of types")
            size = stride(self.type_name())
            self.expect(")")
            return tree.Number(token.spot, size, ULONG)
        return self.postfix(self.primary())

    def cast(self) -> Node:
        spot = self.expect("(").spot
        to = self.type_name()
        self.expect(")", "after the type")
        if isinstance(to, Vector) and self.accept("("):
            return self.postfix(tree.VectorLiteral(spot, to, self.arguments(f"this {to}")))
        return tree.Cast(spot, to, self.unary())

    def arguments(self, of: str) -> list[Node]:
        """What stands between brackets, the first of which has been read."""
        args = [] if self.text == ")" else [self.assignment()]
        while self.accept(","):
            args.append(self.assignment())
        self.expect(")", f"after the arguments of {of}")
        return args

    def primary(self) -> Node:
        token = self.token
        if token.text in UNKNOWN:
            self.fail(f"{token.text} is not known to this simulator")
        if self.accept("("):
            inner = self.expression()
            self.expect(")")
            return inner
        if token.kind not in ("number", "name", "string"):
            self.fail(f"expected an expression, {self.found()}")
        self.next()
        if token.kind == "number":
            return number(token)
        if token.kind == "string":
            return tree.Text(token.spot, token.text)
        if self.accept("("):
            return tree.Call(token.spot, token.text, self.arguments(token.text))
        return tree.Name(token.spot, token.text)

    def postfix(self, left: Node) -> Node:
        while True:
            token = self.token
            if self.accept("["):
                left = tree.Index(token.spot, left, self.expression())
                self.expect("]", "after an index")
            elif self.accept("."):
                left = tree.Member(token.spot, left, self.name("an element of a vector").text)
            elif token.text in ("++", "--"):
                self.at += 1
                left = tree.Step(token.spot, token.text, left, before=False)
            else:
                return left

    # ---- statements
    def block(self) -> tree.Block:
        spot = self.expect("{").spot
        body: list[Node] = []
        while self.text != "}":
            if self.at_end:
                self.fail("this block has no '}'", spot)
            body.append(self.statement())
        self.at += 1
        return tree.Block(spot, body)

    def statement(self) -> Node:
        token, word = self.token, self.text
        if word in STATEMENTS:
            return STATEMENTS[word](self, self.next().spot)
        if word in JUMPS:
            return self.jump()
        if word in ("case", "default"):
            return self.label()
        if word == "{":
            return self.block()
        if self.accept(";"):
            return tree.Block(token.spot, [])
        if word in UNKNOWN:
            self.fail(f"{word} is not known to this simulator")
        if word == "typedef" or self.is_type():
            return self.declaration()
        if token.kind == "name" and self.ahead().kind == "name":
            self.fail(f"the type {word!r} is not known{near(word, [*SCALARS, 'float4'])}")
        return self.expression_statement()

    def condition(self, of: str) -> Node:
        self.expect("(", f"after {of!r}")
        found = self.expression()
        self.expect(")", f"after the condition of {of!r}")
        return found

    def _if(self, spot: Spot) -> Node:
        condition = self.condition("if")
        yes = self.statement()
        return tree.If(spot, condition, yes, self.statement() if self.accept("else") else None)

    def _else(self, spot: Spot) -> Node:
        self.fail("'else' without 'if'", spot)

    def _for(self, spot: Spot) -> Node:
        self.expect("(", "after 'for'")
        start = None
        if not self.accept(";"):
            start = self.declaration() if self.is_type() else self.expression_statement()
        condition = None if self.text == ";" else self.expression()
        self.expect(";", "after the condition of 'for'")
        step = None if self.text == ")" else self.expression()
        self.expect(")", "after the head of 'for'")
        return tree.Loop(spot, start, condition, step, self.statement())

    def _while(self, spot: Spot) -> Node:
        return tree.Loop(spot, None, self.condition("while"), None, self.statement())

    def _do(self, spot: Spot) -> Node:
        body = self.statement()
        self.expect("while", "after the body of 'do'")
        condition = self.condition("while")
        self.expect(";", "after 'do ... while (...)'")
        return tree.Loop(spot, None, condition, None, body, first=False)

    def _switch(self, spot: Spot) -> Node:
        value = self.condition("switch")
        return tree.Switch(spot, value, self.block().body)

    def label(self) -> Node:
        token = self.next()
        value = self.choice() if token.text == "case" else None
        self.expect(":", f"after {token.text!r}")
        return tree.Case(token.spot, value)

    def jump(self) -> Node:
        token = self.next()
        value = self.expression() if token.text == "return" and self.text != ";" else None
        self.expect(";", f"after {token.text!r}")
        return tree.Jump(token.spot, token.text, value)

    def expression_statement(self) -> Node:
        value = self.expression()
        self.expect(";", "after this statement")
        return value

    def declaration(self) -> tree.Declarations:
        """One or more variables of a type, or a typedef."""
        spot = self.token.spot
        is_name = self.accept("typedef")
        specified = self.specifiers()
        items: list[tree.Declaration] = []
        while True:
            of, space = self.pointers(specified.type, specified.space)
            name = self.name("a variable")
            of = self.sizes(of)
            self.attributes()
            value = self.initial() if self.accept("=") else None
            const = specified.const and not isinstance(of, (Pointer, Array))
            if is_name:
                self.typedefs[name.text] = of
            else:
                items.append(tree.Declaration(name.spot, name.text, of, space, const, value))
            if not self.accept(","):
                break
        self.expect(";", "after this declaration")
        return tree.Declarations(spot, items)

    def sizes(self, of: Type) -> Type:
        """[2][3] behind a variable's name."""
        sizes = []
        while self.text == "[":
            spot = self.next().spot
            size = constant(self.expression())
            if not isinstance(size, int) or size < 1:
                self.fail(f"an array cannot have {size} elements", spot)
            sizes.append(size)
            self.expect("]", "after the size of an array")
        for size in reversed(sizes):
            of = Array(of, size)
        return of

    def initial(self) -> Node:
        """What stands behind the = of a declaration, or one of the values between its { and }."""
        if self.text != "{":
            return self.assignment()
        spot = self.next().spot
        items: list[Node] = []
        while self.text != "}":
            items.append(self.initial())
            if not self.accept(","):
                break
        self.expect("}", "after the values of an array")
        return tree.Braces(spot, items)

    # ---- the whole text
    def file(self) -> tuple[dict[str, tree.Function], list[tree.Declaration]]:
        """The functions by name, and the variables outside of them."""
        functions: dict[str, tree.Function] = {}
        constants: list[tree.Declaration] = []
        while not self.at_end:
            if self.accept(";"):
                continue
            start = self.at
            if self.text != "typedef":
                specified = self.specifiers()
                of, _ = self.pointers(specified.type, specified.space)
                size = self.attributes() or specified.size
                name = self.name("a function")
            if self.text != "(":
                self.at = start
                constants += self.declaration().items
                continue
            params = self.parameters(name.text)
            size = self.attributes() or size
            if not self.accept(";"):  # a body, not only what the function looks like
                body = self.block()
                functions[name.text] = tree.Function(name.spot, name.text, of, params, body, specified.kernel, size)
        return functions, constants

    def parameters(self, of: str) -> list[tree.Declaration]:
        self.expect("(")
        params: list[tree.Declaration] = []
        if self.text == "void" and self.ahead().text == ")":
            self.at += 1
        while self.text != ")":
            specified = self.specifiers()
            kind, space = self.pointers(specified.type, specified.space)
            name = self.name("a parameter")
            if self.text == "[":  # an array is handed over as a pointer to its first element
                self.next()
                if self.text != "]":
                    self.expression()
                self.expect("]")
                kind = Pointer(self.sizes(kind), space)
            const = specified.const and not isinstance(kind, Pointer)
            params.append(tree.Declaration(name.spot, name.text, kind, "private", const, None))
            if not self.accept(","):
                break
        self.expect(")", f"after the parameters of {of}")
        return params


STATEMENTS: dict[str, Callable[[Parser, Spot], Node]] = {
    "if": Parser._if, "else": Parser._else, "for": Parser._for, "while": Parser._while, "do": Parser._do,
    "switch": Parser._switch,
}  # fmt: skip


def number(token: Token) -> tree.Number:
    """A number as C reads it: its value and its type."""
    text = token.text.lower()
    digits = text.rstrip("ul")
    suffix = text[len(digits) :]
    octal = len(digits) > 1 and digits.isdigit() and digits[0] == "0"
    try:
        if not text.startswith("0x") and any(c in text for c in ".ef"):
            kind = {"f": FLOAT, "h": HALF}.get(text[-1], DOUBLE)
            return tree.Number(token.spot, float(text.rstrip("fh")), kind)
        value = int(digits, 8 if octal else 0)
    except ValueError:
        raise TextError(f"{token.text} is no number", token.spot) from None
    if value > ULONG.most:
        raise TextError(f"{token.text} is too large for any type", token.spot)
    kinds = [UINT, ULONG] if "u" in suffix else [INT, UINT, LONG, ULONG] if text[0] == "0" else [INT, LONG, ULONG]
    kind = next(k for k in kinds if value <= k.most and (k.size == 8 or "l" not in suffix))
    return tree.Number(token.spot, value, kind)


#: What operators do to whole numbers that are known before the kernel runs; in C's way, and no divisor is 0.
CONSTANT: dict[str, Callable] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": quotient_of,
    "%": remainder_of, "<<": lambda a, b: a << (b & 63), ">>": lambda a, b: a >> (b & 63),
    "<": operator.lt, ">": operator.gt, "<=": operator.le, ">=": operator.ge, "==": operator.eq, "!=": operator.ne,
    "&": operator.and_, "|": operator.or_, "^": operator.xor,
    "&&": lambda a, b: bool(a and b), "||": lambda a, b: bool(a or b),
}  # fmt: skip


def constant(node: Node) -> int:
    """The value of a whole expression that must be known before the kernel runs."""
    if isinstance(node, tree.Number) and node.type.whole:
        return int(node.value)
    if isinstance(node, tree.Unary) and node.op in "+-!~":
        value = constant(node.operand)
        return {"+": value, "-": -value, "!": int(not value), "~": ~value}[node.op]
    if isinstance(node, tree.Cast):
        return constant(node.operand)
    if isinstance(node, tree.Choice):
        return constant(node.yes if constant(node.condition) else node.no)
    if isinstance(node, tree.Binary) and node.op in CONSTANT:
        left = constant(node.left)
        if (node.op == "&&" and not left) or (node.op == "||" and left):
            return int(bool(left))
        right = constant(node.right)
        if node.op in "/%" and right == 0:
            raise TextError("division by zero", node.spot)
        return int(CONSTANT[node.op](left, right))
    raise TextError(f"a constant is needed here, and {tree.written(node)} is none", node.spot)

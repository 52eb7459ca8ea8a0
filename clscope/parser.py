"""From tokens to a typed tree: each method reads one kind of thing, and calls those for its parts.

What expressions mean is in `meaning`; here is the grammar, and what names stand for.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NoReturn

from . import tree
from .arithmetic import ASSIGNMENT, CHOICE, LEVEL
from .budget import no_limit
from .meaning import Meaning, address_of, as_number, constant, known
from .text import (
    Preprocessor,
    Spot,
    TextError,
    Token,
    UnknownError,
    character,
    explained,
    near,
    unescaped,
    whole_number,
)
from .tree import Expr, Node, Variable
from .types import (
    BOOL,
    CHAR,
    DOUBLE,
    EVENT,
    FLOAT,
    HALF,
    INT,
    LONG,
    SCALARS,
    UINT,
    ULONG,
    VOID,
    WORDS,
    Array,
    Field,
    Opaque,
    Pointer,
    Scalar,
    Struct,
    Type,
    Vector,
    an,
    leaf_of,
    named,
    unreadable,
    words,
)

SPACES = {
    "__global": "global", "global": "global", "__constant": "constant", "constant": "constant",
    "__local": "local", "local": "local", "__private": "private", "private": "private",
}  # fmt: skip
QUALIFIERS = words(
    "const volatile restrict __restrict __restrict__ static inline __inline __inline__ extern "
    "register auto __kernel kernel __const __volatile__ __read_only read_only __write_only "
    "write_only __read_write read_write"
)
TYPE_WORDS = {word for names in WORDS for word in names.split()}
SIZED = {"size_t", "ptrdiff_t", "intptr_t", "uintptr_t"}  # depends on the device
TYPEOF = {"__typeof__", "__typeof"}
TAGS = ("struct", "union", "enum")
BEFORE_A_TYPE = {*QUALIFIERS, *SPACES, *TYPE_WORDS, *TAGS, *TYPEOF, "typedef"}
SIZES = {"sizeof", "vec_step", "__alignof__", "__alignof"}
UNKNOWN = {"asm", "__asm__", "__asm"}
JUMPS = ("break", "continue", "return", "goto")
KEYWORDS = {*BEFORE_A_TYPE, *UNKNOWN, *JUMPS} | words(
    "if else for while do switch case default sizeof __attribute__ half bool void"
)


@dataclass
class Declared:
    """What a declaration says before its first name and, in a copy, of one of its names."""

    type: Type = VOID
    space: str = ""
    const: bool = False
    kernel: Spot | None = None  # where it says __kernel
    storage: str = ""
    sized: bool = False  # whether its size depends on the device
    attributes: dict[str, list[int]] = field(default_factory=dict)
    name: Token | None = None
    params: list[Variable] | None = None  # of a function


class Parser(Meaning):
    """Reads a list of tokens from its beginning to its end."""

    def __init__(self, tokens: list[Token], source: Preprocessor | None = None):
        self.clock = source.clock if source else no_limit
        self.macros = source.macros if source else {}
        self.tokens = [*tokens, Token("end", "", tokens[-1].spot if tokens else Spot(1))]
        self.at = 0
        # variables, types, and numbers of enum
        self.scopes: list[dict[str, Variable | Type | int]] = [{}]
        self.functions: dict[str, list[tree.Function]] = {}
        self.function: tree.Function | None = None
        self.labels: set[str] = set()
        self.gotos: list[tree.Jump] = []
        #: loops (None) and switches around
        self.switches: list[tuple[int, list[Any], Type] | None] = []

    # ---- tokens
    def ahead(self, steps: int = 1) -> Token:
        return self.tokens[min(self.at + steps, len(self.tokens) - 1)]

    @property
    def token(self) -> Token:
        return self.tokens[self.at]

    @property
    def text(self) -> str:
        return self.tokens[self.at].text

    @property
    def at_end(self) -> bool:
        return self.token.kind == "end"

    def here(self, message: str) -> NoReturn:
        self.fail(message, self.token.spot)

    def found(self) -> str:
        return "found the end of the text" if self.at_end else f"found {self.text!r}"

    def next(self) -> Token:
        token = self.token
        self.at += 1
        return token

    def accept(self, text: str) -> bool:
        if self.text == text:
            self.at += 1
            return True
        return False

    def expect(self, text: str, after: str = "") -> Token:
        if self.token.text == text:
            return self.next()
        self.missing(f"expected {text!r}{' ' + after if after else ''}", text == ";")

    def missing(self, message: str, at_end_of_line: bool) -> NoReturn:
        """Something is missing in front of the token; a ';' at the end of the line before."""
        before = self.tokens[self.at - 1] if self.at else self.token
        if at_end_of_line and (self.at_end or before.spot.line != self.token.spot.line):
            self.fail(message, replace(before.spot, column=before.spot.column + len(before.text)))
        self.here(f"{message}, {self.found()}")

    def name(self, of: str) -> Token:
        if self.token.kind != "name" or self.text in KEYWORDS:
            self.here(f"expected the name of {of}, {self.found()}")
        return self.next()

    # ---- names
    def find(self, name: str) -> Variable | Type | int | None:
        return next((scope[name] for scope in reversed(self.scopes) if name in scope), None)

    def names(self) -> list[str]:
        """All names that are declared here."""
        return [name for scope in self.scopes for name in scope]

    def declare(self, token: Token, what: Variable | Type | int) -> None:
        outside = len(self.scopes) == 1
        known_one = self.scopes[-1].get(token.text, named(token.text) if outside else None)
        again = known_one is not None and not (isinstance(what, Type) and known_one == what)
        if again or (outside and token.text in self.functions):
            self.fail(f"{token.text!r} is declared twice", token.spot)
        self.scopes[-1][token.text] = what

    @contextmanager
    def scope(self) -> Iterator[None]:
        """Names that are declared inside end here."""
        self.scopes.append({})
        try:
            yield
        finally:
            self.scopes.pop()

    # ---- types
    def is_type(self, token: Token | None = None) -> bool:
        token = token or self.token
        word = token.text
        if token.kind != "name":
            return False
        if word in BEFORE_A_TYPE:
            return True
        found = self.find(word)
        return isinstance(found, Type) or (found is None and named(word) is not None)

    def specifiers(self, typedef: bool = False) -> Declared:  # noqa: C901
        """Qualifiers and one type, in any order; also typedef where it may stand."""
        found = Declared()
        of: Type | None = None
        words: list[str] = []
        start, restrict = self.token, None
        while self.token.kind == "name":
            word = self.text
            if word == "__attribute__":
                found.attributes |= self.attributes()
                continue
            if word in TAGS and of is None and not words:
                of = self.tagged()
                continue
            if word in TYPEOF and of is None and not words:
                self.at += 1
                value = self.type_or_value()
                of, at = value.type, address_of(value)
                if at and at.space != "private":  # it is part of the type
                    found.space, found.const = at.space, at.const
                continue
            if word in SPACES or word in QUALIFIERS:
                self.qualify(found, word)
                restrict = self.token.spot if "restrict" in word else restrict
            elif word == "typedef" and typedef:
                found.storage = word
            elif word in UNKNOWN:
                raise UnknownError(word, self.token.spot)
            elif word in TYPE_WORDS and of is None:
                words.append(word)
            elif of is None and not words and word != "typedef" and self.is_type():
                of = self.find(word) or named(word)  # type: ignore[assignment]
                found.sized = word in SIZED
            else:
                break
            self.at += 1
        if words:
            of = WORDS.get(" ".join(sorted(words)))
            if of is None:
                self.fail(f"'{' '.join(words)}' is not a type", start.spot)
        if of is None:
            self.here(f"expected a type, {self.found()}{near(self.token.text, ())}")
        if restrict and not isinstance(of, Pointer):
            self.fail(f"restrict is for pointers, not for {an(of)}", restrict)
        found.type = of
        return found

    def qualify(self, found: Declared, word: str) -> None:
        space = SPACES.get(word, found.space)
        if found.space not in ("", space):
            self.here("only one address space is allowed")
        found.space, found.const = space, found.const or word in ("const", "__const")
        if word in ("__kernel", "kernel"):
            found.kernel = self.token.spot
        if word in ("static", "extern", "register", "auto"):
            found.storage = word

    def tagged(self) -> Type:
        """struct, union or enum: a new one between { and }, or one by its name."""
        word = self.next()
        attributes = self.attributes()
        named = self.token.kind == "name" and self.text not in KEYWORDS
        tag = f"{word.text} {self.next().text if named else ''}".strip()
        defines, known_one = self.text == "{", self.find(tag) if named else None
        if word.text == "enum":
            if defines:
                self.enumerators()
                self.scopes[-1][tag] = UINT
            elif known_one is None:
                self.fail(f"{tag} has not been defined", word.spot)
            return UINT
        if not defines and not named:
            self.here(f"expected the name of a {word.text}, {self.found()}")
        of = self.scopes[-1].get(tag) if defines and named else known_one
        if not isinstance(of, Struct):
            of = Struct(tag, word.text == "union")
        if named and (defines or known_one is None):
            self.scopes[-1][tag] = of
        if defines:
            if of.complete:
                self.fail(f"{of} is defined twice", word.spot)
            self.fields(of, attributes)
        return of

    def fields(self, of: Struct, attributes: dict[str, list[int]]) -> None:
        self.expect("{")
        while not self.accept("}"):
            base = self.specifiers()
            if self.text == ";" and isinstance(base.type, Struct):
                of.fields.append(Field("", base.type))
            for one, name in self.declarators(base):
                if self.text == ":":
                    raise UnknownError("a field of single bits", self.token.spot)
                if of.find(name.text):
                    self.fail(f"{name.text!r} is declared twice", name.spot)
                self.usable(one.type, name)
                sizes = self.attributes().get("aligned") or [1]
                of.fields.append(Field(name.text, one.type, align=sizes[0]))
        attributes |= self.attributes()
        sizes = attributes.get("aligned") or [1]
        of.lay_out("packed" in attributes, sizes[0])

    def enumerators(self) -> None:
        value = 0
        for _ in self.listed("the numbers of an enum"):
            name = self.name("a number")
            if self.accept("="):
                value = self.constant()
            self.declare(name, value)
            value += 1

    def attributes(self) -> dict[str, list[int]]:
        """Any number of __attribute__((name, name(1, 2))): sizes by name."""
        values: dict[str, list[int]] = {}
        while self.accept("__attribute__"):
            self.expect("(")
            self.expect("(")
            while self.text != ")":
                if self.accept(","):
                    continue
                if self.token.kind != "name":
                    self.here(f"expected the name of an attribute, {self.found()}")
                token = self.next()
                values[token.text.strip("_")] = self.attribute_sizes(token)
                if self.text != ",":
                    break
            for _ in range(2):
                if not self.accept(")"):
                    self.missing("expected ')' at the end of __attribute__((...))", True)
        return values

    def attribute_sizes(self, token: Token) -> list[int]:
        """The sizes in brackets of an attribute that has some; of any other what is skipped."""
        name = token.text.strip("_")
        if self.text != "(":
            return []
        if name not in ("reqd_work_group_size", "aligned"):
            self.skip("(", ")")
            return []
        self.next()
        sizes = [constant(size) for size in self.arguments(name)]
        if name != "aligned" and len(sizes) != 3:
            self.fail(f"{name} needs three sizes", token.spot)
        if min(sizes, default=1) < 1:
            self.fail(f"{name} must be more than 0", token.spot)
        if name == "aligned" and any(n & (n - 1) for n in sizes):
            self.fail("an alignment must be a power of two", token.spot)
        return sizes

    def skip(self, opening: str, closing: str) -> None:
        start, depth = self.token, 0
        while True:
            if self.at_end:
                self.fail(f"this {opening!r} has no {closing!r}", start.spot)
            word = self.next().text
            depth += (word == opening) - (word == closing)
            if depth == 0:
                return

    def declarator(self, base: Declared) -> Declared:
        """A name, if any, with stars before it and [sizes] or (parameters) behind it."""
        one = replace(base)
        while self.accept("*"):  # a pointer itself is private
            one.type = Pointer(one.type, one.space or "private", one.const)
            one.space, one.const = "", False
            while self.text in QUALIFIERS or self.text in SPACES or self.text == "__attribute__":
                if self.text == "__attribute__":
                    self.attributes()
                else:
                    self.qualify(one, self.next().text)
        inside = self.ahead()
        named = inside.kind == "name" and not self.is_type(inside) and inside.text not in KEYWORDS
        if self.text == "(" and (named or inside.text in ("*", "(")):
            start = self.at
            self.skip("(", ")")
            if self.text == "(":
                raise UnknownError("a pointer to a function", self.token.spot)
            one.type = self.sizes(one.type)
            end, self.at = self.at, start + 1
            inner = self.declarator(one)
            self.expect(")")
            self.at = max(end, self.at)
            return inner
        if self.token.kind == "name" and self.text not in KEYWORDS:
            one.name = self.next()
        if self.text == "(" and one.name is not None and len(self.scopes) == 1:
            one.params = self.parameters(one)
        else:
            one.type = self.sizes(one.type)
        return one

    def sizes(self, of: Type) -> Type:
        """[2][3] behind a variable's name; [] is an array of unknown size."""
        sizes: list[int] = []
        while self.text == "[":
            spot = self.next().spot
            while self.text in QUALIFIERS:
                if len(self.scopes) > 1:
                    self.here(f"{self.text!r} is only allowed in the size of a parameter")
                self.at += 1
            if self.accept("]"):
                if sizes:
                    self.fail("only the first size of an array may be missing", spot)
                sizes.append(0)
                continue
            size = constant(self.expression())
            if size < 1:
                self.fail(f"an array cannot have {size} elements", spot)
            sizes.append(size)
            self.expect("]", "after the size of an array")
        if sizes and unreadable(of):
            self.here(f"there are no arrays of {of}")
        for size in reversed(sizes):
            of = Array(of, size)
        return of

    def type_name(self) -> Type:
        one = self.declarator(self.specifiers())
        if one.name is not None:
            self.fail(f"{one.name.text!r} was not expected in a type", one.name.spot)
        return one.type

    def usable(self, of: Type, name: Token) -> None:
        leaf, _ = leaf_of(of)
        if leaf is VOID:
            self.fail(f"{name.text!r} cannot be void", name.spot)
        self.complete(leaf, name.spot)

    # ---- expressions
    def of_tokens(self, start: int, node: Expr) -> Expr:
        """The same node with the tokens that it was read from, from number `start` on."""
        if not node.source:
            node.source = self.tokens[start : self.at]
        return node

    def expression(self, level: int = 0) -> Expr:
        """An expression of operators that bind at least as tightly as those of a level."""
        start, left = self.at, self.prefix()
        while LEVEL.get(self.text, -1) >= level:
            self.clock()
            left = self.of_tokens(start, self.operation(self.next(), left))
        return left

    def operation(self, token: Token, left: Expr) -> Expr:
        """The expression of an operator (already read), its left side, and what follows."""
        spot, op, level = token.spot, token.text, LEVEL[token.text]
        if level == ASSIGNMENT:
            return self.assign(spot, op[:-1], left, self.expression(level))
        if level != CHOICE:
            return self.binary(spot, op, left, self.expression(level + 1))
        yes = self.expression()
        self.expect(":", "of this '? :'")
        return self.choice(spot, left, yes, self.expression(level))

    def constant(self) -> int:
        """The value of an expression that must be known before the kernel runs."""
        return constant(self.expression(CHOICE))

    def prefix(self) -> Expr:
        token, start = self.token, self.at
        if token.text in ("++", "--"):
            self.at += 1
            found = self.step(token.spot, token.text, self.prefix(), "before")
        elif token.text in ("+", "-", "!", "~", "*", "&"):
            self.at += 1
            found = self.unary(token.spot, token.text, self.prefix())
        elif token.text == "(" and self.is_type(self.ahead()):
            found = self.cast_expression()
        elif token.text in SIZES:
            found = self.sizeof()
        else:
            return self.postfix(start, self.primary())
        return self.of_tokens(start, found)

    def type_or_value(self) -> Expr:
        """An expression, or a type in brackets: then an expression of that type."""
        spot = self.token.spot
        if self.text != "(" or not self.is_type(self.ahead()):
            return self.prefix()
        self.at += 1
        of = self.type_name()
        self.expect(")")
        return self.compound(spot, of) if self.text == "{" else Expr(spot, type=of)

    def sizeof(self) -> Expr:
        """The size of a type or of an expression, its alignment, or the numbers of a vector."""
        token = self.next()
        of = self.type_or_value().type
        self.complete(of, token.spot)
        if of is VOID:
            self.fail("void has no size", token.spot)
        size = of.stride
        if token.text == "vec_step":
            size = size // of.of.stride if isinstance(of, Vector) else 1
        elif token.text != "sizeof":
            size = of.alignment
        return tree.Number(token.spot, size, type=ULONG)

    def cast_expression(self) -> Expr:
        start, spot = self.at, self.expect("(").spot
        to = self.type_name()
        self.expect(")", "after the type")
        if self.text == "{":
            return self.postfix(start, self.compound(spot, to))
        if isinstance(to, Vector) and self.accept("("):
            return self.postfix(start, self.vector(spot, to, self.arguments(f"this {to}")))
        return self.cast(spot, to, self.prefix())

    def compound(self, spot: Spot, of: Type) -> Expr:
        """(float4){1, 2, 3, 4}, (int[]){1, 2}"""
        of, value = self.initial(of)
        value.spot = spot
        if not isinstance(value, tree.Braces):
            return value
        return tree.Compound(spot, Variable("compound", of, spot, addressed=True), value, type=of)

    def arguments(self, of: str) -> list[Expr]:
        """What stands between brackets, the first of which has been read."""
        args = [] if self.text == ")" else [self.expression(ASSIGNMENT)]
        while self.accept(","):
            args.append(self.expression(ASSIGNMENT))
        self.expect(")", f"after the arguments of {of}")
        return args

    def primary(self) -> Expr:
        token = self.token
        if token.text in UNKNOWN and token.kind == "name":
            raise UnknownError(token.text, token.spot)
        if self.accept("("):
            inner = self.statements() if self.text == "{" else self.expression()
            self.expect(")")
            return inner
        begins = token.kind in ("number", "name", "string", "character")
        if not begins or (token.kind == "name" and token.text in KEYWORDS):
            self.here(f"expected an expression, {self.found()}")
        self.next()
        if token.kind == "number":
            return number(token)
        if token.kind == "character":
            return tree.Number(token.spot, character(token), type=INT)
        if token.kind == "string":
            text = token.text
            while self.token.kind == "string":
                text = text[:-1] + self.next().text[1:]
            return self.string(token, text)
        if self.text == "(" and not isinstance(self.find(token.text), Variable):
            self.next()
            return self.call(token.spot, token.text, self.arguments(token.text))
        return self.named_value(token)

    def statements(self) -> Expr:
        """({ ... }), whose value is that of its last statement."""
        if self.function is None:
            self.here("statements in an expression are only allowed inside a function")
        with self.scope():
            block = self.block()
        *body, last = block.body or [block]
        if not isinstance(last, Expr):
            return tree.Statements(block.spot, block.body, None)
        last = self.decayed(last)
        return tree.Statements(block.spot, body, last, type=last.type)

    @staticmethod
    def string(token: Token, text: str) -> Expr:
        size = len(unescaped(text[1:-1]).encode()) + 1
        return tree.Text(token.spot, text, type=Array(CHAR, size))

    def named_value(self, token: Token) -> Expr:
        found = self.find(token.text)
        if isinstance(found, Variable):
            return tree.Name(token.spot, found.name, found, type=found.type)
        if isinstance(found, int):
            return tree.Number(token.spot, found, type=INT)
        if token.text == "__func__" and self.function:
            return self.string(token, f'"{self.function.name}"')
        if token.text.startswith(("CLK_NORMALIZED_", "CLK_ADDRESS_", "CLK_FILTER_")):
            raise UnknownError(token.text, token.spot)
        guess = near(token.text, [*self.names(), *self.macros])
        self.fail(f"{token.text!r} is not declared{guess}", token.spot)

    def postfix(self, start: int, left: Expr) -> Expr:
        self.of_tokens(start, left)
        while True:
            token = self.token
            if self.accept("["):
                index = self.expression()
                self.expect("]", "after an index")
                left = self.index(token.spot, left, index)
            elif token.text in (".", "->"):
                self.at += 1
                name = self.name("an element of a vector").text
                left = self.member(token.spot, left, name, token.text == "->")
            elif token.text in ("++", "--"):
                self.at += 1
                left = self.step(token.spot, token.text, left, "after")
            elif self.accept("("):
                self.arguments(tree.written(left))
                self.fail(f"{tree.written(left)} is not a function", left.spot)
            else:
                return left
            self.of_tokens(start, left)

    # ---- statements
    def block(self) -> tree.Block:
        spot = self.expect("{").spot
        body: list[Node] = []
        while self.text != "}":
            if self.at_end:
                self.here(f"expected '}}': the block that begins in line {spot.line} has no end")
            body.append(self.statement())
        self.at += 1
        return tree.Block(spot, body)

    def statement(self) -> Node:
        self.clock()
        token, word = self.token, self.text
        if word in self.STATEMENTS:
            return self.STATEMENTS[word](self, self.next())
        if token.kind == "name":
            if word == "__attribute__":
                self.attributes()
                return self.statement()
            if self.ahead().text == ":":
                return self.label()
            if self.is_type():
                return self.declaration()
            if self.ahead().kind == "name" and self.find(word) is None:
                guess = near(word, [*SCALARS, "float4", *self.names()])
                self.fail(f"there is no type {word!r}{guess}", token.spot)
        if word == "{":
            with self.scope():
                return self.block()
        if self.accept(";"):
            return tree.Block(token.spot, [])
        return self.expression_statement()

    def inner(self) -> Node:
        if self.is_type() and self.ahead().text != ":":
            self.here("a declaration needs its own block: { ... }")
        with self.scope():
            return self.statement()

    def head(self, of: str) -> Expr:
        self.expect("(", f"after {of!r}")
        found = self.condition(self.expression())
        self.expect(")", f"after the condition of {of!r}")
        return found

    def branch(self, token: Token) -> Node:
        condition = self.head("if")
        yes = self.inner()
        return tree.If(token.spot, condition, yes, self.inner() if self.accept("else") else None)

    def without_if(self, token: Token) -> NoReturn:
        self.fail("'else' without 'if'", token.spot)

    def unknown(self, token: Token) -> NoReturn:
        raise UnknownError(token.text, token.spot)

    def loop(self, token: Token) -> Node:
        word = token.text
        start: Node | None = None
        condition: Expr | None = None
        step: Expr | None = None
        with self.scope():
            if word == "while":
                condition = self.head(word)
            elif word == "for":
                self.expect("(", "after 'for'")
                if not self.accept(";"):
                    start = self.declaration() if self.is_type() else self.expression_statement()
                condition = None if self.text == ";" else self.condition(self.expression())
                self.expect(";", "after the condition of 'for'")
                step = None if self.text == ")" else self.expression()
                self.expect(")", "after the head of 'for'")
            self.switches.append(None)
            body = self.inner()
            self.switches.pop()
            if word == "do":
                self.expect("while", "after the body of 'do'")
                condition = self.head("while")
                self.expect(";", "after 'do ... while (...)'")
        return tree.Loop(token.spot, start, condition, step, body, first=word != "do")

    def switch(self, token: Token) -> Node:
        self.expect("(", "after 'switch'")
        value = self.whole(self.expression(), "what a switch decides by")
        self.expect(")", "after the condition of 'switch'")
        with self.scope():
            self.switches.append((len(self.scopes), [], value.type))
            if self.text == "{":
                body = self.block().body
            else:
                body = [self.statement()]
                while isinstance(body[-1], tree.Case):
                    body.append(self.statement())
        self.switches.pop()
        return tree.Switch(token.spot, value, body)

    def case(self, token: Token) -> Node:
        first = self.expression(CHOICE) if token.text == "case" else None
        last = self.expression(CHOICE) if first and self.accept("...") else first
        self.expect(":", f"after {token.text!r}")
        around = next((s for s in reversed(self.switches) if s is not None), None)
        if around is None:
            self.fail(f"{token.text!r} is only allowed inside a switch", token.spot)
        level, seen, of = around
        if len(self.scopes) != level:
            raise UnknownError(f"{token.text!r} inside another statement of its switch", token.spot)
        numbers = None
        if first is not None and last is not None:
            ends = [constant(self.convert(self.whole(x, "a case"), of)) for x in (first, last)]
            numbers = range(ends[0], ends[1] + 1)
        for line, others in seen:
            both = numbers is others is None or (numbers and others and (
                max(numbers[0], others[0]) <= min(numbers[-1], others[-1])))  # fmt: skip
            if both:
                self.fail(f"duplicate {token.text}; first used in line {line}", token.spot)
        seen.append((token.spot.line, numbers))
        return tree.Case(token.spot, numbers)

    def label(self) -> Node:
        token = self.next()
        self.next()
        if token.text in self.labels:
            self.fail(f"duplicate label {token.text!r}", token.spot)
        self.labels.add(token.text)
        return tree.Label(token.spot, token.text)

    def jump(self, token: Token) -> Node:
        found = tree.Jump(token.spot, token.text)
        if token.text == "goto":
            found.label = self.name("a label").text
            self.gotos.append(found)
        elif token.text == "continue" and None not in self.switches:
            self.fail("'continue' is only allowed inside a loop", token.spot)
        elif token.text == "break" and not self.switches:
            self.fail("'break' is only allowed inside a loop or a switch", token.spot)
        elif token.text == "return":
            function = self.function
            assert function is not None
            void, value = function.type is VOID, None if self.text == ";" else self.expression()
            if value is None and not void:
                self.fail(f"{function.name} must return {an(function.type)}", token.spot)
            if value is not None and void and value.type is not VOID:
                self.fail(f"{function.name} is void and returns nothing", token.spot)
            found.value = value if void or value is None else self.convert(value, function.type)
        self.expect(";", f"after {token.text!r}")
        return found

    #: The method that reads a statement, by its first word, which has been read.
    STATEMENTS: ClassVar[dict[str, Callable[[Parser, Token], Node]]] = {
        **{"if": branch, "else": without_if, "switch": switch, "case": case, "default": case},
        **dict.fromkeys(("for", "while", "do"), loop),
        **dict.fromkeys(JUMPS, jump),
        **dict.fromkeys(UNKNOWN, unknown),
    }

    def expression_statement(self) -> Node:
        value = self.expression()
        self.expect(";", "after this statement")
        return value

    # ---- declarations
    def declarators(
        self, base: Declared, one: Declared | None = None
    ) -> Iterator[tuple[Declared, Token]]:
        """Each name of a declaration (`one` has been read), up to its ';'."""
        one = one or (None if self.text == ";" else self.declarator(base))
        while one is not None:
            if one.name is None:
                self.here(f"expected the name of a variable, {self.found()}")
            yield one, one.name
            one, comma = None, self.token
            if self.accept(","):
                if self.token.first and self.token.text in KEYWORDS:
                    self.fail("expected ';' in place of this ','", comma.spot)
                one = self.declarator(base)
        self.expect(";", "after this declaration")

    def declaration(self) -> tree.Block:
        spot = self.token.spot
        return tree.Block(spot, [*self.declared(self.specifiers(typedef=True))], scope=False)

    def declared(self, base: Declared, first: Declared | None = None) -> list[tree.Declaration]:
        """A declaration from behind its type, or from behind its first declarator."""
        items: list[tree.Declaration] = []
        for one, name in self.declarators(base, first):
            self.attributes()
            if one.storage == "typedef":
                self.declare(name, one.type)
                continue
            inside = len(self.scopes) > 1 and self.text == "("
            if inside and (self.ahead().text == ")" or self.is_type(self.ahead())):
                raise UnknownError("a function that is declared inside another", name.spot)
            items.append(self.variable(one, name))
        return items

    def variable(self, one: Declared, name: Token) -> tree.Declaration:
        of, space = one.type, one.space or "private"
        outside = len(self.scopes) == 1
        self.no_kernel(one)
        self.check_space(one, name, space)
        self.usable(of, name)
        found = Variable(name.text, of, name.spot, space, one.const or space == "constant")
        if not (self.text == "=" and isinstance(of, Array)):
            self.declare(name, found)
        value, given = None, self.accept("=")
        if given and space == "local":
            self.refuse(name, "is in local memory and cannot be initialised")
        if outside and not given:
            self.refuse(name, "is const, but has no value")
        if given:
            found.type, value = self.initial(of, repr(name.text))
            if isinstance(of, Array):
                self.declare(name, found)
        if found.const and isinstance(found.type, Scalar) and value is not None:
            found.constant = known(value)
        if 0 in leaf_of(found.type)[1]:
            self.refuse(name, "is an array without a size")
        if outside and isinstance(found.type, Scalar) and found.constant is None:
            self.refuse(name, "needs a constant value")
        return tree.Declaration(name.spot, found, value)

    def check_space(self, one: Declared, name: Token, space: str) -> None:
        """Refuse a variable in memory in which it cannot be declared here."""
        depth = len(self.scopes)
        outside, kernel = depth == 1, self.function is not None and self.function.kernel
        if outside and space != "constant":
            self.refuse(name, "is declared outside all functions and must be __constant")
        if not outside and one.storage in ("static", "register", "auto", "extern"):
            self.refuse(name, f"is {one.storage}: OpenCL C 1.2 has no such variables")
        if not outside and space == "global":
            self.refuse(name, "cannot be declared in global memory")
        if not outside and space != "private" and not (kernel and depth == 2):
            where = "must be declared in the outermost block of a kernel"
            self.refuse(name, f"is in {space} memory and {where}")

    def refuse(self, name: Token, problem: str) -> NoReturn:
        self.fail(f"{name.text!r} {problem}", name.spot)

    def no_kernel(self, one: Declared) -> None:
        if one.kernel:
            self.fail("__kernel only applies to functions", one.kernel)

    def listed(self, what: str) -> Iterator[None]:
        """Yield once for each value between { and }."""
        self.expect("{")
        while self.text != "}":
            yield
            if not self.accept(","):
                break
        self.expect("}", f"after {what}")

    def initial(self, of: Type, name: str = "this") -> tuple[Type, Expr]:
        """Read an initial value of a type; return the type, now with its size, and the value."""
        spot, braced = self.token.spot, self.text == "{"
        if isinstance(of, Array) and not braced and self.token.kind != "string":
            self.fail(f"{name} is an array: its values must be in {{ }}", spot)
        braces = tree.Braces(spot)
        if isinstance(of, Array):
            parts = self.fill(replace(of, n=of.n or 1 << 30), 0, braces.filled)
            return replace(of, n=of.n or max(1, parts)), braces
        if isinstance(of, Struct) and braced:
            self.fill(of, 0, braces.filled)
            return of, braces
        if not braced:
            return of, self.convert(self.expression(ASSIGNMENT), of)
        values = [self.expression(ASSIGNMENT) for _ in self.listed("this value")]
        if isinstance(of, Vector) and not values:
            return of, self.convert(tree.Number(spot, 0, type=INT), of)
        if isinstance(of, Vector):
            return of, self.vector(spot, of, values, exact=True)
        if len(values) != 1:
            self.fail(f"one value is expected here, not {len(values)}", spot)
        return of, self.convert(values[0], of)

    def fill(self, of: Type, offset: int, filled: list[Any], value: Expr | None = None) -> int:
        """Read the initial value of something in memory; its first part may have been read, as
        `value`.

        `filled` gets the offset and the value of each part; all other bytes become 0. Returns how
        many parts an array must have.
        """
        compound = isinstance(of, (Array, Struct))
        if value is None and self.text == "{":
            if compound:
                return self.parts(of, offset, filled)
            value = self.initial(of)[1]
        value = value or self.expression(ASSIGNMENT)
        if isinstance(of, Array) and isinstance(value, tree.Text):
            return self.characters(of, value, offset, filled)
        if not compound or value.type == of:
            filled.append((offset, self.convert(value, of)))
            return 1
        for number in range(parts_of(of) or 1):  # without brackets it takes what it needs
            if number:
                if self.text != "," or self.ahead().text in ("}", "[", "."):
                    break
                self.next()
            _, to, where = self.part(of, number, offset, value.spot)
            self.fill(to, where, filled, None if number else value)
        return 1

    def parts(self, of: Type, offset: int, filled: list[Any]) -> int:
        """Read the values of an array or a structure between { and }, in order or as named."""
        next_part = most = 0
        for _ in self.listed("the values of an array"):
            if self.token.kind == "string" and isinstance(of, Array) and of.of.stride == 1:
                most = self.fill(of, offset, filled)  # {"abc"} is "abc"
                continue
            number, to, where = -1, of, offset
            while self.text in ("[", "."):
                token = self.next()
                name: int | str
                if token.text == ".":
                    name = self.name("a field").text
                else:
                    name = self.constant()
                    self.expect("]")
                at, to, where = self.part(to, name, where, token.spot)
                if number < 0:  # the first name says which part of `of` it is
                    number = at
            if number < 0:
                number, to, where = self.part(of, next_part, offset, self.token.spot)
            else:
                self.expect("=", "after the name of an element")
            self.fill(to, where, filled)
            next_part = number + 1
            most = max(most, next_part)
        return most

    def part(self, of: Type, name: int | str, offset: int, spot: Spot) -> tuple[int, Type, int]:
        """The number, the type and the offset of a part, by its number or its name."""
        if isinstance(name, str):
            found = of.find(name) if isinstance(of, Struct) else None
            if found is None or not isinstance(of, Struct):
                self.fail(f"{an(of)} has no {name!r}", spot)
            ends = (f.offset + f.type.stride for f in of.fields)  # it may be inside one
            number = next(i for i, end in enumerate(ends) if found.offset < end)
            return number, found.type, offset + found.offset
        if not 0 <= name < parts_of(of):
            self.fail(f"too many values for {an(of)}", spot)
        if isinstance(of, Struct):
            return name, of.fields[name].type, offset + of.fields[name].offset
        assert isinstance(of, Array)
        return name, of.of, offset + name * of.of.stride

    def characters(self, of: Array, item: tree.Text, offset: int, filled: list[Any]) -> int:
        """Fill an array with a string."""
        if of.of.stride != 1:
            self.fail(f"a string cannot become {an(of)}", item.spot)
        values = [*unescaped(item.value[1:-1]).encode("utf-8"), 0][: of.n]
        for at, value in enumerate(values):
            number = tree.Number(item.spot, value, type=INT)
            filled.append((offset + at, self.convert(number, of.of)))
        return len(values)

    # ---- the whole text
    def file(self) -> tuple[list[tree.Function], list[tree.Declaration]]:
        """The functions, and the global variables."""
        constants: list[tree.Declaration] = []
        while not self.at_end:
            if self.accept(";"):
                continue
            base = self.specifiers(typedef=True)
            one = None if self.text == ";" else self.declarator(base)
            if one and one.name is None:
                self.name("a function")
            if one and one.params is not None and one.storage != "typedef":
                one.attributes |= self.attributes()
                self.read_function(one)
            else:
                constants += self.declared(base, one)
        return [f for choices in self.functions.values() for f in choices], constants

    def read_function(self, one: Declared) -> None:
        name, params, of = one.name, one.params, one.type
        assert name is not None and params is not None
        found = tree.Function(name.spot, name.text, of, params, None, bool(one.kernel))
        found.overloadable = "overloadable" in one.attributes
        found.size = tuple(one.attributes.get("reqd_work_group_size", ()))
        choices = self.functions.setdefault(name.text, [])
        types = [p.type for p in params]
        mine = next((f for f in choices if [p.type for p in f.params] == types), None)
        other = mine or (choices[0] if choices else found)
        defines = not self.accept(";")
        if name.text in self.scopes[0] or named(name.text):
            self.refuse(name, "is declared twice")
        if one.space not in ("", "private"):
            self.refuse(name, f"cannot have its result in {one.space} memory")
        if found.kernel and of is not VOID:
            self.refuse(name, f"is a kernel and must return void, not {an(of)}")
        if found.size and not found.kernel:
            self.refuse(name, "is not a kernel: only kernels have reqd_work_group_size")
        if mine and other.type != of:
            self.refuse(name, f"is declared with another type in line {other.spot.line}")
        if choices and not mine and not (found.overloadable or other.overloadable):
            self.refuse(name, f"is declared with other parameters in line {other.spot.line}")
        if mine and mine.body and defines:
            self.refuse(name, "is defined twice")
        if mine is None:
            mine = found
            choices.append(found)
        mine.kernel |= found.kernel
        if not defines:
            return
        mine.params, mine.spot, mine.size = params, name.spot, found.size or mine.size
        if self.text != "{":
            self.missing(f"expected '{{' or ';' after {name.text}(...)", self.is_type())
        self.function, start = mine, self.at
        try:
            mine.body = self.function_body(params)
        except UnknownError as error:  # it matters only if the function is called
            mine.problem = error
            self.at = start
            self.skip("{", "}")
            mine.body = tree.Block(name.spot, [])
        self.function = None

    def function_body(self, params: list[Variable]) -> tree.Block:
        self.labels, self.gotos, self.switches = set(), [], []
        with self.scope():
            for param in params:
                if param.name:
                    self.declare(Token("name", param.name, param.spot), param)
            body = self.block()
        for jump in self.gotos:
            if jump.label not in self.labels:
                guess = near(jump.label, self.labels)
                self.fail(f"there is no label {jump.label!r}{guess}", jump.spot)
        return body

    def parameters(self, function: Declared) -> list[Variable]:
        self.expect("(")
        params: list[Variable] = []
        if self.text == "void" and self.ahead().text == ")":
            self.next()
        while self.text != ")":
            one = self.declarator(self.specifiers())
            self.no_kernel(one)
            name = one.name or Token("name", "", self.token.spot)
            if isinstance(one.type, Array):  # it is handed over as a pointer to its first element
                one.type = Pointer(one.type.of, one.space or "private", one.const)
                one.const = False
            elif one.space not in ("", "private"):
                self.here(f"a parameter cannot itself be in {one.space} memory; make it a pointer")
            if one.name is not None and not isinstance(one.type, Opaque):
                self.usable(one.type, name)
            self.attributes()
            of, sized = one.type, one.sized and isinstance(one.type, Scalar)
            pointer = of if isinstance(of, Pointer) and function.kernel else None
            if pointer and pointer.space == "private":
                where = "global, constant or local memory"
                self.refuse(name, f"as a kernel's parameter must point to {where}")
            if pointer and isinstance(pointer.to, Pointer):
                self.refuse(name, "as a kernel's parameter cannot point to pointers")
            if function.kernel and (of in (BOOL, HALF, EVENT) or sized):
                why = "whose size depends on the device"
                self.refuse(name, f"as a kernel's parameter cannot be {an(of)}, {why}")
            params.append(Variable(name.text, one.type, name.spot, const=one.const))
            if not self.accept(","):
                break
            if self.text == ")":
                self.here("expected a type, found ')'")
        assert function.name is not None
        self.expect(")", f"after the parameters of {function.name.text}")
        return params


@dataclass(frozen=True)
class TranslationUnit:
    """A parsed text: all functions, prototypes included, and the variables outside functions."""

    functions: list[tree.Function]
    variables: list[tree.Declaration]


def parse(text: str, defines: Mapping[str, object] | None = None) -> TranslationUnit:
    """Parse a text of OpenCL C. `defines` are macros, as for a compiler.

    Raises TextError, a ValueError, for the first mistake, with its line and column.
    """
    with explained(text):
        return parse_with(Preprocessor(defines), text)


def parse_with(preprocessor: Preprocessor, text: str) -> TranslationUnit:
    """The same, with the macros and the time of a preprocessor."""
    lines, mistakes = text.removesuffix("\n").split("\n"), list[TextError]()
    end = Spot(len(lines), len(lines[-1]) + 1)
    try:
        preprocessor.run(text)
    except TextError as error:  # a mistake in an earlier line comes first
        mistakes.append(error)
        end = error.spot
    try:
        result = Parser([*preprocessor.out, Token("end", "", end)], preprocessor).file()
    except TextError as error:
        mistakes.append(error)
    if mistakes:
        raise min(mistakes, key=lambda mistake: mistake.line)
    return TranslationUnit(*result)


def kernel_of(functions: list[tree.Function], name: str | None) -> tree.Function:
    """The kernel of this name, or the first."""
    kernels = [f for f in functions if f.kernel and f.body]
    if not kernels:
        raise TextError("there is no __kernel function in this text", Spot(1))
    found = next((f for f in kernels if f.name == name), None) if name else kernels[0]
    if found is None:
        others = ", ".join(f.name for f in kernels)
        raise TextError(f"there is no __kernel {name!r} in this text, but {others}", Spot(1))
    return found


def parts_of(of: Type) -> int:
    """How many values a type has between { and }."""
    if isinstance(of, Struct):
        return 1 if of.union else len(of.fields)
    return of.n if isinstance(of, Array) else 0


_FLOAT = re.compile(r"((?:\d+\.\d*|\.\d+)(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+)([fFhH]?)")
_HEX_FLOAT = re.compile(r"(0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP][+-]?\d+)([fF]?)")


def number(token: Token) -> tree.Number:
    text = token.text
    match = _HEX_FLOAT.fullmatch(text) or _FLOAT.fullmatch(text)
    if match:
        kind = {"f": FLOAT, "h": HALF}.get(match[2].lower(), DOUBLE)
        value = float.fromhex(match[1]) if text[:2] in ("0x", "0X") else float(match[1])
        return tree.Number(token.spot, as_number(value, kind), type=kind)
    value, suffix = whole_number(token)
    if "u" in suffix:
        kinds = [UINT]
    elif text[0] == "0":  # octal, hexadecimal or binary
        kinds = [INT, UINT, LONG]
    else:
        kinds = [INT, LONG]
    for kind in (*kinds, ULONG):
        if value <= kind.most and (kind.size == 8 or "l" not in suffix):
            return tree.Number(token.spot, value, type=kind)
    raise TextError(f"{token.text} is too large for any type", token.spot)

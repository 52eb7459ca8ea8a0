"""From a kernel's text to tokens: every token knows where it stands, and through which macro it came.

The compiler of a device says where a mistake is, too, but each says it in its own way, and none of them can say it
of a work-item. Here all messages, those about the text and those about what the kernel does, point to a line and a
column of the text that the reader sees.
"""

from __future__ import annotations

import difflib
import re
from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Spot:
    """A place in the text: line and column, from 1; and the macro it was written in, if it came through one."""

    line: int
    column: int = 1
    macro: str = ""
    macro_line: int = 0


class TextError(ValueError):
    """A text that is no kernel: `message` says what is wrong, `line` and `column` where; str() shows the line."""

    kind = "syntax"

    def __init__(self, message: str, spot: Spot):
        super().__init__(message, spot)  # both, so that it can be sent to another process
        self.message, self.spot, self.source = message, spot, ""
        self.line, self.column = spot.line, spot.column

    def __str__(self) -> str:
        shown = f"{self.line}:{self.column} {self.message}"
        if self.spot.macro:
            shown += f" (in the macro {self.spot.macro}, defined in line {self.spot.macro_line})"
        lines = self.source.split("\n")
        if self.source and self.line <= len(lines):
            shown += f"\n    {lines[self.line - 1]}\n    {' ' * (self.column - 1)}^"
        return shown


@dataclass(slots=True)
class Token:
    """A word of the text: `kind` is "name", "number", "string" or "mark"."""

    kind: str
    text: str
    spot: Spot
    space: bool = False  # whether white space comes before it
    first: bool = False  # whether it is the first of its line
    hidden: frozenset[str] = frozenset()  # macros that it came out of: they are not expanded in it again


def near(name: str, known: Iterable[str]) -> str:
    """A guess at what was meant by a name."""
    by_lower = {n.lower(): n for n in known}
    close = difflib.get_close_matches(name.lower(), by_lower, 1, 0.5)
    return f"; did you mean {by_lower[close[0]]!r}?" if close else ""


_TOKEN = re.compile(
    r"""(?P<space>[ \t\r\f]+|\\[ \t]*\n|//(?:\\\n|[^\n])*|/\*.*?\*/)
    |(?P<newline>\n)
    |(?P<comment>/\*)
    |(?P<number>0[xX][0-9a-fA-F]+[uUlL]*|(?:\d+\.\d*|\.\d+)(?:[eE][+-]?\d+)?[fFhH]?|\d+[eE][+-]?\d+[fFhH]?|\d+[uUlLfF]*)
    |(?P<name>[A-Za-z_]\w*)
    |(?P<string>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)')
    |(?P<mark>\#\#|<<=|>>=|->|\+\+|--|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|[-+*/%&|^~!<>=?:;,.(){}\[\]\#])
    |(?P<other>.)""",
    re.DOTALL | re.VERBOSE,
)


def tokens_of(text: str) -> list[Token]:
    """Cut a text into tokens. Comments and line ends are left out. Raises TextError."""
    begins = [0, *(end.end() for end in re.finditer("\n", text))]  # of the lines
    found: list[Token] = []
    space, first = False, True
    for match in _TOKEN.finditer(text):
        kind, word, at = match.lastgroup or "", match.group(), match.start()
        if kind in ("space", "newline"):
            space, first = True, first or kind == "newline"
            continue
        line = bisect_right(begins, at)
        spot = Spot(line, at - begins[line - 1] + 1)
        if kind == "comment":
            raise TextError("this comment has no end: '*/' is missing", spot)
        if kind == "other":
            raise TextError(f"the character {word!r} has no meaning here", spot)
        found.append(Token(kind, word, spot, space, first))
        space = first = False
    return found


@dataclass(frozen=True)
class Macro:
    """What `#define` says; `params` is None for a macro without brackets."""

    name: str
    params: list[str] | None
    body: list[Token]
    line: int


@dataclass
class _Condition:
    """An `#if` that is open: whether its present part counts, and whether one of its parts has counted."""

    counts: bool
    done: bool
    spot: Spot


class Preprocessor:
    """Carries out the lines that begin with #, and puts what macros stand for in their place."""

    def __init__(self, defines: Mapping[str, object] | None = None):
        self.macros: dict[str, Macro] = {}
        for name, value in (defines or {}).items():
            self.macros[name] = Macro(name, None, tokens_of(str(value)), 0)

    def run(self, text: str) -> list[Token]:
        """The tokens that are left of a text. Raises TextError, also for an `#error` that is reached."""
        out: list[Token] = []
        pending: list[Token] = []  # since the last line with #: a macro's arguments may go over several lines
        conditions: list[_Condition] = []
        tokens = tokens_of(text)
        starts = [i for i, token in enumerate(tokens) if token.first]
        for start, end in zip(starts, [*starts[1:], len(tokens)], strict=True):
            if tokens[start].text == "#":
                out += self.expand(pending)
                pending = []
                self._directive(tokens[start], tokens[start + 1 : end], conditions)
            elif all(c.counts for c in conditions):
                pending += tokens[start:end]
        if conditions:
            raise TextError("this #if has no #endif", conditions[-1].spot)
        return out + self.expand(pending)

    def _directive(self, mark: Token, rest: list[Token], conditions: list[_Condition]) -> None:
        word, args = (rest[0].text, rest[1:]) if rest else ("", [])
        live = all(c.counts for c in conditions)
        if word in ("if", "ifdef", "ifndef"):
            yes = live and self._holds(word, mark, args)
            conditions.append(_Condition(yes, yes or not live, mark.spot))
        elif word in ("elif", "else", "endif"):
            if not conditions:
                raise TextError(f"#{word} without #if", mark.spot)
            if word == "endif":
                conditions.pop()
                return
            last = conditions[-1]
            last.counts = not last.done and (word == "else" or self._holds("if", mark, args))
            last.done = last.done or last.counts
        elif not live or word in ("pragma", "line", ""):
            return
        elif word == "define":
            self._define(mark, args)
        elif word == "undef" and args:
            self.macros.pop(args[0].text, None)
        elif word == "error":
            raise TextError(" ".join(["#error:", *(t.text for t in args)]), mark.spot)
        elif word == "include":
            raise TextError("#include is not possible here: a kernel is one text", mark.spot)
        else:
            raise TextError(f"#{word} is not known", mark.spot)

    def _define(self, mark: Token, args: list[Token]) -> None:
        if not args or args[0].kind != "name":
            raise TextError("#define needs a name", mark.spot)
        name, params, body = args[0].text, None, args[1:]
        if body and body[0].text == "(" and not body[0].space:
            close = next((i for i, t in enumerate(body) if t.text == ")"), None)
            if close is None:
                raise TextError(f"the parameters of the macro {name} have no ')'", body[0].spot)
            params, body = [t.text for t in body[1:close] if t.text != ","], body[close + 1 :]
        self.macros[name] = Macro(name, params, body, mark.spot.line)

    def _holds(self, word: str, mark: Token, args: list[Token]) -> bool:
        """Whether the condition of an #if, #ifdef or #ifndef holds."""
        from .parse import Parser, constant  # a condition is an expression, and the parser builds on this module

        if not args:
            raise TextError(f"#{word} needs a condition", mark.spot)
        if word != "if":
            return (args[0].text in self.macros) == (word == "ifdef")
        asked: list[Token] = []
        rest = iter(args)
        for token in rest:
            if token.text == "defined":
                name = next(rest, token)
                if name.text == "(":
                    name = next(rest, token)
                    next(rest, None)  # the ')'
                token = replace(name, kind="number", text=str(int(name.text in self.macros)))
            asked.append(token)
        expanded = [replace(t, kind="number", text="0") if t.kind == "name" else t for t in self.expand(asked)]
        if not expanded:
            raise TextError(f"#{word} needs a condition", mark.spot)
        return bool(constant(Parser(expanded).whole_expression()))

    def expand(self, tokens: Iterable[Token]) -> list[Token]:
        """Replace macros by what they stand for, again and again until there are none."""
        left, out = list(tokens)[::-1], []
        while left:
            token = left.pop()
            macro = self.macros.get(token.text) if token.kind == "name" else None
            if token.text == "_Pragma":
                while left and left.pop().text != ")":
                    pass
            elif macro is None or token.text in token.hidden:
                out.append(token)
            elif macro.params is None or (left and left[-1].text == "("):
                args = {} if macro.params is None else self._arguments(macro, token, left)
                left.extend(self._replaced(macro, args, token)[::-1])
            else:
                out.append(token)
        return out

    def _arguments(self, macro: Macro, use: Token, left: list[Token]) -> dict[str, list[Token]]:
        """Take a macro's arguments, with their brackets, from the end of `left`."""
        left.pop()
        args: list[list[Token]] = [[]]
        depth = 0
        while True:
            if not left:
                raise TextError(f"the arguments of the macro {macro.name} have no ')'", use.spot)
            token = left.pop()
            if token.text == ")" and depth == 0:
                break
            depth += (token.text == "(") - (token.text == ")")
            if token.text == "," and depth == 0:
                args.append([])
            else:
                args[-1].append(token)
        params = macro.params or []
        if args == [[]] and not params:
            return {}
        if len(args) != len(params):
            raise TextError(f"the macro {macro.name} takes {len(params)} arguments, not {len(args)}", use.spot)
        return dict(zip(params, args, strict=True))

    def _replaced(self, macro: Macro, args: dict[str, list[Token]], use: Token) -> list[Token]:
        """A macro's body with its arguments. The body's tokens stand where the macro is used."""
        hidden = use.hidden | {macro.name}
        spot = use.spot if use.spot.macro else replace(use.spot, macro=macro.name, macro_line=macro.line)
        out: list[Token] = []
        body = macro.body
        at = 0
        while at < len(body):
            token = body[at]
            after = body[at + 1].text if at + 1 < len(body) else ""
            if token.text == "#" and after in args:
                text = " ".join(t.text for t in args[after])
                out.append(Token("string", f'"{text}"', spot, token.space))
                at += 1
            elif token.text == "##" and out and after:
                right = args.get(after, [body[at + 1]])
                joined = out.pop().text + (right[0].text if right else "")
                out.append(replace(tokens_of(joined)[0], spot=spot, first=False, hidden=hidden))
                out += right[1:]
                at += 1
            elif token.text in args:
                given = args[token.text]
                given = given if after == "##" else self.expand(given)
                out += [replace(t, first=False, hidden=t.hidden | hidden) for t in given]
            else:
                out.append(Token(token.kind, token.text, spot, token.space, False, token.hidden | hidden))
            at += 1
        return out

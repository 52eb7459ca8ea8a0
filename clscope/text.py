"""From a kernel's text to tokens: every token knows where it stands, and through which macro it
came.

The compiler of a device says where a mistake is, too, but each says it in its own way, and none of
them can say it of a work-item. Here all messages, those about the text and those about what the
kernel does, point to a line and a column of the text that the reader sees.
"""

from __future__ import annotations

import difflib
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NoReturn

from .arithmetic import BINARY, CHOICE, COMPARISONS, LEVEL, UNARY
from .budget import Clock, no_limit


@dataclass(frozen=True)
class Spot:
    """A place in the text: line and column, from 1, and the macro that it came through."""

    line: int
    column: int = 1
    macro: str = ""
    macro_line: int = 0


class TextError(ValueError):
    """A text that is no kernel: what is wrong, and where; str() shows the line."""

    kind = "syntax"
    # whether it is a mistake of the text, and not something that this simulator does not know
    known = True

    def __init__(self, message: str, spot: Spot):
        super().__init__(message, spot)  # both, so that it can be sent to another process
        self.message, self.spot, self.source = message, spot, ""
        self.line, self.column = spot.line, spot.column

    def __str__(self) -> str:
        shown = f"{self.line}:{self.column} {self.message}"
        if self.spot.macro:
            line = f", defined in line {self.spot.macro_line}" if self.spot.macro_line else ""
            shown += f" (in the macro {self.spot.macro}{line})"
        lines = self.source.split("\n")
        if self.source and self.line <= len(lines):
            shown += f"\n    {lines[self.line - 1]}\n    {' ' * (self.column - 1)}^"
        return shown


class UnknownError(TextError):
    """Valid OpenCL C, as it seems, that this simulator cannot run."""

    known = False

    def __init__(self, what: str, spot: Spot):
        super().__init__(what, spot)
        self.message = f"{what}: not known to this simulator"


@contextmanager
def explained(text: str) -> Iterator[None]:
    """Errors that come out of here show the line of the text."""
    try:
        yield
    except TextError as error:
        error.source = text
        raise
    except (RecursionError, MemoryError):
        raise UnknownError("a text that is nested so deeply", Spot(1)) from None


@dataclass(slots=True)
class Token:
    """A word of the text: `kind` is "name", "number", "string", "character", "mark" or "other"."""

    kind: str
    text: str
    spot: Spot
    space: bool = False  # whether white space comes before it
    first: bool = False  # whether it is the first of its line
    # macros that it came out of: they are not expanded in it again
    hidden: frozenset[str] = frozenset()


#: What other languages call differently: CUDA, and OpenCL C from version 2 on.
ELSEWHERE = {
    "threadIdx": "get_local_id(0), with 1 for y and 2 for z",
    "blockIdx": "get_group_id(0), with 1 for y and 2 for z",
    "blockDim": "get_local_size(0), with 1 for y and 2 for z",
    "gridDim": "get_num_groups(0), with 1 for y and 2 for z",
    "warpSize": "32 on NVIDIA's devices",
    "__syncthreads": "barrier(CLK_LOCAL_MEM_FENCE)",
    "__syncwarp": "barrier(CLK_LOCAL_MEM_FENCE), for the whole work-group",
    "__threadfence": "mem_fence(CLK_GLOBAL_MEM_FENCE)",
    "__threadfence_block": "mem_fence(CLK_LOCAL_MEM_FENCE)",
    "__shared__": "__local",
    "__constant__": "__constant",
    "__global__": "__kernel",
    "__device__": "nothing: a function needs no qualifier",
    "__ldg": "a plain load",
    "atomicAdd": "atomic_add, for integers",
    "atomicCAS": "atomic_cmpxchg",
    "atomicExch": "atomic_xchg",
    "make_float4": "(float4)(x, y, z, w)",
    "int32_t": "int",
    "uint32_t": "uint",
    "int64_t": "long",
    "uint64_t": "ulong",
    "work_group_barrier": "barrier",
}


def near(name: str, known: Iterable[str]) -> str:
    """What a name that is not known may mean, to end a sentence with."""
    if name in ELSEWHERE:
        return f"; in OpenCL C 1.2 it is {ELSEWHERE[name]}"
    by_lower = {n.lower(): n for n in known if n != name}
    close = difflib.get_close_matches(name.lower(), by_lower, 1, 0.6)
    return f"; did you mean {by_lower[close[0]]!r}?" if close else ""


_TOKEN = re.compile(
    r"""(?P<space>[ \t\r\f\v]+|\\[ \t\r]*\n|//(?:[^\\\n]+|\\[ \t\r]*\n|\\)*|/\*.*?\*/)
    |(?P<newline>\n)
    |(?P<comment>/\*)
    |(?P<number>\.?\d(?:[eEpP][+-]|[\w.])*)
    |(?P<name>[A-Za-z_](?:\w|\\[ \t\r]*\n)*)
    |(?P<string>"(?:[^"\\\n]|\\.)*")
    |(?P<character>'(?:[^'\\\n]|\\.)+')
    |(?P<mark>\#\#|<<=|>>=|\.\.\.|->|\+\+|--|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=
        |[-+*/%&|^~!<>=?:;,.(){}\[\]\#])
    |(?P<other>.)""",
    re.DOTALL | re.VERBOSE | re.ASCII,
)
#: The parameters of a macro; the last may take all further arguments, with a name as in GNU C.
_PARAMETERS = re.compile(r"((name , )*(name|name \.\.\.|\.\.\.))?")
#: Directives that need a name.
NAMED = ("define", "undef", "ifdef", "ifndef")
#: Tokens that a text may have after its macros are expanded; more would only be a macro that
#: doubles without end.
MOST_TOKENS = 1_000_000


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
        if word == "\ufeff" and at == 0:
            continue
        if kind == "name" and "\\" in word:  # a line may continue inside a name
            word = re.sub(r"\\[ \t\r]*\n", "", word)
        line = bisect_right(begins, at)
        spot = Spot(line, at - begins[line - 1] + 1)
        if kind == "comment":
            raise TextError("this comment has no end: '*/' is missing", spot)
        found.append(Token(kind, word, spot, space, first))
        space = first = False
    return found


@dataclass(frozen=True)
class Macro:
    """What `#define` says; `params` is None for a macro without brackets.

    A `variadic` macro's last parameter takes all remaining arguments.
    """

    name: str
    params: list[str] | None
    body: list[Token]
    line: int
    variadic: bool = False


@dataclass
class _OpenIf:
    """An open `#if`: whether its present part counts, and whether any part has."""

    spot: Spot
    counts: bool
    done: bool
    last: bool = False  # whether its #else has come


class Preprocessor:
    """Carries out the lines that begin with #, and puts what macros stand for in their place."""

    def __init__(self, defines: Mapping[str, object] | None = None, clock: Clock = no_limit):
        self.clock, self.expanded = clock, 0
        self.shift = 0  # what #line adds to the number of a line
        self.out: list[Token] = []  # so far
        self.macros = dict(PREDEFINED)
        for name, value in (defines or {}).items():
            self.macros[name] = Macro(name, None, tokens_of(str(value)), 0)

    def run(self, text: str) -> list[Token]:
        """The tokens that remain. Raises TextError, also for an `#error`."""
        out = self.out = []
        # since the last line with #: a macro's arguments may go over several lines
        pending: list[Token] = []
        conditions: list[_OpenIf] = []
        tokens = tokens_of(text)
        starts = [i for i, token in enumerate(tokens) if token.first]
        for start, end in zip(starts, [*starts[1:], len(tokens)], strict=True) if tokens else ():
            if tokens[start].text == "#":
                out += self.expand(pending)
                pending = []
                self._directive(tokens[start], tokens[start + 1 : end], conditions)
            elif all(c.counts for c in conditions):
                pending += tokens[start:end]
        if conditions:
            raise TextError("this #if has no #endif", conditions[-1].spot)
        out += self.expand(pending)
        for token in out:
            if token.kind == "other":
                raise TextError(f"the character {token.text!r} has no meaning here", token.spot)
        return out

    def _directive(self, mark: Token, rest: list[Token], conditions: list[_OpenIf]) -> None:
        word, args = (rest[0].text, rest[1:]) if rest else ("", [])
        live = all(c.counts for c in conditions)
        if live and word in NAMED and (not args or args[0].kind != "name"):
            raise TextError(f"#{word} needs a name", mark.spot)
        if word in ("if", "ifdef", "ifndef"):
            yes = live and self._holds(word, mark, args)
            conditions.append(_OpenIf(mark.spot, yes, yes or not live))
        elif word in ("elif", "else", "endif"):
            if not conditions:
                raise TextError(f"#{word} without #if", mark.spot)
            last = conditions[-1]
            if word == "endif":
                conditions.pop()
            elif last.last:
                raise TextError(f"#{word} after #else", mark.spot)
            else:
                last.last = word == "else"
                last.counts = not last.done and (last.last or self._holds("if", mark, args))
                last.done |= last.counts
        elif live and word not in ("pragma", "", "warning", "ident"):
            self._command(word, mark, rest[0], args)

    def _command(self, word: str, mark: Token, first: Token, args: list[Token]) -> None:
        if word == "define":
            self._define(mark, args[0].text, args[1:])
        elif word == "undef":
            self.macros.pop(args[0].text, None)
        elif word == "error":
            raise TextError(f"#error: {shown(args)}", mark.spot)
        elif word == "include":
            raise TextError("#include is not possible here: a kernel is one text", mark.spot)
        elif word == "line" or first.kind == "number":
            number, *file = self.expand(args if word == "line" else [first, *args]) or [mark]
            if number.kind != "number" or any(token.kind != "string" for token in file[:1]):
                raise TextError("#line needs a number and may have a file's name", mark.spot)
            self.shift = whole_number(number)[0] - mark.spot.line - 1
        else:
            raise TextError(f"#{word} is not a directive", mark.spot)

    def _define(self, mark: Token, name: str, body: list[Token]) -> None:
        params, variadic = None, False
        if name == "defined":
            raise TextError("'defined' cannot be the name of a macro", mark.spot)
        if body and body[0].text == "(" and not body[0].space:
            close = next((i for i, token in enumerate(body) if token.text == ")"), 0)
            form = " ".join("name" if t.kind == "name" else t.text for t in body[1:close])
            params = [token.text for token in body[1:close] if token.kind == "name"]
            variadic = form.endswith("...")
            if variadic and not form.endswith("name ..."):
                params.append("__VA_ARGS__")
            if not close or not _PARAMETERS.fullmatch(form) or len(set(params)) < len(params):
                raise TextError(f"the macro {name} cannot have these parameters", body[0].spot)
            body = body[close + 1 :]
        if body and "##" in (body[0].text, body[-1].text):
            raise TextError("'##' needs something on either side", body[0].spot)
        for token, after in pairwise([*body, mark]):
            if params is not None and token.text == "#" and after.text not in params:
                raise TextError("'#' needs a parameter of the macro", token.spot)
        self.macros[name] = Macro(name, params, body, mark.spot.line, variadic)

    def _holds(self, word: str, mark: Token, args: list[Token]) -> bool:
        if word != "if":
            return (args[0].text in self.macros) == (word == "ifdef")
        plain: list[Token] = []
        rest = iter(args)
        for token in rest:
            if token.text == "defined":
                name = next(rest, token)
                if name.text == "(":
                    name, close = next(rest, token), next(rest, token)
                    name = name if close.text == ")" else token
                if name.kind != "name" or name is token:
                    raise TextError("'defined' needs a name", token.spot)
                token = replace(name, kind="number", text=str(int(name.text in self.macros)))
            plain.append(token)
        expanded = self.expand(plain)
        if not expanded:
            raise TextError(f"#{word} needs a condition", mark.spot)
        return Condition(expanded).holds()

    def expand(self, tokens: Iterable[Token]) -> list[Token]:
        """Replace all macros."""
        left, out = list(tokens)[::-1], []
        while left:
            token = left.pop()
            macro = self.macros.get(token.text) if token.kind == "name" else None
            if token.kind == "name" and token.text == "_Pragma":
                given = [left.pop() for _ in range(min(3, len(left)))]
                if [t.kind for t in given] != ["mark", "string", "mark"]:
                    raise TextError("_Pragma needs a string in brackets", token.spot)
            elif token.kind == "name" and token.text == "__LINE__":
                out.append(replace(token, kind="number", text=str(token.spot.line + self.shift)))
            elif macro is None or token.text in token.hidden:
                out.append(token)
            elif macro.params is None or (left and left[-1].text == "("):
                args = {} if macro.params is None else self._arguments(macro, token.spot, left)
                means = self._replaced(macro, args, token)
                self.clock()
                self.expanded += len(means)
                if self.expanded > MOST_TOKENS:
                    many = f"more than {MOST_TOKENS:,} words"
                    raise TextError(f"the macros of this text become {many}", token.spot)
                left.extend(means[::-1])
            else:
                out.append(token)
        return out

    def _arguments(self, macro: Macro, end: Spot, left: list[Token]) -> dict[str, list[Token]]:
        """Take a macro's arguments, with their brackets, from the end of `left`."""
        spot, params = left[-1].spot, macro.params or []
        args: list[list[Token]] = [[]]
        depth = 0
        while left:
            token = left.pop()
            depth += (token.text == "(") - (token.text == ")")
            if depth == 0:
                break
            rest = macro.variadic and len(args) == len(params)
            if token.text == "," and depth == 1 and not rest:
                args.append([])
            elif token.text != "(" or depth > 1:
                args[-1].append(token)
        else:
            raise TextError(f"the arguments of the macro {macro.name} have no ')'", end)
        if args == [[]] and not params:
            return {}
        if macro.variadic and len(args) == len(params) - 1:
            args.append([])
        if len(args) != len(params):
            least = "at least " * macro.variadic
            count = f"{least}{len(params) - macro.variadic} argument{'s' * (len(params) != 1)}"
            raise TextError(f"the macro {macro.name} takes {count}, not {len(args)}", spot)
        return dict(zip(params, args, strict=True))

    def _replaced(self, macro: Macro, args: dict[str, list[Token]], use: Token) -> list[Token]:
        """A macro's body with its arguments. The body's tokens stand where the macro is used."""
        hidden, spot = use.hidden | {macro.name}, use.spot
        if not spot.macro:
            spot = replace(spot, macro=macro.name, macro_line=macro.line)
        rest = macro.params[-1] if macro.params and macro.variadic else ""
        nothing = Token("", "", spot)
        out: list[Token] = []
        texts = ["", *(token.text for token in macro.body), ""]
        for token, before, after in zip(macro.body, texts, texts[2:], strict=False):
            quotes = macro.params is not None and "#" in (before, token.text)
            if token.text == "##" or (quotes and before != "#"):
                continue
            if quotes:
                part = [Token("string", _quoted(args[token.text]), spot, token.space)]
            elif token.text in args:
                given = args[token.text]
                if "##" not in (before, after):
                    given = self.expand(given)
                part = [replace(t, first=False, hidden=t.hidden | hidden) for t in given]
                first, *others = part or [nothing]
                part = [replace(first, space=token.space), *others]
            else:
                part = [replace(token, spot=spot, first=False, hidden=token.hidden | hidden)]
            if before == "##" and out[-1].text == "," and token.text == rest:
                if not part[0].text:  # GNU's `, ##__VA_ARGS__`: no arguments, no comma
                    out.pop()
            elif before == "##":
                part[0] = self._pasted(out.pop(), part[0], spot, hidden)
            out += part
        out = [token for token in out if token.text]
        if out:
            out[0] = replace(out[0], space=use.space)
        return out

    def _pasted(self, left: Token, right: Token, spot: Spot, hidden: frozenset[str]) -> Token:
        if not left.text or not right.text:
            return right if right.text else left
        joined = tokens_of(left.text + right.text)
        if len(joined) != 1 or joined[0].kind == "other":
            raise TextError(f"'##' makes no word of {left.text!r} and {right.text!r}", spot)
        return replace(joined[0], spot=spot, space=left.space, first=False, hidden=hidden)


def shown(tokens: Iterable[Token]) -> str:
    """Tokens as they are written."""
    return "".join(" " * t.space + t.text for t in tokens).strip()


def _quoted(tokens: list[Token]) -> str:
    """What # makes of an argument: a string."""
    text = ""
    for at, token in enumerate(tokens):
        word = token.text
        if token.kind in ("string", "character"):
            word = word.replace("\\", "\\\\").replace('"', '\\"')
        text += " " * (token.space and at > 0) + word
    return f'"{text}"'


class Condition:
    """The condition of an #if: an expression of 64-bit integers, in which names are 0."""

    def __init__(self, tokens: list[Token]):
        self.tokens = [*tokens, Token("end", "", tokens[-1].spot)]
        self.at = 0

    def holds(self) -> bool:
        value, _ = self.value(0, True)
        if self.tokens[self.at].kind != "end":
            self.unexpected()
        return bool(value)

    def unexpected(self) -> NoReturn:
        token = self.tokens[self.at]
        what = f"{token.text!r} was" if token.text else "the end of this condition was"
        raise TextError(f"{what} not expected here", token.spot)

    def value(self, level: int, counts: bool) -> tuple[int, bool]:
        """Return the value of operators that bind at least as tightly as those of a level, and
        whether it is unsigned; only if it `counts` must divisors not be 0.
        """
        left, unsigned = self.operand(counts)
        while (token := self.tokens[self.at]).text in LEVEL and LEVEL[token.text] >= level:
            op = token.text
            self.at += 1
            if op == "?":
                yes = self.value(0, counts and bool(left))
                if not self.take(":"):
                    self.unexpected()
                no = self.value(CHOICE, counts and not left)
                left, unsigned = (yes if left else no)[0], yes[1] or no[1]
                continue
            needed = counts and not ((op == "&&" and not left) or (op == "||" and left))
            right, also = self.value(LEVEL[op] + 1, needed)
            if op == ",":
                left, unsigned = right, also
                continue
            if op not in BINARY:
                raise TextError(f"{op!r} has no place in a condition", token.spot)
            if op in ("/", "%") and right == 0:
                if counts:
                    raise TextError("division by zero", token.spot)
                right = 1
            if op in ("<<", ">>"):
                right &= 63
            elif op not in ("&&", "||"):
                unsigned = unsigned or also
                left, right = _in_64_bits(left, unsigned), _in_64_bits(right, unsigned)
            left = int(BINARY[op](left, right))
            if op in COMPARISONS or op in ("&&", "||"):
                unsigned = False
            left = _in_64_bits(left, unsigned)
        return left, unsigned

    def operand(self, counts: bool) -> tuple[int, bool]:
        token = self.tokens[self.at]
        self.at += 1
        if token.text in UNARY:
            value, unsigned = self.operand(counts)
            unsigned = unsigned and token.text != "!"
            return _in_64_bits(int(UNARY[token.text](value)), unsigned), unsigned
        if token.text == "(":
            result = self.value(0, counts)
            if not self.take(")"):
                self.unexpected()
            return result
        if token.kind == "name":
            return 0, False
        if token.kind == "character":
            return character(token), False
        if token.kind == "number":
            value, suffix = whole_number(token)
            unsigned = "u" in suffix or value >= 1 << 63
            return _in_64_bits(value, unsigned), unsigned
        self.at -= 1
        self.unexpected()

    def take(self, text: str) -> bool:
        if self.tokens[self.at].text != text:
            return False
        self.at += 1
        return True


def _in_64_bits(value: int, unsigned: bool) -> int:
    value &= (1 << 64) - 1
    return value if unsigned or value < 1 << 63 else value - (1 << 64)


_WHOLE = re.compile(
    r"(0[xX][0-9a-fA-F]+|0[bB][01]+|0[0-7]*|[1-9]\d*)([uU]?(?:l|L|ll|LL)?|(?:l|L|ll|LL)[uU])"
)


def whole_number(token: Token) -> tuple[int, str]:
    """Return the value of an integer of the source code, and its suffix in small letters."""
    match = _WHOLE.fullmatch(token.text)
    if not match:
        raise TextError(f"{token.text} is not an integer", token.spot)
    digits = match[1]
    octal = digits[0] == "0" and digits.isdigit()
    return int(digits, 8 if octal else 0), match[2].lower()


_ESCAPE = re.compile(r"\\(x[0-9a-fA-F]+|[0-7]{1,3}|.)", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}


def unescaped(text: str) -> str:
    """A string's text, with \\n as the end of a line."""

    def meant(match: re.Match[str]) -> str:
        code = match[1]
        if code[0] == "x" and len(code) > 1:
            return chr(int(code[1:], 16) & 255)
        return chr(int(code, 8) & 255) if code[0] in "01234567" else _ESCAPES.get(code, code)

    return _ESCAPE.sub(meant, text)


def character(token: Token) -> int:
    """Return the value of a character; of several, the last four as the bytes of an int."""
    codes = [ord(c) for c in unescaped(token.text[1:-1])]
    if max(codes) > 255:
        raise TextError(f"{token.text} is not a character of one byte", token.spot)
    value = int.from_bytes(codes[-4:], "big")
    sign = 1 << (7 if len(codes) == 1 else 31)
    return value - 2 * (value & sign)


#: What an OpenCL 3.0 device without images defines for OpenCL C 1.2; two names share a value of M_.
_DEFINED = """
__FILE__ "kernel.cl";
__OPENCL_VERSION__ 300; __OPENCL_C_VERSION__ 120; __ENDIAN_LITTLE__ 1; CL_VERSION_1_0 100;
CL_VERSION_1_1 110; CL_VERSION_1_2 120; cl_khr_fp64 1; cl_khr_byte_addressable_store 1;
cl_khr_int64_base_atomics 1; cl_khr_int64_extended_atomics 1;
cl_khr_global_int32_base_atomics 1; cl_khr_global_int32_extended_atomics 1;
cl_khr_local_int32_base_atomics 1; cl_khr_local_int32_extended_atomics 1;
CLK_LOCAL_MEM_FENCE 1u; CLK_GLOBAL_MEM_FENCE 2u; true 1; false 0; NULL ((void*)0);
CHAR_BIT 8; CHAR_MAX 127; CHAR_MIN (-128); SCHAR_MAX 127; SCHAR_MIN (-128); UCHAR_MAX 255;
SHRT_MAX 32767; SHRT_MIN (-32768); USHRT_MAX 65535; INT_MAX 2147483647;
INT_MIN (-2147483647 - 1); UINT_MAX 0xffffffffu; LONG_MAX 0x7fffffffffffffffL;
LONG_MIN (-0x7fffffffffffffffL - 1); ULONG_MAX 0xffffffffffffffffUL;
INFINITY 1e50f; NAN (1e50f - 1e50f); HUGE_VALF 1e50f; HUGE_VAL 1e500;
MAXFLOAT 0x1.fffffep127f; FP_ILOGB0 (-2147483647 - 1); FP_ILOGBNAN 2147483647;
FLT_MAX 0x1.fffffep127f; FLT_MIN 0x1p-126f; FLT_EPSILON 0x1p-23f; FLT_DIG 6; FLT_MANT_DIG 24;
FLT_RADIX 2; FLT_MAX_EXP 128; FLT_MIN_EXP (-125); FLT_MAX_10_EXP 38; FLT_MIN_10_EXP (-37);
DBL_MAX 0x1.fffffffffffffp1023; DBL_MIN 0x1p-1022; DBL_EPSILON 0x1p-52; DBL_DIG 15;
DBL_MANT_DIG 53; DBL_RADIX 2; DBL_MAX_EXP 1024; DBL_MIN_EXP (-1021); DBL_MAX_10_EXP 308;
DBL_MIN_10_EXP (-307);
M_E 2.718281828459045; M_LOG2E 1.4426950408889634; M_LOG10E 0.4342944819032518;
M_LN2 0.6931471805599453; M_LN10 2.302585092994046; M_PI 3.141592653589793;
M_PI_2 1.5707963267948966; M_PI_4 0.7853981633974483; M_1_PI 0.3183098861837907;
M_2_PI 0.6366197723675814; M_2_SQRTPI 1.1283791670955126; M_SQRT2 1.4142135623730951;
M_SQRT1_2 0.7071067811865476
"""


def _predefined() -> dict[str, Macro]:
    found = dict(entry.split(maxsplit=1) for entry in _DEFINED.split(";"))
    found |= {f"{name}_F": f"{x.strip()}f" for name, x in found.items() if name.startswith("M_")}
    return {name: Macro(name, None, tokens_of(x.strip()), 0) for name, x in found.items()}


PREDEFINED = _predefined()

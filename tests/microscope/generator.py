"""Random kernels without undefined behaviour, for the simulator, clang and real runtimes.

Signed arithmetic stays small (results are taken modulo 97 or so), divisors are odd, shifts are
below 32, indices are masked, floats are small whole numbers: so every runtime must agree, bit for
bit. One side of && and || of vectors is no constant: a constant true is 1 for clang, although it
is -1 by the specification, and at run time. The grammar is a table: in a template, {int} stands
for an expression of that type, and {V}, {S}, {I}, {U}, {n} for a vector's own type, its elements'
type, the int and uint vectors of its width, and the width.
"""

from __future__ import annotations

import random
import re

ITEMS = 8  # work-items of a work-group, and 2 groups
SCALARS = ("char", "uchar", "short", "ushort", "int", "uint", "long", "ulong", "float", "double")
WIDTHS = (2, 3, 4, 8, 16)
VECTORS = ("int", "uint", "float", "uchar", "ushort", "long", "ulong", "double")

LEAVES = {
    "char": "(char)({int}%97)",
    "uchar": "(uchar)({int}%97*250); (uchar)'c'",
    "short": "(short)({int}%97*300)",
    "ushort": "(ushort)({int}%97*900); (ushort)7",
    "int": "59; 0x1f; 017; 'x'; (int)id; (int)lid; y[id]; y[(id + 5) & 15]; NAME(seven); "
    "table[lid & 3]; (int)sizeof(STR(a + b))",
    "uint": "1048575u; 0xfffffff0u; (uint)id; (uint)y[id]",
    "long": "41L; 100000L; (long)id; (long)y[id]; (long)y[(id + 3) & 15]",
    "ulong": "1048575ul; 0xfffffffffffffff0; (ulong)id; (ulong)y[id]; sizeof(int[3])",
    "float": "(float)id; 5.0f; .5e1f; 0x1p+2f; x[id]; x[(id + 7) & 15]",
    "double": "3.0; (double)id; (double){long}; (double)x[id]",
}
EXPRESSIONS = {
    "char": "(char)({int} % 97); (char)({char} ^ {char}); convert_char_sat({short}); "
    "as_char({uchar})",
    "uchar": "(uchar)({uchar} + {uchar}); (uchar)({uchar} * {char}); convert_uchar_sat({int}); "
    "abs({char}); hadd({uchar}, {uchar}); rotate({uchar}, (uchar)3)",
    "short": "(short)({short} + {char}); (short)({short} % 97 * {char}); "
    "convert_short_sat({long}); as_short({ushort}); upsample({char}, {uchar})",
    "ushort": "(ushort)({ushort} + {int}); (ushort)(~{ushort}); convert_ushort_sat({int}); "
    "upsample({uchar}, {uchar}); abs_diff({short}, {short})",
    "int": "(({int} + {int}) % 97); (({int} - {short}) % 97); (({int} * {int}) % 97); "
    "({int} / ({int} | 1)); ({int} % ({int} | 1)); (({int} & {int}) % 97); ({int} ^ {char}); "
    "({int} >> ({int} & 31)); ({test} ? {int} : {int}); max({int}, {int}); "
    "(int)({uint} & 63u); (int){float}; (int)({long} % 50); (-{int}); (!{int}); "
    "(int)({test}); helper({int}, {int}); same({int}); (ADD({int}, {int}) % 97); "
    "FIRST({int}, {uint}); REST({float}, {int}); (TWICE({int}) % 97); clamp({int}, -9, 9); "
    "(int)popcount({uint}); mul24({int} % 97, {char}); mad24({char}, 3, {int}); "
    "(int)clz({ushort}); ({int2}).y; ({int4}).s2; ({int3}).hi.x; any({int4} > 3); "
    "all({int2} < 40); isless({float}, {float}); (({uchar} << 3) % 97); ({int}, {int}); "
    "select({int}, {int}, {int}); (int)({double} > {float})",
    "uint": "({uint} + {uint}); ({uint} - {int}); ({uint} * {uint}); ({uint} & {uint}); "
    "({uint} | {uchar}); ({uint} ^ {uint}); ({uint} / ({uint} | 1u)); ({uint} % (uint)7); "
    "({uint} << ({int} & 31)); ({uint} >> ({int} & 31)); ({test} ? {uint} : {uint}); "
    "(~{uint}); (-{uint}); min({uint}, {uint}); rotate({uint}, {uint}); "
    "mul_hi({uint}, {uint}); add_sat({uint}, {uint}); sub_sat({uint}, {uint}); "
    "as_uint({float} + 0.0f); rhadd({uint}, {uint}); abs_diff({int}, {int}); ({uint3}).z; "
    "bitselect({uint}, {uint}, {uint}); dword({uint}); ADD({uint}, {int})",
    "long": "(({long} + {long}) % 100003L); (({long} * {int}) % 100003L); (({long} - {uint}) % 9);"
    " ({long} / ({int} | 1)); ({long} >> ({int} & 31)); ({test} ? {long} : {int}); "
    "min({long}, {long}); (long)({ulong} % 100003); (-{long}); ({long} & 255); same({long})",
    "ulong": "({ulong} + {ulong}); ({ulong} - {uint}); ({ulong} * {ulong}); "
    "({ulong} / ({ulong} | 1u)); ({ulong} % ({uint} | 1u)); ({ulong} << ({int} & 31)); "
    "({ulong} >> ({int} & 31)); (~{ulong}); mul_hi({ulong}, {ulong}); as_ulong({uint2}); "
    "upsample({uint}, {uint}); max({ulong}, {ulong}); ({test} ? {ulong} : {int})",
    "float": "SMALL({float} + {float}); SMALL({float} * {int}); SMALL({float} - {double}); "
    "fma({float.}, {float.}, SMALL({float})); ({test} ? {float} : {float}); "
    "fmin({float}, {float}); fmax({float}, {float}); floor({float} / 4.0f); fabs({float}); "
    "SMALL(dot({float4}, {float4})); ({float2}).x; (-{float}); same({float}); "
    "mad({float.}, {float.}, SMALL({float})); step({float}, {float}); sign({float}); "
    "clamp({float}, -3.0f, 5.0f); as_float(as_int({float}))",
    "double": "(double)((long)({double} + {double}) % 1001); (double)((long)({double} * {float})"
    " % 1001); (double)((long)({double} - {int}) % 1001); fmax({double}, {double})",
    "intN": "(({V} + {V}) % 97); (({V} * {V}) % 97); (({V} - {S}) % 97); (({V} & {V}) % 97); "
    "({V} > {V}); ({float*} <= {float*}); (!{V}); (({V} ^ id) && {V}); ({V} || ({V} ^ id)); "
    "(-{V}); ({V} ? {V} : {V}); ({V} / ({V} | 1)); min({V}, {V}); clamp({V}, -50, 50); "
    "select({V}, {V}, {U}); convert_int{n}({float*}); as_int{n}({U} & 63u); "
    "({test} ? {V} : {V}); ({V} >> ({V} & 31)); isgreater({float*}, {float*})",
    "uintN": "({V} + {V}); ({V} - {S}); ({V} * {V}); ({V} & {V}); ({V} ^ {V}); (~{V}); "
    "({V} / ({V} | 1u)); ({V} << ({V} & 31u)); ({V} >> 3u); rotate({V}, {V}); popcount({V}); "
    "mul_hi({V}, {V}); max({V}, {S}); as_uint{n}({I}); convert_uint{n}_sat({I}); abs({I}); "
    "({V} ? {V} : {V}); bitselect({V}, {V}, {V}); add_sat({V}, {V}); convert_uint{n}({uchar*})",
    "floatN": "SMALLV({n}, {V} + {V}); SMALLV({n}, {V} * {V}); SMALLV({n}, {V} - {S}); (-{V}); "
    "({I} ? {V} : {V}); fmin({V}, {V}); fmax({V}, {S}); fabs({V}); select({V}, {V}, {I}); "
    "convert_float{n}({I} % 61); floor({V} / 4.0f); as_float{n}(as_uint{n}({V})); "
    "fma({V.}, {V.}, SMALLV({n}, {V})); step({V}, {V}); ({test} ? {V} : {V})",
    "ucharN": "({V} + {V}); ({V} * {V}); ({V} ^ {S}); convert_uchar{n}({I}); "
    "convert_uchar{n}_sat({I}); hadd({V}, {V}); ({V} ? {V} : {V}); (~{V})",
    "ushortN": "({V} + {V}); ({V} >> (ushort)2); convert_ushort{n}_sat({U}); sub_sat({V}, {V});"
    " ({V} ? {V} : {V}); upsample({uchar*}, {uchar*})",
    "longN": "(({V} + {V}) % 97); convert_long{n}({I}); ({V} < {V}); ({V} & 255L); (-{V})",
    "ulongN": "({V} + {V}); ({V} * {V}); convert_ulong{n}({U}); ({V} ? {V} : {V}); (~{V})",
    "doubleN": "convert_double{n}({I} % 61); ({long*} ? {V} : {V}); fmax({V}, {V}); (-{V})",
}
CHOICES = {
    of: [text.strip() for text in texts.split(";")]
    for table in (EXPRESSIONS, {f"{k}.": v for k, v in LEAVES.items()})
    for of, texts in table.items()
}
BEFORE = """
#define ADD(a, b) ((a) + (b))
#define TWICE(x) ADD(x, x)
#define FIRST(a, ...) (a)
#define REST_(a, ...) (a)
#define REST(a, ...) REST_(__VA_ARGS__, 0)
#define GLUE(a, b) a##b
#define NAME(x) GLUE(macro_, x)
#define macro_seven 7
#define STR(x) #x
#define SMALL(x) ((float)((int)(x) % 61))
#define SMALLV(n, x) GLUE(convert_float, n)(GLUE(convert_int, n)(x) % 61)
#if defined(ADD) && GLUE(1, 2) == 12 && !defined MISSING && __OPENCL_C_VERSION__ >= 120
#define LIMIT(x) ((x) & 7)
#elif ADD(1, 1)
#error not this part
#endif

typedef struct { int whole; float part; uint bits[2]; } pair;
typedef union { uint word; uchar bytes[4]; } both;
enum { ONE = 1, THREE = 3, FOUR };
__constant int table[FOUR] = {3, [2] = 5, 7};

int helper(int a, int b);
__attribute__((overloadable)) int same(int a) { return a; }
__attribute__((overloadable)) long same(long a) { return a / ONE; }
__attribute__((overloadable)) float same(float a) { return a * 1.0f; }
uint dword(uint a) { both b; b.word = a; return b.bytes[THREE] | (uint)b.bytes[0] << 8; }
void bump(int* p, int by) { *p = (*p + by) % 97; }

int helper(int a, int b)
{
    if (a > b) {
        return (a - b) % 13;
    }
    for (int i = 0; i < (b & 3); i++) {
        if (i == 2) return a % 7 + i;
        a += i;
    }
    return a % 29;
}
"""


class Block:
    """Statements in { } that end with a store of one number to out[at]."""

    def __init__(self, rng: random.Random, number: int, widest: int = 16):
        self.rng, self.number, self.widest = rng, number, widest
        self.scopes: list[dict[str, str]] = [{}]
        self.count = 0
        self.loops = 0
        self.fixed: set[str] = set()  # loop counters: they are only read

    def names(self, of: str, change: bool = False) -> list[str]:
        every = [n for scope in self.scopes for n, t in scope.items() if t == of]
        return [n for n in every if not (change and n in self.fixed)]

    def fresh(self, of: str = "") -> str:
        self.count += 1
        name = f"v{self.number}_{self.count}"
        if of:
            self.scopes[-1][name] = of
        return name

    # ---- expressions
    def value(self, of: str, depth: int) -> str:
        """An expression of a type."""
        rng = self.rng
        base, width = of.rstrip("0123456789"), of[len(of.rstrip("0123456789")) :]
        names = self.names(of)
        if names and rng.random() < (0.6 if depth <= 0 else 0.15):
            return rng.choice(names)
        if width and rng.random() < 0.2:
            return f"({of})({', '.join(self.value(p, depth - 1) for p in self.cut(base, width))})"
        if depth <= 0:
            choices = [f"({of})({{S}})"] if width else CHOICES[f"{of}."]
        else:
            choices = CHOICES[f"{base}N" if width else of]
        return self.filled(rng.choice(choices), base, width, depth)

    def filled(self, template: str, base: str, width: str, depth: int) -> str:
        """A template with expressions in place of what stands in { }."""
        meant = {"V": base + width, "S": base, "I": f"int{width}", "U": f"uint{width}"}

        def part(match: re.Match) -> str:
            word, less = match[1].rstrip("."), 99 if match[1].endswith(".") else 1
            if word == "n":
                return width
            if word == "test":
                return self.test(depth - 1)
            return self.value(meant.get(word, word.replace("*", width)), depth - less)

        return re.sub(r"\{([^}]*)\}", part, template)

    def cut(self, base: str, width: str) -> list[str]:
        """Types of parts that together have so many numbers."""
        left, parts = int(width), []
        while left:
            n = self.rng.choice([w for w in (1, *WIDTHS) if w <= left and w < int(width)])
            parts.append(base + (str(n) if n > 1 else ""))
            left -= n
        return parts

    def test(self, depth: int) -> str:
        rng = self.rng
        of = rng.choice(SCALARS)
        sign = rng.choice(["<", ">", "<=", ">=", "==", "!="])
        text = f"{self.value(of, depth - 1)} {sign} {self.value(of, 0)}"
        if depth > 0 and rng.random() < 0.3:
            text = f"({text}) {rng.choice(['&&', '||'])} ({self.test(depth - 1)})"
        return f"(!({text}))" if rng.random() < 0.1 else f"({text})"

    # ---- statements
    def statements(self, depth: int, count: int) -> list[str]:
        self.scopes.append({})
        out = [line for _ in range(count) for line in self.statement(depth)]
        self.scopes.pop()
        return ["{", *out, "}"]

    def type(self) -> str:
        rng = self.rng
        if rng.random() < 0.35:
            return f"{rng.choice(VECTORS)}{min(rng.choice(WIDTHS), self.widest)}"
        return rng.choice(SCALARS)

    def declare(self) -> list[str]:
        of = self.type()
        value = self.value(of, 2)
        return [f"{of} {self.fresh(of)} = {value};"]

    def assign(self) -> list[str]:
        rng = self.rng
        every = {n: t for scope in self.scopes for n, t in scope.items() if n not in self.fixed}
        if not every:
            return self.declare()
        name, of = rng.choice(list(every.items()))
        base, width = of.rstrip("0123456789"), of[len(of.rstrip("0123456789")) :]
        if width and rng.random() < 0.5:
            part = rng.choice(["x", "s1", "y", "lo" if width == "2" else "xy"])
            kind = base + ("2" if part == "xy" else "")
            return [f"{name}.{part} = {self.value(kind, 1)};"]
        if base in ("uint", "ulong", "uchar") and rng.random() < 0.5:
            if rng.random() < 0.2:
                return [rng.choice([f"{name}++;", f"--{name};"])]
            return [f"{name} {rng.choice(['+=', '-=', '*=', '^=', '|='])} {self.value(of, 2)};"]
        return [f"{name} = {self.value(of, 3)};"]

    def branch(self, depth: int) -> list[str]:
        out = [f"if {self.test(2)}", *self.statements(depth - 1, 2)]
        other = ["else", *self.statements(depth - 1, 2)]
        return [*out, *other] if self.rng.random() < 0.5 else out

    def loop(self, depth: int) -> list[str]:
        rng = self.rng
        if self.loops == 2:
            return self.assign()
        self.loops += 1
        end = rng.choice([str(rng.randrange(5)), f"LIMIT({self.value('int', 0)})"])
        name = self.fresh()
        self.scopes.append({name: "int"})
        self.fixed.add(name)
        body = self.statements(depth - 1, 2)
        if rng.random() < 0.5:
            body.insert(-1, f"if ({self.test(1)}) {rng.choice(['break', 'continue'])};")
            names = self.names("uint", change=True)
            body.insert(-1, f"{rng.choice(names)} += 3u;" if names else ";")
        self.scopes.pop()
        self.loops -= 1
        if rng.random() < 0.6:
            return [f"for (int {name} = 0; {name} < {end}; {name}++)", *body]
        if rng.random() < 0.5:
            return [f"int {name} = -1; while (++{name} < {end})", *body]
        return [f"int {name} = 0; do", *body, f"while ({name}++ < {end});"]

    def array(self, _depth: int) -> list[str]:
        of = self.rng.choice(["float", "int", "uint", "ushort", "float4", "int2"])
        name, a, b = self.fresh(), self.value(of, 1), self.value(of, 1)
        out = [f"{of} {name}[4] = {{{a}, {b}}};",
               f"{name}[{self.value('int', 1)} & 3] = {self.value(of, 1)};",
               f"{of}* p{name} = {name} + ({self.value('int', 0)} & 1);"]  # fmt: skip
        if of == "int":
            out.append(f"bump(&{name}[1], {self.value('int', 1)});")
        value = f"p{name}[{self.value('int', 1)} & 1]"
        return [*out, f"{of} {self.fresh(of)} = {value};"]

    def structure(self, _depth: int) -> list[str]:
        name, other = self.fresh(), self.fresh()
        out = [f"pair {name} = {{{self.value('int', 1)}, .bits = {{{self.value('uint', 1)}}}}};",
               f"{name}.part = {self.value('float', 1)}; pair* {other} = &{name};",
               f"{other}->bits[{self.value('int', 0)} & 1] ^= {self.value('uint', 1)};",
               ]  # fmt: skip
        values = {"int": f"{name}.whole", "float": f"(*{other}).part", "uint": f"{name}.bits[0]"}
        return out + [f"{of} {self.fresh(of)} = {value};" for of, value in values.items()]

    def switch(self, depth: int) -> list[str]:
        cases = []
        for number in range(3):
            cases += [f"case {number}:", *self.statements(depth - 1, 1)]
            if self.rng.random() < 0.6:
                cases.append("break;")
        if self.rng.random() < 0.5:
            cases += ["default:", ";"]
        return [f"switch ({self.value('int', 1)} & 3) {{", *cases, "}"]

    def jump(self, depth: int) -> list[str]:
        label = self.fresh()
        return [f"if {self.test(1)} goto l{label};", *self.statements(depth - 1, 2), f"l{label}: ;"]

    def statement(self, depth: int) -> list[str]:
        pick = self.rng.random()
        if depth <= 0 or pick < 0.2:
            return self.declare()
        if pick < 0.5:
            return self.assign()
        compound = [self.branch, self.loop, self.array, self.structure, self.switch]
        return self.rng.choice(compound)(depth)

    def text(self, slots: int) -> str:
        lines = [line for _ in range(5) for line in self.statement(2)]
        if self.rng.random() < 0.3:
            lines += self.jump(2)
        of = self.rng.choice(SCALARS)
        value = f"(long)({self.value(of, 3)})"
        vectors = [
            n for scope in self.scopes for n, t in scope.items() if t[:-1] in ("int", "uint")
        ]
        for name in vectors[:2]:
            value += f" + {name}.x + {name}.s1"
        return "\n".join(["{", *lines, f"out[id*{slots} + {self.number}] = {value};", "}"])


def kernel(seed: int, blocks: int, widest: int = 16) -> str:
    """A kernel of some blocks, each of which stores a number per work-item: out[id*blocks +
    block]. Its vectors have at most `widest` elements.
    """
    rng = random.Random(seed)
    body = "\n".join(Block(rng, number, widest).text(blocks) for number in range(blocks))
    return f"""{BEFORE}
__kernel __attribute__((reqd_work_group_size({ITEMS}, 1, 1)))
void fuzz(const __global float* x, const __global int* y, __global long* out)
{{
    const int id = get_global_id(0);
    const int lid = get_local_id(0);
{body}
}}
"""

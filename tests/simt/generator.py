"""Random kernels without undefined behaviour, to be run by the simulator and by a real OpenCL
runtime.

Signed arithmetic stays small (results are taken modulo 97 or so), divisors are odd, shifts are
below 32, indices are masked, floats are small whole numbers: so every runtime must agree, bit for
bit.
"""

from __future__ import annotations

import random

ITEMS = 8  # work-items of a work-group, and 2 groups
TYPES = ("int", "uint", "long", "ulong", "float", "double", "short", "uchar")
NARROW = ("short", "uchar")


class Block:
    """Statements in { } that end with a store of one number to out[at]."""

    def __init__(self, rng: random.Random, number: int):
        self.rng, self.number = rng, number
        self.scopes: list[dict[str, str]] = [{}]
        self.count = 0
        self.loops = 0
        self.fixed: set[str] = set()  # loop counters: they are only read

    def names(self, kind: str, change: bool = False) -> list[str]:
        every = [n for scope in self.scopes for n, of in scope.items() if of == kind]
        return [n for n in every if not (change and n in self.fixed)]

    def fresh(self) -> str:
        self.count += 1
        return f"v{self.number}_{self.count}"

    # ---- expressions of a type; `small` values of int, long and float
    def leaf(self, kind: str) -> str:
        rng = self.rng
        if kind.endswith("4"):
            base = kind[:-1]
            choices = self.names(kind) + [f"({kind})({self.leaf(base)})"]
            choices += [f"({kind})({', '.join(self.leaf(base) for _ in range(4))})"]
            return rng.choice(choices)
        names = self.names(kind)
        if names and rng.random() < 0.6:
            return rng.choice(names)
        if kind in NARROW:
            return f"({kind})({self.leaf('int')}%97*{rng.randrange(300)})"
        if kind == "double":
            return rng.choice(
                [
                    f"{rng.randrange(9)}.0",
                    "(double)id",
                    f"(double){self.leaf('long')}",
                    "(double)x[id]",
                ]
            )
        if kind == "float":
            return rng.choice(
                [
                    "(float)id",
                    f"{rng.randrange(9)}.0f",
                    "x[id]",
                    f"x[(id + {rng.randrange(9)}) & 15]",
                ]
            )
        if kind in ("uint", "ulong"):
            suffix = "u" if kind == "uint" else "ul"
            return rng.choice([f"{rng.randrange(2**20)}{suffix}", f"({kind})id", f"({kind})y[id]"])
        return rng.choice(
            [
                f"{rng.randrange(60)}" if kind == "int" else f"{rng.randrange(60)}L",
                f"({kind})id",
                f"({kind})lid",
                f"({kind})y[id]",
                f"({kind})y[(id + {rng.randrange(9)}) & 15]",
            ]
        )

    def value(self, kind: str, depth: int) -> str:  # noqa: C901, PLR0912
        rng = self.rng
        if depth <= 0:
            return self.leaf(kind)
        if kind.endswith("4"):
            a, b = self.value(kind, depth - 1), self.value(kind, depth - 1)
            if kind == "float4":
                return self.small4(f"{a} {rng.choice('+-*')} {b}")
            if kind == "uint4":
                return f"({a} {rng.choice('+-*&|^')} {b})"
            return f"(({a} {rng.choice('+-')} {b}) % 97)"
        if kind in NARROW:
            return f"({kind})({self.value('int', depth - 1)} % 97 * {rng.randrange(99)})"
        vector = self.names(kind + "4")
        if vector and rng.random() < 0.3:
            return f"{rng.choice(vector)}.{rng.choice(['x', 'y', 's2', 's3', 'hi.x', 'odd.y'])}"
        a, b = self.value(kind, depth - 1), self.value(kind, depth - 1)
        if kind == "double":
            other = self.leaf(rng.choice(["double", "float", "int"]))
            return f"(double)((long)({a} {rng.choice('+-*')} {other}) % 1001)"
        if kind == "float":
            pick = rng.randrange(4)
            if pick == 0:
                return f"fma({self.leaf('float')}, {self.leaf('float')}, {a})"
            if pick == 1:
                return f"({self.test(depth - 1)} ? {a} : {b})"
            if pick == 2:
                return f"{rng.choice(['fmin', 'fmax'])}({a}, {b})"
            return self.small(f"{a} {rng.choice('+-*')} {b}")
        if kind in ("uint", "ulong"):
            op = rng.choice(["+", "-", "*", "&", "|", "^", "/", "%", "<<", ">>", "?", "~", "min"])
            if op in "/%":
                return f"({a} {op} ({b} | 1u))"
            if op in ("<<", ">>"):
                return f"({a} {op} ({self.value('int', depth - 2)} & 31))"
            if op == "?":
                return f"({self.test(depth - 1)} ? {a} : {b})"
            if op == "~":
                return rng.choice(
                    [
                        f"(~{a})",
                        f"(-{a})",
                        f"({kind}){self.leaf(rng.choice(['int', 'long', 'uint']))}",
                    ]
                )
            return f"min({a}, {b})" if op == "min" else f"({a} {op} {b})"
        op = rng.choice(
            ["+", "-", "*", "/", "%", "&", "|", "^", ">>", "?", "max", "cast", "-x", "test", "call"]
        )
        mod = "97" if kind == "int" else "100003L"
        if op in ("/", "%"):
            return f"({a} {op} ({b} | 1))"
        if op == ">>":
            return f"({a} >> ({self.value('int', depth - 2)} & 31))"
        if op == "?":
            return f"({self.test(depth - 1)} ? {a} : {b})"
        if op == "max":
            return f"{rng.choice(['min', 'max'])}({a}, {b})"
        if op == "cast":
            return rng.choice(
                [
                    f"({kind})({self.value('uint', depth - 1)} & 63u)",
                    f"({kind}){self.leaf('float')}",
                    f"({kind})({self.value('long', depth - 1)} % 50)",
                ]
            )
        if op == "-x":
            return f"(-{a})"
        if op == "test":
            return f"({kind})({self.test(depth - 1)})"
        if op == "call" and kind == "int":
            return f"helper({a}, {b})"
        return f"(({a} {op if op in '+-*&|^' else '+'} {b}) % {mod})"

    @staticmethod
    def small(text: str) -> str:
        """A float brought back to a small whole number."""
        return f"(float)((int)({text}) % 61)"

    @staticmethod
    def small4(text: str) -> str:
        return f"convert_float4(convert_int4({text}) % 61)"

    def test(self, depth: int) -> str:
        rng = self.rng
        kind = rng.choice(list(TYPES))
        text = (
            f"{self.value(kind, depth - 1)} {rng.choice(['<', '>', '<=', '>=', '==', '!='])} "
            f"{self.leaf(kind)}"
        )
        if depth > 0 and rng.random() < 0.3:
            text = f"({text}) {rng.choice(['&&', '||'])} ({self.test(depth - 1)})"
        return f"(!({text}))" if rng.random() < 0.1 else f"({text})"

    # ---- statements
    def statements(self, depth: int, count: int) -> list[str]:
        self.scopes.append({})
        out = [line for _ in range(count) for line in self.statement(depth)]
        self.scopes.pop()
        return ["{", *out, "}"]

    def declare(self) -> list[str]:
        kind = self.rng.choice([*TYPES, *TYPES, "float4", "int4", "uint4"])
        name, value = self.fresh(), self.value(kind, 2)
        self.scopes[-1][name] = kind
        return [f"{kind} {name} = {value};"]

    def assign(self) -> list[str]:
        rng = self.rng
        kind = rng.choice([*TYPES, "float4", "uint4"])
        names = self.names(kind, change=True)
        if not names:
            return self.declare()
        name = rng.choice(names)
        if kind in ("uint", "ulong", "uint4") and rng.random() < 0.5:
            return [f"{name} {rng.choice(['+=', '-=', '*=', '^=', '|='])} {self.value(kind, 2)};"]
        if kind.endswith("4") and rng.random() < 0.5:
            return [f"{name}.{rng.choice(['x', 's1', 'z', 'w'])} = {self.value(kind[:-1], 1)};"]
        if kind == "uint" and rng.random() < 0.2:
            return [rng.choice([f"{name}++;", f"--{name};"])]
        return [f"{name} = {self.value(kind, 3)};"]

    def statement(self, depth: int) -> list[str]:
        rng = self.rng
        pick = rng.random()
        if depth <= 0 or pick < 0.25:
            return self.declare()
        if pick < 0.55:
            return self.assign()
        if pick < 0.7:
            out = [f"if {self.test(2)}", *self.statements(depth - 1, 2)]
            return [*out, "else", *self.statements(depth - 1, 2)] if rng.random() < 0.5 else out
        if pick < 0.85 and self.loops < 2:
            self.loops += 1
            name = self.fresh()
            self.scopes.append({name: "int"})
            self.fixed.add(name)
            body = self.statements(depth - 1, 2)
            if rng.random() < 0.5:
                body.insert(-1, f"if ({self.test(1)}) {rng.choice(['break', 'continue'])};")
                body.insert(-1, self.assign_known())
            self.scopes.pop()
            self.loops -= 1
            end = rng.choice([str(rng.randrange(5)), f"({self.leaf('int')} & 7)"])
            return [f"for (int {name} = 0; {name} < {end}; {name}++)", *body]
        if pick < 0.93:
            name = self.fresh()
            out = [f"float {name}[4] = {{{self.value('float', 1)}, {self.value('float', 1)}}};",
                   f"{name}[{self.value('int', 1)} & 3] = {self.value('float', 1)};"]  # fmt: skip
            total = self.fresh()
            out.append(f"float {total} = {name}[{self.value('int', 1)} & 3] + {name}[3];")
            self.scopes[-1][total] = "float"
            return out
        cases = []
        for number in range(3):
            cases += [f"case {number}:", *self.statements(depth - 1, 1)]
            if rng.random() < 0.6:
                cases.append("break;")
        return [
            f"switch ({self.value('int', 1)} & 3) {{",
            *cases,
            *(["default:", ";"] * (rng.random() < 0.5)),
            "}",
        ]

    def assign_known(self) -> str:
        names = self.names("uint", change=True)
        return f"{self.rng.choice(names)} += 3u;" if names else ";"

    def text(self, slots: int) -> str:
        lines = [line for _ in range(5) for line in self.statement(2)]
        kind = self.rng.choice(list(TYPES))
        value = self.value(kind, 3)
        return "\n".join(["{", *lines, f"out[id*{slots} + {self.number}] = (long)({value});", "}"])


def kernel(seed: int, blocks: int) -> str:
    """A kernel of some blocks, each of which stores a number per work-item: out[id*blocks +
    block].
    """
    rng = random.Random(seed)
    body = "\n".join(Block(rng, number).text(blocks) for number in range(blocks))
    return f"""
int helper(int a, int b)
{{
    if (a > b) {{
        return (a - b) % 13;
    }}
    for (int i = 0; i < (b & 3); i++) {{
        if (i == 2) return a % 7 + i;
        a += i;
    }}
    return a % 29;
}}

__kernel __attribute__((reqd_work_group_size({ITEMS}, 1, 1)))
void fuzz(const __global float* x, const __global int* y, __global long* out)
{{
    const int id = get_global_id(0);
    const int lid = get_local_id(0);
{body}
}}
"""

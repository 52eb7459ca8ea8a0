"""A kernel's text with a counter at every load and store, put between the simulator's own tokens.

A real device runs the result, so what it counts depends on nothing of the simulator but its parser.
Counters are bumped by atomic functions: loads and stores of global memory, then those of local
memory.
"""

from __future__ import annotations

import re
from collections import defaultdict

from clscope import tree
from clscope.meaning import address_of
from clscope.parser import Parser
from clscope.text import Preprocessor
from clscope.types import Array, Pointer


def bump(space: str, store: bool, width: int) -> str:
    return f"(atomic_add(counted + {2 * (space == 'local') + store}, {width}), "


def accessed(node) -> tuple[str, int] | None:
    """The memory of which an expression is an element, and how many numbers that has."""
    if not isinstance(node, tree.Index) or isinstance(node.type, (Array, Pointer)):
        return None
    space = address_of(node).space
    return None if space == "private" else (space, node.type.length)


def stored(node) -> tree.Expr | None:
    """What an expression stores to, or takes the address of: it is not loaded."""
    if isinstance(node, tree.Assign):
        return node.target
    return node.operand if isinstance(node, tree.Unary) and node.op == "&" else None


def counters(node) -> str:
    """What to write before an expression that loads or stores."""
    if isinstance(node, tree.Assign):
        access, loads = accessed(node.target), node.op
        return (
            "".join(bump(access[0], s, access[1]) for s in (False, True)[not loads :])
            if access
            else ""
        )
    moves = isinstance(node, tree.Call) and re.fullmatch(r"v(load|store)(\d+)", node.name)
    if moves and node.args[-1].type.space != "private":
        return bump(node.args[-1].type.space, moves[1] == "store", int(moves[2]))
    access = accessed(node)
    return bump(access[0], False, access[1]) if access else ""


def instrumented(text: str, defines: dict[str, int]) -> str:
    """OpenCL C whose functions have one more parameter, `global int* counted`: four counters."""
    parser = Parser(Preprocessor(defines).run(text))
    functions, _ = parser.file()
    nodes = [n for f in functions for n in f.body.walk()]
    places = set()
    for target in filter(None, map(stored, nodes)):
        while isinstance(target, tree.Member):
            target = target.vector
        places.add(id(target))
    before, behind = defaultdict(str), defaultdict(str)
    for node in nodes:
        code = "" if id(node) in places else counters(node)
        if code:
            before[id(node.source[0])] += code
            behind[id(node.source[-1])] += ")" * code.count("(atomic")
        if isinstance(node, tree.Call) and node.target:
            before[id(node.source[-1])] += ", counted" if node.args else "counted"
    out, depth, opened = [], 0, False
    for token in parser.tokens:
        depth += (token.text == "{") - (token.text == "}")
        opened |= depth == 0 and token.text in parser.functions
        if depth == 0 and opened and token.text == ")":
            none = out[-1] == "void"  # instead of parameters
            before[id(token)] += f"{'' if none else ','} global int* counted"
            out[-1:] = [] if none else out[-1:]
            opened = False
        out.append(before[id(token)] + token.text + behind[id(token)])
    return " ".join(out)

"""The tree of a kernel's text is complete: whoever walks it misses nothing that was parsed."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterator

from microscope import small_kernels
from microscope.corpus import RIGHT
from microscope.generator import kernel
from microscope.test_language import CONSTRUCTS, written

from clscope import parse, tree

MORE = """
int twice(int a) { return 2*a; }
typedef struct { int a; float b[2]; } Pair;
__kernel void k(__global int* x)
{
    int i = 0, a[2] = {i++, twice(i)}, b[2][2] = {{i, i + 1}, {x[i]}};
    Pair p = {a[0], {1.0f, x[1] ? 2.0f : 3.0f}}, pairs[2] = {{.b = {[1] = i--}}, p};
    x[0] = ((int[]){i, i++})[1] + p.a + pairs[1].a + b[0][i & 1];
    switch (x[1]) { case 1: goto out; default: break; }
out:
    do { i += (int)p.b[1]; } while (i < 0);
}
"""


def corpus() -> Iterator[str]:
    """Yield every text of these tests that the parser takes."""
    yield MORE
    yield from map(written, CONSTRUCTS)
    yield from (case.text for case in RIGHT)
    for seed in range(20):
        yield small_kernels.text(seed)
        yield kernel(seed, 8)


def held(value: object) -> Iterator[tree.Node]:
    """Yield the nodes in any field of a node, however deep in lists and tuples; not what a call
    calls.
    """
    if isinstance(value, tree.Node):
        yield value
        for field in dataclasses.fields(value):
            if field.name != "target" or not isinstance(value, tree.Call):
                yield from held(getattr(value, field.name))
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from held(item)


def test_a_walk_reaches_every_node_once():
    kinds = Counter[type]()
    for text in corpus():
        unit = parse(text)
        for top in (*unit.functions, *unit.variables):
            walked = list(map(id, top.walk()))
            assert sorted(walked) == sorted(map(id, held(top))), text
            kinds.update(map(type, top.walk()))
    classes = [c for c in vars(tree).values() if isinstance(c, type) and issubclass(c, tree.Node)]
    assert set(classes) - {tree.Node, tree.Expr} == set(kinds)

"""The tree of a kernel's text is complete: whoever walks it misses nothing that was parsed."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterator

from microscope.fuzz import SETTINGS
from microscope.generator import kernel
from microscope.test_language import CONSTRUCTS, written
from web import small_kernels

from clscope import tree
from clscope.parser import parse_with
from clscope.text import Preprocessor
from gemmlab import catalog

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


def corpus() -> Iterator[tuple[str, dict]]:
    """Yield every text of these tests that the parser takes, with its macros."""
    for name, params in SETTINGS.items():
        yield catalog[name].text(params), dict(params)
    texts = [MORE, *map(written, CONSTRUCTS), *map(small_kernels.text, range(20))]
    texts += [kernel(seed, 8) for seed in range(20)]
    for text in texts:
        yield text, {}


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
    for text, macros in corpus():
        unit = parse_with(Preprocessor(macros), text)
        for top in (*unit.functions, *unit.variables):
            walked = list(map(id, top.walk()))
            assert sorted(walked) == sorted(map(id, held(top))), text
            kinds.update(map(type, top.walk()))
    classes = [c for c in vars(tree).values() if isinstance(c, type) and issubclass(c, tree.Node)]
    assert set(classes) - {tree.Node, tree.Expr} == set(kinds)

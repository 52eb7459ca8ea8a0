"""Random kernels beside a real OpenCL runtime, texts with a counter at every access, and random
edits, which may not lead to an internal error.
"""

from __future__ import annotations

import itertools
import random
import re

import numpy as np
import pytest
from microscope.corpus import RIGHT
from microscope.fuzz import BLOCKS, edit, misread, stored, unlike
from microscope.generator import kernel
from microscope.harness import pocl
from microscope.instrument import instrumented

import clscope


@pytest.mark.sampled(3)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", range(25))
def test_random_kernels_do_what_a_real_runtime_does(seed):
    """Numbers and vectors of all types, macros, structures, loops, jumps, functions, arrays."""
    source = kernel(seed, BLOCKS, 16 if pocl().widest == 64 else 4)
    assert unlike(source, stored(pocl(), source)) == ""


def counts(run: clscope.Run) -> list[int]:
    """Loads and stores of global memory, then of local memory."""
    space, store, width = (run.table[name] for name in ("space", "store", "width"))
    kinds = itertools.product(("global", "local"), (False, True))
    return [int(width[(space == s) & (store == stores)].sum()) for s, stores in kinds]


#: An element has a place for a counter; a copy, an atomic function and a local variable do not.
COUNTED = [c for c in RIGHT if not re.search(r"async_|atomic_|__local \w+ \w+;", c.text)]


@pytest.mark.optimised(False)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", COUNTED, ids=lambda case: case.name)
def test_loads_and_stores_are_those_of_a_device(case):
    """PoCL runs the same text with a counter at every access, and stores the same."""
    run = case.run()
    args = [
        np.zeros(a.size, a.dtype) if isinstance(a, clscope.Empty) else a for a in case.arguments
    ]
    args = [np.int32(a) if isinstance(a, int) else a for a in args]
    (name,) = (f.name for f in clscope.parse(case.text).functions if f.kernel)
    source = instrumented(case.text, {})
    after = pocl().launch(source, name, case.launch, case.group, [*args, np.zeros(4, np.int32)])
    assert after[-1].tolist() == counts(run)
    arrays = [a for a in after[:-1] if isinstance(a, np.ndarray)]
    for ours, theirs in zip(run.arrays.values(), arrays, strict=True):
        assert np.array_equal(ours, theirs)


@pytest.mark.parametrize("case", RIGHT, ids=lambda case: case.name)
def test_an_edited_token_is_never_an_internal_error(case):
    rng = random.Random(case.name)

    def simulate(source: str) -> clscope.Run | None:
        try:
            return case._replace(text=source).run(limit=200)
        except clscope.TextError:
            raise
        except (
            StopIteration,
            ValueError,
            TypeError,
        ):  # another kernel, which takes other arguments
            return None

    for _ in range(20):
        assert misread(edit(case.text, rng), simulate) == ""

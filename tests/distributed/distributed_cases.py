"""Random products of Dask arrays: shapes, chunkings and types, with small whole numbers that no
type rounds.
"""

import dask.array as da
import numpy as np
from hypothesis import strategies as st

from gemmlab.distributed.products import DTYPES


@st.composite
def chunks(draw, size: int):
    """A way to cut a dimension into up to three parts; the sizes may differ, and one may be 0."""
    inner = sorted(draw(st.lists(st.integers(0, size), max_size=2)))
    ends = [0, *inner, size]
    return tuple(end - start for start, end in zip(ends, ends[1:], strict=False))


@st.composite
def products(draw, dtypes=DTYPES):
    """a and b as NumPy arrays, with the chunks of each."""
    m, n, k = (draw(st.integers(1, 70)) for _ in range(3))
    batch = draw(st.sampled_from([(), (), (), (2,), (3, 1)]))
    dtype, seed = draw(st.sampled_from(dtypes)), draw(st.integers(0, 2**32 - 1))
    rng = np.random.default_rng(seed)
    kind = draw(st.sampled_from(["both", "both", "row", "column"]))
    of_a, of_b = ((k,) if kind == "row" else (*batch, m, k)), ((k,) if kind == "column" else (k, n))
    cuts = [tuple(draw(chunks(size)) for size in shape) for shape in (of_a, of_b)]
    a, b = (rng.integers(-3, 4, shape).astype(dtype) for shape in (of_a, of_b))
    if dtype.kind == "c":
        a, b = a + 1j * np.flip(a), b - 1j * np.flip(b)
    return a, b, cuts


def as_dask(a, b, cuts) -> list[da.Array]:
    return [da.from_array(x, chunks=cut) for x, cut in zip((a, b), cuts, strict=True)]

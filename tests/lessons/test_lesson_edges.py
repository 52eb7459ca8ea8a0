"""What was recorded of the strategies for sizes that are not whole tiles."""

from gemmlab.blas.product import Product, passes
from gemmlab.generate import candidates
from gemmlab.ladder import catalog
from lessons import edges


def test_the_recorded_strategies_are_whole():
    recorded = edges.rows()
    assert set(recorded["pad"]) >= set(range(1000, 1101, 7))
    for way, results in recorded.items():
        assert set(results) == set(recorded["pad"]), way
        assert all(row.gflops > 0 for row in results.values()), way


def test_padding_was_recorded_with_the_tiles_of_the_table():
    """Chapter 13 counts work-groups by the table's tiles; the record has their memory."""
    row = next(row for row in candidates.kernel_rows("nvidia", "pad") if row["size"] == 1024)
    for size in (1021, 1028):
        product = Product.compact(size, size, size)
        planned = passes(catalog[row["kernel"]], row["params"], product, frozenset())
        found = edges.rows("bytes")["pad"][size]
        memory = 4 * sum(step.out.room for step in planned if step.out)
        assert (found.kernel, found.median) == (row["kernel"], memory)

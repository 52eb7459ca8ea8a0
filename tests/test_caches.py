"""What is remembered is bounded, and forgotten on request."""

import gemmlab
from gemmlab import caches


def test_results_are_remembered_up_to_a_bound_and_forgotten_on_request():
    asked = []

    @caches.cached(2)
    def double(x):
        asked.append(x)
        return 2 * x

    assert [double(x) for x in (1, 1, 2, 3, 1)] == [2, 2, 4, 6, 2] and asked == [1, 2, 3, 1]
    gemmlab.clear_caches()
    assert double(1) == 2 and asked == [1, 2, 3, 1, 1]

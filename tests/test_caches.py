"""What is remembered is bounded, and forgotten on request."""

import gemmlab
from gemmlab import caches, check


def test_results_are_remembered_up_to_a_bound_and_forgotten_on_request():
    asked = []

    @caches.cached(2)
    def double(x):
        asked.append(x)
        return 2 * x

    assert [double(x) for x in (1, 1, 2, 3, 1)] == [2, 2, 4, 6, 2] and asked == [1, 2, 3, 1]
    gemmlab.clear_caches()
    assert double(1) == 2 and asked == [1, 2, 3, 1, 1]


def test_products_are_right_after_everything_was_forgotten(device):
    a, b = check.exact_inputs(50, 60, 70)
    for _ in range(2):
        assert check.exact(gemmlab.matmul(a, b, device=device), a, b).ok
        gemmlab.clear_caches()

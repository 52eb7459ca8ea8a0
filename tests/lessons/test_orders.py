"""Other orders of the multiply-adds are the same kernel."""

import pytest
from texts import SMALL

import gemmlab
from lessons import orders


@pytest.mark.optimised(False)
@pytest.mark.parametrize("order", orders.ORDERS)
@pytest.mark.parametrize("kernel", [6, 15, 16])
def test_a_kernel_in_another_order_is_right(kernel, order, some_device):
    text = orders.text(kernel, order)
    options = {"params": SMALL[kernel], "device": some_device, "repeats": 1}
    assert gemmlab.measure(kernel, 64, 64, 32, **options, source=text).ok
    left_out = text.replace("e < WPTM*WPTN", "e < WPTM*WPTN - 1")
    assert not gemmlab.measure(kernel, 64, 64, 32, **options, source=left_out).ok

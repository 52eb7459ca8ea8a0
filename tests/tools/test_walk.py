"""The instrument that prints the walk of a product."""

import walk


def test_a_later_product_is_only_run(any_device, capsys, fresh):
    """It neither chooses a kernel nor builds a plan, on either side."""
    walks = walk.walks(any_device)
    for side in ("NumPy arrays", "device arrays"):
        first, later = (walks[f"{turn} product of {side}"] for turn in ("first", "later"))
        assert "choose" in first["blas/choose.py"] and "build" in first["blas/plan.py"]
        assert "blas/choose.py" not in later and "build" not in later["blas/plan.py"]
        assert later.keys() <= first.keys() and "matmul" in later["blas/products.py"]
    walk.main(["--device", str(any_device.index)])
    assert "later product of device arrays" in capsys.readouterr().out

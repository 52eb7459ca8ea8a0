"""Sizes on the command line."""

import argparse

import pytest

from gemmlab import cli


def test_sizes_with_a_step_and_sizes_that_differ():
    assert cli.size_list("64,1000-1020:7,5-6") == [64, 1000, 1007, 1014, 5, 6]
    assert cli.size_list("256,64x8192x1024,10-12") == [256, (64, 8192, 1024), 10, 11, 12]
    for wrong in ("64x128", "1x2x3x4", "axbxc", "64x"):
        with pytest.raises((ValueError, argparse.ArgumentTypeError)):
            cli.size_list(wrong)

"""Right kernels are accused of nothing, and wrong ones are, with a line: what `%%gemm` shows.

The labels do not come from gemmlab: all right kernels were run with plain PyOpenCL on PoCL 3.1 and
Intel's CPU runtime at all of their sizes, and with Oclgrind, which reported neither a race nor an
access out of bounds. Of the wrong ones Oclgrind named those whose kind it knows.
"""

import pytest
from verdicts.corpus import cases, named_lines

import gemmlab

#: Kernels that a device's compiler translates wrongly, in plain PyOpenCL as well.
MISCOMPILED = {
    "Intel": ("two_sums_in_an_array",),
    "PoCL 3.0": ("tail_after_vectors", "vload16_along_k", "vload16_k_48"),
}


def is_miscompiled(case, device) -> bool:
    return any(
        case.name in names
        for name, names in MISCOMPILED.items()
        if name in f"{device.platform} {device.version}"
    )


def tried(case, device):
    """What `%%gemm` shows of a kernel."""
    options = {"params": case.params, "source": case.source, "device": device.index}
    return gemmlab.trial(case.kernel, *case.sizes, **options, repeats=1)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("case", cases("right"))
def test_a_right_kernel_is_right_in_the_simulator(case):
    """At the asked sizes, if they are small, and at smaller ones. A limit is not a finding."""
    for sizes in (case.sizes, *case.others):
        if max(sizes) <= 64:
            run = gemmlab.simulate(*case.arguments(sizes), case.source)
            assert run.ok or (run.unfinished and not run.findings), run.verdict


@pytest.mark.sampled(4)
@pytest.mark.parametrize("case", cases("right"))
def test_a_right_kernel_is_accused_of_nothing(case, some_device):
    """If the device's compiler makes it wrong, the verdict does not blame a line."""
    outcome = tried(case, some_device)
    if is_miscompiled(case, some_device):
        assert outcome.state != "luck", outcome.verdict
        assert not named_lines(outcome.verdict), outcome.verdict
    else:
        assert outcome.state == "ok", outcome.verdict
        seen = outcome.seen
        assert seen is None or not (seen.why or seen.elsewhere), outcome.verdict


@pytest.mark.sampled(4)
@pytest.mark.parametrize("case", cases("wrong"))
def test_a_wrong_kernel_is_wrong_with_its_line(case, some_device):
    outcome = tried(case, some_device)
    assert not outcome.ok, outcome.verdict
    if case.lines:
        assert case.lines & named_lines(outcome.verdict), outcome.verdict

"""The parameters of kernels that may be launched as products."""

import pytest

from gemmlab.catalog.signature import Parameter, problem

TYPES = {"M": "int", "N": "int", "K": "int", "A": "float*", "B": "float*", "C": "float*"}


def parameters(order="MNKABC", **changed):
    """Those of a kernel in this order, some with another type, or another type and space."""
    made = []
    for name in order:
        of = changed.get(name, TYPES[name])
        kind, space = of if isinstance(of, tuple) else (of, "global" if "*" in of else "private")
        made.append(Parameter(name, kind, space))
    return made


@pytest.mark.parametrize(
    "allowed",
    [
        parameters(),
        parameters(M="uint", N="long", K="ushort"),
        parameters(A="float4*", B="void*", C="row*"),
        parameters(A=("float*", "constant")),
        parameters("NMKBAC"),  # row-major
        parameters("MKNABC"),  # M x N times N x K
        [p._replace(name=p.name.lower() * 2) for p in parameters()],
    ],
    ids=lambda one: ", ".join(map(str, one)),
)
def test_kernels_that_may_be_launched(allowed):
    assert not problem(allowed)
    assert not problem([*allowed, Parameter("parts", "float*", "global")], workspace=True)
    assert problem(allowed, workspace=True)


@pytest.mark.parametrize(
    ("refused", "name"),
    [
        (parameters("ABCMNK"), "A, B, C, M, N, K"),
        (parameters("MNKCAB"), "M, N, K, C, A, B"),
        (parameters("MNKBAC"), "M, N, K, B, A, C"),
        (parameters("MNKAB"), "5"),
        (parameters(M="int4"), "M"),
        (parameters(N="float"), "N"),
        (parameters(K="int*"), "K"),
        (parameters(A="double*", B="double*", C="double*"), "A"),
        (parameters(C="double*"), "C"),
        (parameters(B="int4*"), "B"),
        (parameters(B=("float*", "local")), "B"),
        (parameters(C=("float*", "constant")), "C"),
        (parameters(A=("image2d_t", "global")), "A"),
        (parameters(A=("float**", "global")), "A"),
        ([Parameter("x", "float*", "global"), *parameters()[1:]], "x"),
    ],
)
def test_kernels_that_must_not_be_launched(refused, name):
    assert name in problem(refused)

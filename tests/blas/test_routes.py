"""Which route a product takes: choices are those on record, and every choice multiplies right."""

import dataclasses
import hashlib
import json
import random
from pathlib import Path

import numpy as np
import pytest
from layouts import whole
from texts import H200

import gemmlab
from gemmlab.blas import routes
from gemmlab.blas.problem import Batch, Matrix, Problem
from gemmlab.blas.request import Request
from gemmlab.ladder import Limits

#: Hashes of the choices for 500 random products on three devices.
FILE = Path(__file__).with_name("choices.json")
CPU = {"kind": "CPU", "units": 2, "features": frozenset({"double"})}
POCL = {**CPU, "name": "cpu-znver4", "platform": "Portable Computing Language"}
POCL |= {"version": "PoCL 6.0", "limits": Limits("a CPU", 4096, (4096,) * 3, 2**19, unroll=4)}
INTEL = {**CPU, "name": "Intel(R) Xeon(R)", "platform": "Intel(R) OpenCL", "version": ""}
INTEL |= {"limits": Limits("a CPU", 8192, (8192,) * 3, 2**18)}
DEVICES = {"H200": H200, "PoCL": POCL, "Intel": INTEL}


def cases(number: int = 500, seed: int = 33) -> list[dict]:
    """Random products: sizes, types, transposed operands, batches and options."""
    rng, found = random.Random(seed), []
    for _ in range(number):
        sizes = [max(1, int(2 ** rng.uniform(0, rng.choice((7, 10, 13))))) for _ in "mnk"]
        grain = rng.choice((1, 1, 1, 4, 16, 64))
        sizes = [-(-size // grain) * grain for size in sizes]
        if rng.random() < 0.1:
            sizes = [rng.choice((64, 128, 256, 512, 1000, 1024, 2048, 4096, 4097, 8192))] * 3
        dtype = rng.choice(("float32",) * 4 + ("float64", "complex64", "complex128"))
        transposed = rng.random() < 0.3, rng.random() < 0.3
        case = {"sizes": sizes, "dtype": dtype, "transposed": transposed, "batch": None}
        options, kind = {}, rng.random()
        if kind < 0.2:
            case["batch"] = int(2 ** rng.uniform(1, 11)), rng.random() < 0.3
        elif kind < 0.35:
            case["dtype"], options = "float32", {"precision": rng.choice(("tf32", "tf32x3"))}
        elif kind < 0.45:
            options = {"edges": rng.choice(("pad", "guard", "shift", "split"))}
        elif kind < 0.5:
            options = {"kernel": "family"}
        found.append({**case, "options": options})
    return found


def chosen(device, case: dict) -> routes.Route | None:
    """The route of a product; None if it is refused."""
    (m, n, k), (ta, tb) = case["sizes"], case["transposed"]
    a = Matrix.compact(k, m).T if ta else Matrix.compact(m, k)
    b = Matrix.compact(n, k).T if tb else Matrix.compact(k, n)
    request, dtype, batch = Request(**case["options"]), np.dtype(case["dtype"]), None
    if case["batch"]:
        number, is_shared = case["batch"]
        batch = Batch(number, (m * k, 0 if is_shared else k * n))
    problem = Problem(a, b, Matrix.compact(m, n), batch=batch)
    try:
        request.check_for(dtype, device)
        return routes.choose(routes.Query(request, dtype, problem, device))
    except ValueError:
        return None


def described(route: routes.Route | None) -> str:
    """What a route launches; the packed kernel depends on the CPU at hand."""
    if route is None or isinstance(route, routes.Packed):
        return str(route and route.kernel)
    words = [type(route).__name__, route.kernel, sorted(route.params.items()), route.whole_batch]
    words += [getattr(route, "turned", None), getattr(route, "in_parts", None)]
    return repr(words)


def hashes(choices: list[str]) -> str:
    """A device's entry in `choices.json`: to record choices that changed on purpose."""
    return " ".join(hashlib.sha256(one.encode()).hexdigest()[:6] for one in choices)


def test_choices_are_those_on_record(any_device):
    recorded = json.loads(FILE.read_text(encoding="utf-8"))
    assert recorded.keys() == DEVICES.keys()
    for name, facts in DEVICES.items():
        device = dataclasses.replace(any_device, **facts)
        found = [described(chosen(device, case)) for case in cases()]
        pairs = zip(hashes(found).split(), recorded[name].split(), cases(), found, strict=True)
        assert [(case, one) for new, old, case, one in pairs if new != old] == [], name


def test_a_product_that_no_route_supports_is_refused_with_the_reasons(any_device):
    """`Request.of` refuses these options earlier."""
    request, problem = Request(kernel=3, edges="split"), Problem.compact(8, 8, 8)
    query = routes.Query(request, np.dtype(np.float32), problem, any_device)
    with pytest.raises(ValueError, match="kernel=3, edges='split'"):
        routes.choose(query)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "float16"])
def test_a_choice_can_be_named(some_device, dtype):
    """The kernel and parameters that `auto` reports give the same result when they are named."""
    if dtype == "float64" and "double" not in some_device.features:
        pytest.skip("no double precision")
    for m, n, k in ((24, 40, 16), (90, 2, 50)):
        chosen = gemmlab.auto(m, n, k, device=some_device, dtype=dtype)
        a, b = whole((m, k), 0, dtype), whole((k, n), 1, dtype)
        params = None if chosen.kernel == "packed" else chosen.params
        named = gemmlab.matmul(a, b, kernel=chosen.kernel, params=params, device=some_device)
        assert np.array_equal(named, a @ b) and str(chosen.kernel) in str(chosen)
        assert np.array_equal(gemmlab.matmul(a, b, device=some_device), named)
        assert chosen.refused.keys() < {"Packed", "Ladder", "Generated"}

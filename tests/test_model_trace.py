"""The replay of the kernels, the arithmetic on paper, and the order of the modules. No device needed."""

import ast
import sys
from pathlib import Path

import numpy as np
import pytest
from conftest import FULL

import gemmlab
from gemmlab import catalog, check, model, trace

ORDERS = ("forward", "backward", "shuffled")
#: Kernel, parameters, and M, N, K in tiles.
CASES = [
    (1, {"TS": 1}, (3, 2, 5)),
    (1, {"TS": 2}, (1, 3, 7)),
    (1, {"TS": 4}, (2, 1, 3)),
    (1, {"TS": 8}, (1, 2, 5)),
    (2, {"TS": 1}, (3, 2, 4)),
    (2, {"TS": 2}, (1, 3, 2)),
    (2, {"TS": 4}, (2, 1, 3)),
    (2, {"TS": 8}, (1, 2, 1)),
    (3, {"TS": 2, "WPT": 2}, (2, 1, 3)),
    (3, {"TS": 4, "WPT": 1}, (1, 2, 3)),
    (3, {"TS": 4, "WPT": 2}, (2, 1, 1)),
    (3, {"TS": 6, "WPT": 3}, (2, 1, 2)),
    (3, {"TS": 8, "WPT": 4}, (1, 2, 3)),
    (3, {"TS": 8, "WPT": 8}, (2, 2, 1)),
]
if FULL:
    CASES += [(number, p, (2, 1, 2)) for number, spec in catalog.items() for p in spec.offered() if p["TS"] <= 20]


def replayed(number, params, tiles, **options):
    multiples = catalog[number].multiples(catalog[number].complete(params))
    return trace.replay(number, *(t * m for t, m in zip(tiles, multiples, strict=True)), params, **options)


# Replay


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(("number", "params", "tiles"), CASES)
def test_a_replay_is_the_product(number, params, tiles, order):
    done = replayed(number, params, tiles, order=order, seed=3)
    verdict = check.exact(done.c, done.a, done.b)
    assert verdict.ok, verdict
    assert done.c.shape == (done.m, done.n)


@pytest.mark.parametrize(("number", "params", "tiles"), CASES)
def test_the_loads_are_those_of_the_formulas(number, params, tiles):
    done = replayed(number, params, tiles)
    multiply_adds = done.m * done.n * done.k
    per = model.loads(number, params)
    assert done.count("A", "B") == round(per["global"] * multiply_adds)
    assert done.count("Asub", "Bsub") == round(per["local"] * multiply_adds)
    assert done.count("C", store=True) == done.m * done.n
    assert done.count("Asub", "Bsub", store=True) == (0 if number == 1 else done.count("A", "B"))
    assert model.requested_bytes(number, done.m, done.n, done.k, params) == pytest.approx(
        4 * (done.count("A", "B") + done.count("C", store=True))
    )


@pytest.mark.parametrize(("number", "params", "tiles"), CASES)
def test_every_element_of_c_is_stored_once(number, params, tiles):
    done = replayed(number, params, tiles)
    stores = done.events[done.events["store"] & (done.events["array"] == "C")]
    assert sorted(stores["index"]) == list(range(done.m * done.n))


@pytest.mark.parametrize("number", (2, 3))
@pytest.mark.parametrize("barrier", (1, 2))
@pytest.mark.parametrize("params", ({"TS": 4}, {"TS": 8}))
def test_a_missing_barrier_makes_a_wrong_product_in_some_order(number, barrier, params):
    params = params | ({"WPT": 2} if number == 3 else {})
    verdicts = {}
    for order in ORDERS:
        done = replayed(number, params, (2, 1, 3), order=order, without_barrier=barrier)
        verdicts[order] = check.exact(done.c, done.a, done.b).ok
    assert not all(verdicts.values()), verdicts
    # with the barrier every one of these orders is right, so nothing but the barrier is to blame
    for order in ORDERS:
        done = replayed(number, params, (2, 1, 3), order=order)
        assert check.exact(done.c, done.a, done.b).ok


def test_the_last_barrier_does_not_matter_with_one_tile_only():
    """Barrier 2 protects the tiles from the next ones; where there is one tile it protects nothing."""
    for order in ORDERS:
        done = replayed(2, {"TS": 4}, (1, 1, 1), order=order, without_barrier=2)
        assert check.exact(done.c, done.a, done.b).ok


def test_the_phase_counts_barriers():
    done = replayed(2, {"TS": 2}, (1, 1, 3))
    e = done.events
    assert set(e["phase"][e["store"] & (e["array"] == "Asub")]) == {0, 2, 4}
    assert set(e["phase"][~e["store"] & (e["array"] == "Asub")]) == {1, 3, 5}
    assert set(e["phase"][e["array"] == "C"]) == {6}


def test_swapped_identifiers_still_multiply_right():
    """Exchanging the two dimensions costs speed, not correctness, where M = N: the lesson on coalescing needs both."""
    plain, swapped = (trace.replay(1, 32, 32, 4, {"TS": 32}, swapped=s) for s in (False, True))
    assert check.exact(plain.c, plain.a, plain.b).ok and check.exact(swapped.c, swapped.a, swapped.b).ok
    assert trace.segments(plain.touches("A")[0]) == 4  # 32 neighbouring floats
    assert trace.segments(plain.touches("B")[0]) == 1  # all the same float
    assert trace.segments(swapped.touches("A")[0]) == 1
    assert trace.segments(swapped.touches("B")[0]) == len(swapped.touches("B")[0]) * 4 * 4 // 32  # 4 floats apart
    assert trace.segments(plain.touches("C", store=True)[0]) == 4
    assert trace.segments(swapped.touches("C", store=True)[0]) == 32


def test_some_groups_only():
    done = trace.replay(2, 8, 8, 8, {"TS": 4}, groups=[(1, 0)])
    assert set(done.events["group"]) == {1}
    right = done.a @ done.b
    assert np.array_equal(done.c[4:, :4], right[4:, :4])
    assert np.isnan(done.c[:4]).all() and np.isnan(done.c[:, 4:]).all()


def test_touches_have_one_row_a_load_and_one_column_a_lane():
    done = trace.replay(1, 16, 8, 5, {"TS": 8})
    touched = done.touches("A", group=0, warp=1)
    assert touched.shape == (5, 32)
    rows, ks = touched % 16, touched // 16
    assert np.array_equal(ks, np.repeat(np.arange(5)[:, None], 32, axis=1))
    assert np.array_equal(rows[0], np.tile(np.arange(8), 4))
    assert done.touches("A", warp=0, width=4).shape == (5, 4)


@pytest.mark.parametrize(
    ("indices", "size", "count"),
    [
        (range(32), 32, 4),
        (range(32), 128, 1),
        (range(1, 33), 32, 5),
        (range(1, 33), 128, 2),
        ([7] * 32, 32, 1),
        (range(0, 64, 2), 32, 8),
        (range(0, 32 * 100, 100), 32, 32),
        ([], 32, 0),
        (np.arange(8, dtype=np.int32), 32, 1),
    ],
)
def test_segments(indices, size, count):
    assert trace.segments(indices, size) == count


def test_a_touch_outside_an_array_is_an_error(monkeypatch):
    def shifted(w, M, N, K, TS):
        m, n = w.group[0] * TS + w.local[0], w.group[1] * TS + w.local[1]
        w.store("C", n * M + m + 1, w.load("A", m))
        yield from ()

    monkeypatch.setitem(trace._REPLAYS, 1, (shifted, {}))
    with pytest.raises(IndexError, match=r"work-item \(1, 1\) of group \(0, 0\) touches C\[4\], which is outside"):
        trace.replay(1, 2, 2, 2, {"TS": 2})


@pytest.mark.parametrize(
    ("arguments", "options", "said"),
    [
        ((2, 6, 4, 4, {"TS": 4}), {}, "m=6 is not a positive multiple of 4"),
        ((2, 4, 0, 4, {"TS": 4}), {}, "n=0 is not a positive multiple of 4"),
        ((2, 4, 4, 4, {"TS": 4}), {"order": "sideways"}, "'forward', 'backward' or 'shuffled', not 'sideways'"),
        ((99, 4, 4, 4), {}, "kernel must be one of 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, not 99"),
        ((3, 4, 4, 4, {"TS": 4}), {}, "TS=4 is not a multiple of WPT=8"),
    ],
)
def test_a_replay_refuses_what_it_cannot_do(arguments, options, said):
    with pytest.raises(ValueError) as error:
        trace.replay(*arguments, **options)
    assert said in str(error.value)


# Model


def test_arithmetic_on_paper():
    assert model.flops(3, 5, 7) == 210
    assert model.gflops(1000, 1000, 1000, 2.0) == pytest.approx(1.0)
    assert model.least_bytes(2, 3, 4) == 4 * (8 + 12 + 6)
    assert model.intensity(100, 50) == 2
    assert model.loads(1) == {"global": 2, "local": 0}
    assert model.loads(2, {"TS": 16}) == {"global": 1 / 8, "local": 2}
    assert model.loads(3, {"TS": 32, "WPT": 8}) == {"global": 1 / 16, "local": 1.125}


def test_the_roofline_bends_at_its_ridge():
    peaks = model.Peaks(gflops=100, bandwidth=20)
    assert model.ridge(peaks) == 5
    assert model.roofline(peaks, 1) == 20 and model.roofline(peaks, 5) == 100 and model.roofline(peaks, 50) == 100


# The order of the modules

ORDER = (
    *(
        "sources",
        "spec",
        "catalog",
        "model",
        "check",
        "trace",
        "device",
        "doctor",
        "auto",
        "launch",
        "pipeline",
        "blas",
    ),
    *("record", "bench", "plot", "worker", "live", "widgets", "cli"),
)
PACKAGE = Path(gemmlab.__file__).parent
#: Each module's file(s) by the module's place in the list.
MODULES = {path: path.relative_to(PACKAGE).parts[0].removesuffix(".py") for path in sorted(PACKAGE.rglob("*.py"))}
MODULES = {path: name for path, name in MODULES.items() if name not in ("__init__", "__main__")}


def imported(path: Path, lazily=True) -> set[str]:
    """The names of gemmlab's modules that a file imports, anywhere in it (or, not lazily, at its top level)."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    depth = len(path.relative_to(PACKAGE).parts)  # how many dots lead to the package
    found: set[str] = set()
    for node in ast.walk(tree) if lazily else tree.body:
        if isinstance(node, ast.Import):
            names = [alias.name.split(".") for alias in node.names]
            found |= {(parts + ["__init__"])[1] for parts in names if parts[0] == "gemmlab"}
        elif isinstance(node, ast.ImportFrom):
            module = (node.module or "").split(".") if node.module else []
            if node.level == depth or (node.level == 0 and module[:1] == ["gemmlab"]):
                module = module if node.level else module[1:]
                found |= {module[0]} if module else {a.name for a in node.names if a.name != "__version__"}
            elif node.level:
                found.add(path.relative_to(PACKAGE).parts[0])  # from within a folder such as widgets
    return found


def test_every_module_has_its_place():
    assert set(MODULES.values()) == set(ORDER)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_module_imports_only_from_those_above(path):
    own = ORDER.index(MODULES[path])
    above = set(ORDER[: own + (MODULES[path] == "widgets")])
    assert imported(path) <= above
    assert MODULES[path] == "widgets" or "widgets" not in imported(path)


def test_the_package_itself_imports_eagerly_only_the_catalog():
    assert imported(PACKAGE / "__init__.py", lazily=False) == {"catalog"}


def test_the_reader_of_imports_sees_them(tmp_path, monkeypatch):
    """The tests above would pass on a reader that sees nothing."""
    monkeypatch.setattr(sys.modules[__name__], "PACKAGE", tmp_path)
    text = "from . import model, __version__\nfrom .plot import x\nimport gemmlab.live\n"
    text += "def f():\n    from gemmlab.cli import main"
    (tmp_path / "a.py").write_text(text)
    assert imported(tmp_path / "a.py") == {"model", "plot", "live", "cli"}
    assert imported(tmp_path / "a.py", lazily=False) == {"model", "plot", "live"}
    (tmp_path / "widgets").mkdir()
    (tmp_path / "widgets" / "b.py").write_text("from .shell import x\nfrom .. import live\nfrom ..plot import y")
    assert imported(tmp_path / "widgets" / "b.py") == {"widgets", "live", "plot"}


def test_no_module_is_long(capsys):
    """About 250 lines are the limit that the design sets; 300 fail."""
    counts = {str(path.relative_to(PACKAGE)): len(path.read_text().splitlines()) for path in PACKAGE.rglob("*.py")}
    with capsys.disabled():
        longest = ", ".join(f"{name} {count}" for name, count in sorted(counts.items(), key=lambda c: -c[1]))
        print(f"\n{sum(counts.values()):,} lines: {longest}")
    assert not {name: count for name, count in counts.items() if count > 300}

"""Products on processors, with packed operands: exact for every shape and layout, and how settings are remembered."""

import itertools
import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyopencl as cl
import pyopencl.array as cla
import pytest
from configurations import FRAME_BYTES, on_device
from conftest import DEVICES, lacking
from gemmlab.blas.passes import Matrix, Session
from gemmlab.family.in_place import InPlace
from gemmlab.family.packed import Packed, candidates

import gemmlab
from gemmlab import check, gemm, matmul
from gemmlab.blas import host, packed, passes, probe, products
from gemmlab.blas.problem import Layout, Operand, Problem
from gemmlab.caches import Notes

SIZES = (1, 5, 6, 7, 15, 16, 17, 33, 100)
DTYPES = (np.float32, np.float64)


@pytest.fixture
def processor(device):
    if device.kind != "CPU":
        lacking("no processor among the OpenCL devices" if not _processors() else f"{device} is no processor")
    return device


def _processors():
    return [d for d in DEVICES.values() if d.kind == "CPU"]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A cache folder that belongs to the test, and nothing settled. A probe tries each candidate once."""
    monkeypatch.setattr(probe, "_TURNS_SECONDS", 0)
    monkeypatch.setattr(probe, "notes", Notes(str(tmp_path / "cache" / "processors.json")))
    monkeypatch.setattr(probe, "_settled", {})
    monkeypatch.setattr(probe, "_unsettled", {})
    return tmp_path / "cache"


def views(x: np.ndarray):
    """The same matrix in every layout: by rows, by columns, part of a larger one both ways, backwards, spread."""
    rows, cols = x.shape
    around = np.full((rows + 3, 2 * cols + 5), np.nan, x.dtype)
    inner = around[2:-1, 3 : cols + 3]
    across = np.full((2 * cols + 5, rows + 3), np.nan, x.dtype).T[2:-1, 3 : cols + 3]
    for made in (inner, across):
        made[:] = x
    yield from (np.ascontiguousarray(x), np.asfortranarray(x), inner, across)
    yield np.ascontiguousarray(x[::-1, ::-1])[::-1, ::-1]
    spread = np.full((2 * rows, 3 * cols), np.nan, x.dtype)
    spread[::2, ::3] = x
    yield spread[::2, ::3]


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_size_and_layout_is_exact(dtype, processor):
    wrong = []
    for count, (m, n) in enumerate(itertools.product(SIZES, repeat=2)):
        k = SIZES[(5 * count) % len(SIZES)] + 300 * (count % 4 == 3)  # now and then more than one block
        a, b = check.exact_inputs(m, n, k, seed=count, dtype=dtype)
        a, b = list(views(a))[count % 6], list(views(b))[count // 6 % 6]
        verdict = check.exact(matmul(a, b, kernel="packed", device=processor), a, b)
        if not verdict.ok:
            wrong.append(f"{m} x {n} x {k}: {verdict}")
    assert not wrong


@pytest.mark.parametrize("on_host", (True, False), ids=("NumPy", "device arrays"))
def test_alpha_beta_and_transposition(on_host, processor):
    m, n, k = 35, 50, 400
    a, b = check.exact_inputs(m, n, k)
    before = check.exact_inputs(m, 1, n)[0]
    for ta, tb, beta, order in itertools.product("NT", "NT", (0, -3), "CF"):
        given = [np.array(x, order=order) for x in (a.T if ta == "T" else a, b.T if tb == "T" else b, before)]
        kept = given[2].copy()
        if not on_host:
            given = [cla.to_device(processor.queue, x) for x in given]
        options = {"device": processor} if on_host else {}
        got = gemm(2, *given[:2], beta, given[2] if beta else None, ta, tb, kernel="packed", **options)
        c = given[2] if on_host else given[2].get()
        assert np.array_equal(got if on_host else got.get(), 2 * (a @ b) + beta * before), (ta, tb, beta, order)
        assert np.array_equal(c, kept)
        if order == "C" and beta:
            again = gemm(2, *given[:2], beta, given[2], ta, tb, True, kernel="packed", **options)
            assert again is given[2]
            assert np.array_equal(again if on_host else again.get(), 2 * (a @ b) + beta * before)


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_matrix_times_a_few_vectors_is_exact_and_lies_as_it_likes(dtype, processor):
    for m, n, k in (600, 1, 3), (777, 1, 301), (2050, 1, 64), (5, 1, 20_003), (601, 3, 517), (9, 16, 530):
        a, x = check.exact_inputs(m, n, k, dtype=dtype)
        for matrix, vector in itertools.product(list(views(a))[:5], list(views(x))[:5]):
            assert np.array_equal(matmul(matrix, vector, device=processor), a @ x), (m, n, k)
            assert np.array_equal(gemm(2, vector, matrix, trans_a="T", trans_b="T", device=processor), 2 * (a @ x).T)


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_narrow_result_is_exact_however_its_operands_lie(dtype, processor):
    """Fewer rows or columns than a vector has elements, with short and long sums, for one work-item and for several."""
    for turn, (narrow, k) in enumerate(itertools.product((2, 3, 5, 6, 7, 9, 11, 13, 15), (1, 8, 33, 700))):
        wide = (1, 4, 61, 1300)[turn % 4]
        a, b = check.exact_inputs(wide, narrow, k, seed=turn, dtype=dtype)
        a, b = list(views(a))[turn % 5], list(views(b))[turn // 5 % 5]
        for x, y in ((a, b), (b.T, a.T)):
            assert np.array_equal(gemm(-3, x, y, device=processor), -3 * (x @ y)), (wide, narrow, k)


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_long_sum_is_added_up_in_parts(dtype, processor, monkeypatch):
    """Blocks that are moved back add nothing twice, within a work-item and at its edge."""
    monkeypatch.setattr(packed, "_SECOND_CACHE", 1)
    width, precision = probe.vector_of(processor, "s" if dtype is np.float32 else "d"), "sd"[dtype is np.float64]
    for m, n, k in (67, 2 * width + 1, 1033), (18, 8 * width - 1, 513), (130, 5 * width + 3, 1500):
        a, b = check.exact_inputs(m, n, k, dtype=dtype)
        (_, of_b), (_, of_a) = host._operand(processor, "b", np.ascontiguousarray(b)), host._operand(processor, "a", a)
        assert packed.suited(processor, precision, Problem(n, m, k, of_b, of_a)).adds
        for x in list(views(a))[:4]:
            for y in list(views(b))[::2][:2]:
                assert np.array_equal(gemm(-3, x, y, device=processor), -3 * (a @ b)), (m, n, k)


@pytest.mark.parametrize("dtype", DTYPES)
def test_rows_of_a_few_steps_times_a_vector(dtype, processor):
    """By a text for each number of steps, where nothing lies between the rows; and wherever they lie."""
    precision = {np.float32: "s", np.float64: "d"}[dtype]
    for k in range(1, 11):
        a, b = map(np.ascontiguousarray, check.exact_inputs(1003, 1, k, dtype=dtype))
        (_, of_b), (_, of_a) = host._operand(processor, "b", b), host._operand(processor, "a", a)
        found = packed.suited_to_few(processor, precision, Problem(1, 1003, k, of_b, of_a))
        steps = found[0].steps if found else 0
        assert steps == (k if 1 < k <= packed._SHORT_ROWS else 0)
        larger = np.zeros((1009, k + 3), dtype)
        larger[4:1007, 2 : 2 + k] = a
        for x in (a, larger[4:1007, 2 : 2 + k], np.asfortranarray(a)):
            for y in (b, np.repeat(b, 2, axis=1)[:, :1]):
                assert np.array_equal(matmul(x, y, device=processor), a @ b), k
                assert np.array_equal(matmul(y.T, x.T, device=processor), (a @ b).T), k


@pytest.mark.parametrize("dtype", DTYPES)
def test_adjacent_steps_of_both_operands_are_multiplied_as_dot_products(dtype, processor, monkeypatch):
    """Wherever the operands lie, and if the last vector has been multiplied in part already."""
    monkeypatch.setattr(packed, "_LONG_DOTS", 1)
    precision = {np.float32: "s", np.float64: "d"}[dtype]
    products._kept.cache_clear()
    for m, n, k in (4, 4, 16), (1, 9, 33), (9, 1, 129), (5, 7, 1), (7, 3, 31), (33, 6, 40), (21, 2, 500), (70, 90, 130):
        a, b = check.exact_inputs(m, n, k, dtype=dtype)
        a, turned = np.ascontiguousarray(a), np.ascontiguousarray(b.T)
        (_, of_b), (_, of_a) = host._operand(processor, "b", turned.T), host._operand(processor, "a", a)
        assert packed.suited_to_dots(processor, precision, Problem(n, m, k, of_b, of_a)) or k < min(m, n) // 2
        larger = np.full((m + 5, k + 7), np.nan, dtype)
        larger[3 : 3 + m, 2 : 2 + k] = a
        for x in (a, larger[3 : 3 + m, 2 : 2 + k]):
            assert np.array_equal(gemm(-3, x, turned.T, device=processor), -3 * (a @ b)), (m, n, k)
            assert np.array_equal(matmul(x, turned.T, device=processor), a @ b), (m, n, k)
    products._kept.cache_clear()


def test_infinities_are_added_up_once(processor):
    """An element that two vectors of a dot product cover is blanked out of the second one: 0 times it would be NaN."""
    for k in (129, 143, 160):
        a, b = np.ones((6, k), np.float32), np.ones((5, k), np.float32)
        a[1, k - 3], a[2, k - 20], b[4, k - 15] = np.inf, np.inf, -np.inf
        with np.errstate(invalid="ignore"):
            assert np.array_equal(matmul(a, b.T, device=processor), a @ b.T, equal_nan=True)


def framed_product(device, m, n, k, dtype, multiply):
    """C of column-major operands by `multiply(session, problem, buffers, out)`: NaN before, between two patterns."""
    a, b = check.exact_inputs(m, n, k, dtype=dtype)
    frame = FRAME_BYTES // np.dtype(dtype).itemsize
    memory = np.full(m * n + 2 * frame, 7, dtype)
    memory[frame:-frame] = np.nan
    framed = on_device(device, memory)
    out = framed.get_sub_region(FRAME_BYTES, m * n * dtype().itemsize)
    buffers = [on_device(device, np.ravel(x, order="F")) for x in (a, b)]
    with Session(device.queue, device, dtype=dtype) as session:
        multiply(session, Problem.compact(m, n, k), buffers, Matrix(out, Layout.compact(m, n)))
    passes.cl.enqueue_copy(device.queue, memory, framed)
    assert (memory[:frame] == 7).all() and (memory[-frame:] == 7).all(), (m, n, k)
    return np.array_equal(memory[frame:-frame].reshape(n, m).T, a @ b)


@pytest.mark.parametrize("precision", "sd")
def test_every_candidate_writes_all_of_c_and_nothing_else(precision, processor, monkeypatch):
    """Sums over k are cut into blocks and into parts."""
    monkeypatch.setattr(packed, "_PANELS", 20_000)
    dtype = {"s": np.float32, "d": np.float64}[precision]
    for c in candidates(precision, probe.vector_of(processor, precision), processor.limits):

        def multiply(session, problem, buffers, out, c=c):
            packed.run(session, replace(c, depth=32), problem, buffers, 1.0, 0.0, None, out)

        assert framed_product(processor, 45, 39, 100, dtype, multiply), c.name


@pytest.mark.parametrize(
    ("m", "n", "k"),
    [
        (45, 39, 100),
        (11, 2, 3),
        (3, 19, 700),
        (70, 1, 600),
        (1203, 1, 310),
        (1203, 1, 3),
        (1, 1203, 3),
        (1, 47, 8005),
        (700, 5, 605),
        (5, 31, 40),
        (7, 40, 900),
        (131, 45, 1100),
        (333, 37, 21),
        (1023, 101, 2),
        (17, 300, 64),
        (70000, 5, 1),
    ],
)
def test_one_launch_writes_all_of_c_and_nothing_else(m, n, k, processor):
    def multiply(session, problem, buffers, out):
        packed.gemm(session, problem, buffers, 1.0, 0.0, None, out)
        assert len(session.events) == 1

    assert framed_product(processor, m, n, k, np.float32, multiply)


def test_work_items_share_what_there_is():
    c = InPlace()
    for m, n, k in ((1, 1, 1), (64, 2048, 64), (512, 512, 512), (5000, 7, 30), (17, 3, 10_000)):
        rows, columns = packed.parts(c, m, n, k, units=2)
        assert rows % c.rows == columns % c.columns == 0
        items = -(-m // rows) * -(-n // columns)
        assert items == 1 if m * n * k < packed._WORTH else items <= 16


def test_a_kernel_that_is_wrong_on_purpose_is_noticed(processor, monkeypatch):
    a, b = check.exact_inputs(20, 20, 20)
    right = packed.write_in_place
    monkeypatch.setattr(packed, "write_in_place", lambda c: right(c).replace("N - NR)", "N - NR - 1)"))
    unwritten = np.full((20, 20), np.nan, np.float32)  # new memory could hold an earlier product's right numbers
    assert not check.exact(matmul(a, b, kernel="packed", device=processor, out=unwritten), a, b).ok


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_repeated_product_of_numpy_arrays_works_nothing_out(dtype, processor, monkeypatch):
    cases = [[x.copy() for x in check.exact_inputs(*sizes, dtype=dtype)] for sizes in ((30, 40, 20), (1, 50, 30))]
    for a, b in cases:
        matmul(a, b, device=processor)
    monkeypatch.setattr(products, "_product", lambda *_, **__: pytest.fail("it was worked out again"))
    for a, b in cases:
        assert check.exact(matmul(a, b, device=processor), a, b).ok
        assert check.exact(matmul(3 * a, b.copy(), device=processor), 3 * a, b).ok


def test_a_long_sum_is_cut_so_that_its_panels_stay_small(processor, monkeypatch):
    c = Packed(depth=256)
    assert packed.steps_at_once(c, (1024, 1024), 1000) == 1000
    assert packed.steps_at_once(c, (16 * 2**16, 6), 1000) == 256  # one block at least
    for k in (4000, 100_000):
        steps = packed.steps_at_once(c, (2048, 2046), k)
        assert steps % 256 == 0 and steps * 4094 * 4 <= packed._PANELS
    monkeypatch.setattr(packed, "_PANELS", 1)
    a, b = check.exact_inputs(160, 170, 1500)
    assert check.exact(matmul(a, b, kernel="packed", device=processor), a, b).ok


def test_what_packing_cannot_do_is_refused_in_words(processor):
    x = np.ones((20, 20), np.float32)
    for options, words in (
        ({"params": {"TS": 4}}, "params"),
        ({"edges": "pad"}, "pad"),
        ({"precision": "tf32"}, "tf32"),
    ):
        with pytest.raises(ValueError, match=words):
            matmul(x, x, kernel="packed", device=processor, **options)
    with pytest.raises(ValueError, match="complex64"):
        matmul(x.astype(np.complex64), x.astype(np.complex64), kernel="packed", device=processor)
    with pytest.raises(ValueError, match="is none"):
        packed.takes("packed", None, "auto", "float32", x.dtype, replace(processor, kind="GPU"))
    with pytest.raises(MemoryError):
        matmul(x, x, kernel="packed", device=replace(processor, memory=100))


def test_auto_packs_real_matrices_on_processors(processor):
    def taken(dtype, on=processor):
        return packed.takes("auto", None, "auto", "float32", np.dtype(dtype), on)

    assert taken("f4") and not taken("c8") and not taken("f4", on=replace(processor, kind="GPU"))


@pytest.mark.parametrize("sizes", [(4, 5, 6), (400, 500, 600), (1, 2000, 2000), (300, 300, 300)])
def test_auto_says_what_matmul_does(sizes, processor, monkeypatch):
    """Two launches where the operands are packed first, one where they are read as they lie."""
    (m, n, k), names, launch = sizes, [], Session.launch
    monkeypatch.setattr(Session, "launch", lambda self, name, bound: (names.append(name), launch(self, name, bound)))
    monkeypatch.setattr(probe, "_seconds", lambda device, c, run: 1.0)
    products._kept.cache_clear()
    gemmlab.matmul(np.ones((m, k), np.float32), np.ones((k, n), np.float32), device=processor)
    told = gemmlab.auto(m, n, k, processor)
    assert told.kernel == "packed" and f"{m} x {n} x {k}: " in str(told)
    assert names == (["pack", "gemm"] if "panels" in told.why else ["gemm"])


def test_nothing_to_multiply(processor):
    x, y = np.ones((20, 0), np.float32), np.ones((0, 30), np.float32)
    assert not matmul(x, y, kernel="packed", device=processor).any()
    c = np.full((20, 30), 2, np.float32)
    assert np.array_equal(gemm(1, x, y, 3, c, kernel="packed", device=processor), 3 * c)
    nan = np.full((20, 20), np.nan, np.float32)
    assert np.array_equal(gemm(0, nan, nan, 3, c[:, :20], kernel="packed", device=processor), 3 * c[:, :20])


def test_a_result_is_not_written_over_an_operand_that_is_still_read(processor):
    a, b = check.exact_inputs(40, 40, 40)
    a = np.ascontiguousarray(a)
    expected = a @ b + a
    got = gemm(1, a, b, 1, a, overwrite_c=True, kernel="packed", device=processor)
    assert np.array_equal(got, expected)


def test_operands_that_are_read_only_and_results_that_have_to_be_mapped(processor, monkeypatch):
    a, b = check.exact_inputs(33, 20, 40)
    for x in (a, b):
        x.flags.writeable = False
    for _ in "as it is", "mapped":
        assert check.exact(matmul(a, b, kernel="packed", device=processor), a, b).ok
        monkeypatch.setattr(host, "_shares_memory", lambda device: False)
        monkeypatch.setattr(host, "_writes_in_place", lambda device: False)


# The probe


def test_the_fastest_candidate_is_remembered_on_disk_and_forgotten_on_request(processor, folder, monkeypatch, capsys):
    asked = []

    def seconds(device, c, run):
        asked.append(c)
        return 1.0 - 0.1 * len(asked)

    monkeypatch.setattr(probe, "_seconds", seconds)
    small, large = (20, 20, 20), (400, 400, 400)
    tried = candidates("s", probe.vector_of(processor, "s"), processor.limits)
    assert probe.settled(processor, "s", small, None) == tried[0] and not asked  # not worth a probe
    assert probe.settled(processor, "s", large, None) == tried[-1] and asked == tried
    assert len(capsys.readouterr().err.splitlines()) == 1
    assert list(json.loads(probe.notes.file.read_text()).values()) == [tried[-1].name]
    assert [f.name for f in folder.iterdir()] == ["processors.json"]
    for sizes in (small, large):  # remembered: in this session, and in the next one
        assert probe.settled(processor, "s", sizes, None) == tried[-1]
        probe._settled.clear()
    assert asked == tried
    gemmlab.clear_caches()
    assert not probe.notes.file.exists() and probe.settled(processor, "s", small, None) == tried[0]


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "\xff", "entry"])
def test_a_broken_file_is_ignored(text, processor, folder, monkeypatch):
    monkeypatch.setattr(probe, "_seconds", lambda device, c, run: 1.0)
    folder.mkdir()
    text = json.dumps({probe._place(processor, "s"): "sgemm of another kind"}) if text == "entry" else text
    probe.notes.file.write_bytes(text.encode("latin-1"))
    found = probe.settled(processor, "s", (400, 400, 400), None)
    assert json.loads(probe.notes.file.read_text())[probe._place(processor, "s")] == found.name


def test_without_a_folder_to_write_to_it_still_works(processor, tmp_path, monkeypatch):
    monkeypatch.setattr(probe, "_seconds", lambda device, c, run: 1.0)
    (tmp_path / "blocked").write_text("no folder")
    monkeypatch.setattr(probe, "notes", Notes(str(tmp_path / "blocked" / "processors.json")))
    assert isinstance(probe.settled(processor, "s", (400, 400, 400), None), Packed)
    gemmlab.clear_caches()


def test_candidates_that_fail_are_passed_over(processor, monkeypatch):
    tried = candidates("s", probe.vector_of(processor, "s"), processor.limits)

    def seconds(device, c, run):
        if c != tried[1]:
            raise probe.BuildError("a kernel", "registers run out", "")
        return 1.0

    monkeypatch.setattr(probe, "_seconds", seconds)
    assert probe.settled(processor, "s", (400, 400, 400), None) == tried[1]


def test_a_real_probe(processor, monkeypatch):
    timed, seconds = [], probe._seconds
    monkeypatch.setattr(probe, "_TURNS_SECONDS", 0.1)
    monkeypatch.setattr(probe, "_seconds", lambda *args: timed.append(seconds(*args)) or timed[-1])
    a, b = check.exact_inputs(257, 300, 700)
    assert check.exact(matmul(a, b, device=processor), a, b).ok
    assert timed and all(0 < found < 60 for found in timed)
    assert probe.notes.file.exists()


@pytest.mark.parametrize("precision", "sd")
@pytest.mark.parametrize("m, n, k", [(4, 700, 330), (64, 64, 1500), (38, 22, 3000), (83, 296, 1300), (24, 512, 600)])
def test_operands_that_are_read_again_are_read_right(m, n, k, precision, processor):
    """Sums over k that are too long for a copied panel, and too few columns for packing to pay."""
    dtype = {"s": np.float32, "d": np.float64}[precision]
    a, b = (np.ascontiguousarray(x) for x in check.exact_inputs(m, n, k, dtype=dtype))
    (_, of_b), (_, of_a) = host._operand(processor, "b", b), host._operand(processor, "a", a)
    problem = Problem(n, m, k, of_b, of_a)
    assert packed.suited_to_few(processor, precision, problem) is None
    assert not packed.suited(processor, precision, problem).copies
    for _ in range(2):
        assert check.exact(matmul(a, b, device=processor), a, b).ok


@pytest.mark.parametrize("precision", "sd")
@pytest.mark.parametrize("k", (1, 2, 3, 5, 7, 8, 15, 17, 33))
def test_vectors_that_are_shorter_than_those_of_the_processor(k, precision, processor):
    """Sums of a few steps of k, whose vectors have no more elements: whole ones and what is left over."""
    dtype = {"s": np.float32, "d": np.float64}[precision]
    for m, n in ((601, 1), (1, 601)):
        for order in "CF":
            a, b = (x.copy(order) for x in check.exact_inputs(m, n, k, dtype=dtype))
            assert check.exact(matmul(a, b, device=processor), a, b).ok


def test_only_small_products_are_left_to_the_thread_that_calls(processor):
    alone = processor.in_caller or processor
    assert host._suited(processor, 64, 64, 64, 4) is host._suited(processor, 1, 1000, 3, 8) is alone
    for large in ((512, 512, 512), (2000, 2000, 1)):
        assert host._suited(processor, *large, 4) is processor or processor.units == 1


def test_threads_multiply_small_arrays_at_the_same_time(processor):
    pairs = [[x.copy() for x in check.exact_inputs(20 + i, 30, 17)] for i in range(3)]

    def exact(turn: int) -> bool:
        a, b = pairs[turn % 3]
        return check.exact(matmul(a, b, device=processor), a, b).ok

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(exact, range(300), timeout=120))


def test_small_and_large_products_and_device_arrays_at_the_same_time(processor):
    """They run on different queues, or different devices, and share memory of the host and kernels' arguments."""
    small, large = check.exact_inputs(21, 30, 17), check.exact_inputs(300, 301, 302)
    queue = cl.CommandQueue(processor.context)
    on_device = [cla.to_device(queue, x) for x in small]

    def exact(turn: int) -> bool:
        if turn % 3 == 2:
            return check.exact(matmul(*on_device).get(), *small).ok
        a, b = (small, large)[turn % 3]
        out = np.empty((len(a), b.shape[1]), np.float32) if turn % 2 else None
        found = matmul(a, b, out=out, device=processor)
        return (out is None or found is out) and check.exact(found, a, b).ok

    with ThreadPoolExecutor(3) as pool:
        assert all(pool.map(exact, range(60), timeout=120))


def test_two_thousand_small_products_leave_nothing_behind(processor):
    """What is made for a call goes with it: 64 bytes kept of each call would be found."""
    if not sys.platform.startswith("linux"):
        lacking("the size of a process, which this test asks Linux for")
    a, b = (np.ones((8, 8), np.float32) for _ in "ab")

    def grown(calls: int) -> int:
        before = resident()
        for _ in range(calls):
            matmul(a, b, device=processor)
        return resident() - before

    grown(2000)  # what is kept once
    assert min(grown(2000) for _ in range(3)) < 2000 * 64


def resident() -> int:
    """Bytes of memory that this process holds."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def test_the_result_of_a_repeated_product_is_an_array_of_its_own(processor):
    a, b = check.exact_inputs(12, 9, 7)
    results = [matmul(factor * a, b, device=processor) for factor in (1, 2, 4)]
    for result, factor in zip(results, (1, 2, 4), strict=True):
        assert check.exact(result, factor * a, b).ok and result.flags.owndata


def test_read_only_operands_after_others_of_the_same_form(processor):
    a, b = check.exact_inputs(12, 9, 7)
    for writeable in (True, True, False, False, True):
        a.flags.writeable = b.flags.writeable = writeable
        assert check.exact(matmul(a, b, device=processor), a, b).ok


def test_operands_of_the_same_shape_that_lie_in_other_ways(processor):
    """By rows, by columns, with gaps, and of a single row or column, whose strides may be anything."""
    wide, other = check.exact_inputs(24, 24, 24)
    gaps = np.repeat(np.repeat(wide, 2, 0), 2, 1)
    squares = wide, wide.T, gaps[::2, ::2], wide[::-1], gaps[::2, ::2].T
    rows = wide[:1], gaps[:1, ::2], gaps[::2, ::2][3:4], np.lib.stride_tricks.as_strided(wide, (1, 24), (0, 4))
    columns = wide[:, :1].copy(), wide[:, 5:6], gaps[::2, 2:3], wide[:1].T
    for _ in range(2):
        for x in (*squares, *rows):
            assert check.exact(matmul(x, other, device=processor), x, other).ok
        for y in (*squares, *columns):
            assert check.exact(matmul(other, y, device=processor), other, y).ok


def test_views_are_read_where_they_are(processor):
    x = np.arange(200, dtype=np.float32).reshape(10, 20)[2:7, 3:9]
    buffer, operand = host._operand(processor, "x", x)
    assert operand == Operand("x", Layout.compact(6, 5, 20), None)
    assert buffer.size == 4 * (4 * 20 + 6)

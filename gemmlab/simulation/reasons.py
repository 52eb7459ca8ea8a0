"""Why a product is wrong although no single step of the kernel is: a wrong index, a wrong layout, a
sum that lacks products.

Each question has an experiment of its own. Is C what comes out if a matrix is taken row by row?
Which products along K does C sum (weights that are solved for)? Does a work-item use other rows of
A, or columns of B, than those of its elements of C? For that the kernel runs once more on matrices
whose entries are all different, and these are followed through local memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import combinations
from typing import Any

import numpy as np

from clscope import Entry, Finding, tree
from clscope.finding import Site, found_at
from clscope.lint import roundings
from clscope.machine import Machine

from .run import ProductRun

#: Multiply-adds of the largest product that is searched for a reason.
MOST = 1 << 23
#: The fraction of each element whose way is followed: few products and sums have the same.
CODED = 0.375
LAYOUTS = {"A": "A(m, k) is element k*M + m", "B": "B(k, n) is element n*K + k",
           "C": "C(m, n) is element n*M + m"}  # fmt: skip


def reasons(
    run: ProductRun, functions: list[tree.Function],
    again: Callable[[np.ndarray, np.ndarray], Machine]
) -> list[Finding]:  # fmt: skip
    """Why the product is wrong, as far as can be seen; `again` runs the kernel on other inputs."""
    ratios, cuts = ([f for f in run.notes if f.kind == kind] for kind in ("ratio", "cut"))
    if not np.isfinite(run.c).all():
        return ratios
    if run.m * run.n * run.k > MOST:
        return cuts
    return (
        _row_by_row(run)
        or _wrong_index(run, again)
        or cuts
        or _weights(run)
        or list(roundings(functions))[:1]
        or _part(run)
    )


def _line(run: ProductRun, kind: str, *names: str) -> Site | None:
    sites = (e.site for e in run.log if e.memory is not None and e.memory.name in names)
    return next((site for site in sites if site.kind == kind), None)


def _finding(site: Site | None, message: str) -> Finding:
    if site is None:
        return Finding("wrong product", message)
    return found_at(site, "wrong product", f"{site.text}: {message}" if site.text else message, ())


def _part(run: ProductRun) -> list[Finding]:
    """That only some rows or columns of C are wrong."""
    wrong = run.c != run.expected
    for axis, name in ((1, "row"), (0, "column")):
        bad = wrong.any(axis)
        if not bad.all():
            text = f"of C only {_listed(np.flatnonzero(bad).tolist(), name)} "
            text += "is wrong" if bad.sum() == 1 else "are wrong"
            return [_finding(_line(run, "store", run.names["C"]), text)]
    return []


def _row_by_row(run: ProductRun) -> list[Finding]:
    """Matrices that are taken to lie row by row."""
    given = {"A": run.a, "B": run.b, "C": run.c}
    # what a matrix is to somebody who takes its columns, one after the other, for rows
    turned = {name: x.T.reshape(x.shape) for name, x in given.items()}
    names = "AC" if run.transposed else "ABC"
    for count in range(1, len(names) + 1):
        for which in combinations(names, count):
            a, b, c = ((turned if name in which else given)[name] for name in "ABC")
            if np.array_equal(a.astype(np.float64) @ b, c):
                does = {"A": "load", "B": "load", "C": "store"}
                return [
                    _finding(
                        _line(run, does[name], run.names[name]),
                        f"this {does[name]}s {name} as row-major, but it is column-major: "
                        f"{LAYOUTS[name]}",
                    )
                    for name in which
                ]
    return []


# ---- which products are summed
def _weights(run: ProductRun) -> list[Finding]:
    """C as a sum of the products along K, each with a weight, and of a number."""
    k = run.k
    for distance in range(
        4
    ):  # A(m, i) may also be multiplied by a B(j, n) at this distance |i - j|
        pairs = [(i, j) for i in range(k) for j in range(k) if abs(i - j) in (0, distance)]
        solution = _solved(run, pairs)
        if solution is not None:
            break
    else:
        return []
    if distance:
        crossed = [p for p, w in zip(pairs, solution, strict=False) if w and p[0] != p[1]]
        text = ", ".join(f"A(m, {i}) * B({j}, n)" for i, j in crossed[:2])
        others = " ..." if len(crossed) > 2 else ""
        adds = (e.site for e in reversed(run.log) if e.site.kind == "multiply-add")
        return [_finding(next(adds, _last_load(run)), f"C sums products such as {text}{others}")]
    weights, more = solution[:-1], float(solution[-1])
    missing = [i for i in range(k) if weights[i] == 0]
    divided = [note for note in run.notes if note.kind == "whole division"]
    if missing:
        columns = _columns_read(run)
        unread = [i for i in missing if i not in columns]
        if unread and columns:
            text = f"nobody loads {_listed(unread, 'column')} of A, but C sums products with k = 0"
            return [_finding(_line(run, "load", run.names["A"]), f"{text} to {k - 1}")]
        left = [i for i in range(k) if weights[i]]
        if not left:
            store = _line(run, "store", run.names["C"])
            return [*divided, _finding(store, "no product of A and B reaches C")]
        text = f"C sums only the products with {_listed(left, 'k =')}"
        text += f", not k = 0 to {k - 1}; the rest is overwritten or never added"
        return [_finding(_last_load(run), text)]
    if len(set(weights)) > 1:
        twice = [i for i in range(k) if weights[i] != 1]
        text = f"the products with {_listed(twice, 'k =')} are summed {weights[twice[0]]:g} times"
        return [*divided, _finding(_last_load(run), text)]
    scale = f"{weights[0]:g} times the product" if weights[0] != 1 else "the product"
    sign = f" {'plus' if more > 0 else 'minus'} {abs(more):g}" if more else ""
    store = _line(run, "store", run.names["C"])
    return divided or [_finding(store, f"each element of C is {scale}{sign}")]


def _solved(run: ProductRun, pairs: list[tuple[int, int]]) -> np.ndarray | None:
    """C as a sum of columns of A times rows of B, by their numbers: the weight of each pair, and
    the number that is added. None if C is no such sum, or too small to tell.
    """
    wanted = 4 * (len(pairs) + 1)
    if run.c.size < wanted // 2:
        return None
    some = np.random.default_rng(0).permutation(run.c.size)[:wanted]
    row, column = np.unravel_index(some, run.c.shape)
    c = run.c[row, column].astype(np.float64)
    terms = np.ones((len(pairs) + 1, len(some)))
    for term, (i, j) in zip(terms, pairs, strict=False):
        term[:] = run.a[row, i] * run.b[j, column]
    found = np.linalg.lstsq(terms @ terms.T, terms @ c, rcond=None)[0].round(4)
    if np.abs(found @ terms - c).max() > 0.01:
        return None
    weights = np.zeros((run.k, run.k))
    weights[tuple(np.transpose(pairs))] = found[:-1]
    whole = run.a @ (weights @ run.b) + found[-1]
    return found if np.abs(whole - run.c).max() < 0.01 else None


def _last_load(run: ProductRun) -> Site | None:
    """The last load of a tile, or of A and B; where nothing is loaded, the first store to C."""
    names = {run.names["A"], run.names["B"]}
    loads = [e for e in reversed(run.log) if e.memory is not None and e.site.kind == "load"]
    shared = [e for e in loads if e.memory and e.memory.space == "local"]
    mine = shared or [e for e in loads if e.memory and e.memory.name in names]
    return mine[0].site if mine else _line(run, "store", run.names["C"])


def _columns_read(run: ProductRun) -> set[int]:
    mine = [e for e in run.log if e.memory is not None and e.memory.name == run.names["A"]]
    return {int(i) for e in mine for i in np.unique(e.numbers() // run.lda)}


def _listed(numbers: Iterable[int], what: str) -> str:
    """k = 0 to 3, 8"""
    parts: list[list[int]] = []
    for i in numbers:
        if parts and i == parts[-1][-1] + 1:
            parts[-1].append(i)
        else:
            parts.append([i])
    shown = [f"{p[0]} to {p[-1]}" if len(p) > 2 else ", ".join(map(str, p)) for p in parts[:4]]
    text = ", ".join(shown) + (" ..." if len(parts) > 4 else "")
    if what == "k =":
        return f"k = {text}"
    return f"{what}{'s' * (len(parts) > 1 or len(parts[0]) > 1)} {text}"


# ---- which rows and columns are used
def _wrong_index(run: ProductRun, again: Callable[..., Any]) -> list[Finding]:
    """A work-item that uses a row of A, or a column of B, of no element of C that it stores."""
    (m, k), n = run.a.shape, run.n
    if run.a.dtype.itemsize < 4 or m * k + k * n > 2**20:
        return []
    codes = (np.arange(m * k + k * n) + CODED).astype(run.a.dtype)
    a, b = codes[: m * k].reshape(k, m).T, codes[m * k :].reshape(n, k).T
    machine = again(a, b.astype(run.b.dtype))
    log = [e for e in machine.log if e.memory is not None and e.site.scalar.size == a.itemsize]
    items = int(np.prod(machine.num_groups)) * machine.work_items
    own = {"A": np.zeros((items, m), bool), "B": np.zeros((items, n), bool)}
    for e in log:
        if e.site.kind == "store" and e.memory.name == run.names["C"]:
            at, who = e.numbers(), e.of(e.wave.number)[:, None]
            own["A"][who, at % m] = True
            own["B"][who, at // m] = True
    shared = any(e.memory.space == "local" for e in log)
    each = machine.work_items
    groups = {k: np.repeat(x.reshape(-1, each, x.shape[1]).any(1), each, 0) for k, x in own.items()}
    used = {"A": np.zeros((items, k), bool), "B": np.zeros((items, k), bool)}
    loaded = {"A": np.zeros((items // each, k), bool), "B": np.zeros((items // each, k), bool)}
    last: dict[str, Entry] = {}
    loads: dict[str, Entry] = {}
    for e, values in _followed(log, {run.names["A"], run.names["B"]}):
        in_group = shared and e.memory.space == "global"  # type: ignore[union-attr]
        found = _foreign(e, values, groups if in_group else own, (m, k, n), machine, in_group)
        if found:
            return [found]
        who, (of_a, of_b), code = e.of(e.wave.number)[:, None], *_decoded(values, (m, k, n))
        for name, mine, step in (("A", of_a, code // m), ("B", of_b, (code - m * k) % k)):
            if mine.any():
                who_mine, steps = np.broadcast_to(who, code.shape)[mine], step[mine]
                if in_group:
                    loaded[name][who_mine // each, steps] = True
                    loads[name] = e
                else:
                    used[name][who_mine, steps] = True
                    last[name] = e
    return _unpaired(used, last, loaded, loads, machine)


def _unpaired(
    used: dict[str, np.ndarray], last: dict[str, Entry], loaded: dict[str, np.ndarray],
    loads: dict[str, Entry], machine: Machine
) -> list[Finding]:  # fmt: skip
    """A work-item that uses other columns of A than rows of B; if its group has `loaded` others,
    the load is wrong, and not the read.
    """
    bad = (used["A"] != used["B"]).any(1) & used["A"].any(1) & used["B"].any(1)
    if not bad.any():
        return []
    item = int(np.argmax(bad))
    columns, rows = (np.flatnonzero(used[name][item]).tolist() for name in "AB")
    fewer = "A" if len(columns) < len(rows) else "B"
    group = item // machine.work_items
    filled = fewer in loads and (loaded["A"][group] != loaded["B"][group]).any()
    site = (loads if filled else last)[fewer].site
    text = f"{machine.item(item)} multiplies {_listed(columns, 'column')} of A by "
    return [_finding(site, f"{text}{_listed(rows, 'row')} of B")]


def _followed(log: list[Entry], names: set[str]) -> Iterator[tuple[Entry, np.ndarray]]:
    """Each load of A, of B, or of what has been copied from them, and the values that it gets."""
    held: dict[int, np.ndarray] = {}
    for e in log:
        memory = e.memory
        assert memory is not None
        at = e.numbers()
        if memory.space == "global" and memory.name in names:
            yield e, memory.view(e.site.scalar)[at]
        elif memory.space == "local":
            size = memory.size_bytes * memory.copies // e.site.scalar.size
            now = held.setdefault(id(memory), np.zeros(size))
            if e.site.kind == "store":
                now[at] = e.of(np.asarray(e.value, np.float64)).T.reshape(len(at), -1)
            else:
                yield e, now[at]


def _decoded(
    values: np.ndarray, sizes: tuple[int, int, int]
) -> tuple[tuple[np.ndarray, np.ndarray], np.ndarray]:
    """Which values are elements of A, which of B, and their numbers: those of B come after A's."""
    m, k, n = sizes
    whole = np.floor(values)
    code = np.where(values - whole == CODED, whole, -1).astype(np.int64)
    return ((code >= 0) & (code < m * k), (code >= m * k) & (code < m * k + k * n)), code


def _foreign(
    e: Entry, values: np.ndarray, own: dict[str, np.ndarray], sizes: tuple[int, int, int],
    machine: Machine, in_group: bool
) -> Finding | None:  # fmt: skip
    m, k, n = sizes
    who = e.of(e.wave.number)[:, None]
    (of_a, of_b), code = _decoded(values, sizes)
    row, column = np.where(of_a, code % m, 0), np.where(of_b, (code - m * k) // k, 0)
    bad_a, bad_b = of_a & ~own["A"][who, row], of_b & ~own["B"][who, column]
    bad = (bad_a | bad_b) & own["A"][who].any(-1)
    if not bad.any():
        return None
    lane, at = np.argwhere(bad)[0]
    item, number = int(who[lane, 0]), int(code[lane, at])
    if bad_a[lane, at]:
        what, of, mine = f"A({number % m}, {number // m})", "row", own["A"][item]
    else:
        number -= m * k
        what, of, mine = f"B({number % k}, {number // k})", "column", own["B"][item]
    stores = f"{'its group' if in_group else 'it'} stores only"
    own_ones = _listed(np.flatnonzero(mine).tolist(), of)
    text = f"{e.site.text}: {machine.item(item)} reads {what}, but {stores} {own_ones} of C"
    return found_at(e.site, "wrong product", text, (machine.item(item),), int(bad.any(1).sum()))

"""What a product's kernel did, and whether its result is right."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from clscope import Finding, Run
from clscope.finding import distinct
from clscope.machine import Machine
from clscope.memory import Memory
from clscope.translate import Program
from clscope.watch import two_writers

from ..ladder import KernelSpec, Key


class ProductRun(Run):
    """What a kernel of the ladder did with A (m x k) and B (k x n).

    Attributes (beside those of `Run`):
        kernel, params, m, n, k: what ran.
        a, b: the inputs; c: the result, m x n, NaN where nothing was stored; expected: A B, NaN in
            rows and columns where nothing was stored.
        exact: whether c is expected, bit for bit (of the groups that ran).
        transposed: whether the kernel reads B as its transpose.
        b_shape: rows and columns of B as it lies in memory, column-major.
        pieces: what the text calls the memory for parts of tiles, "" if it has no use for any.
        tile: rows and columns of a tile of C.
    """

    kernel: Key
    params: dict[str, int]
    m: int
    n: int
    k: int
    a: np.ndarray
    b: np.ndarray
    c: np.ndarray
    expected: np.ndarray
    exact: bool
    transposed: bool
    b_shape: tuple[int, int]
    pieces: str
    names: dict[str, str]
    lda: int
    tile: tuple[int, int]

    def __init__(
        self, machine: Machine, args: Sequence[object], spec: KernelSpec, params: dict[str, int],
        a: np.ndarray, b: np.ndarray, every: bool
    ):  # fmt: skip
        super().__init__(machine, args)
        memory = args[5]
        assert isinstance(memory, Memory)
        self.kernel, self.params, self.a, self.b = spec.number, params, a, b
        (self.m, self.k), self.n = a.shape, b.shape[1]
        self.transposed = spec.wants_transposed(params)
        self.b_shape = (self.n, self.k) if self.transposed else (self.k, self.n)
        names = [one.name for one in args if isinstance(one, Memory)]
        self.pieces = names[3] if spec.workspace(params) else ""
        self.names = dict(zip("ABC", names, strict=False))
        self.lda = spec.leading_dimensions(self.m, self.n, self.k, params)[0]
        self.tile = spec.tiles(params)[:2]
        self.c = self.arrays[memory.name].reshape(self.n, self.m).T
        stored = memory.known(memory.scalar.size)[: self.m * self.n].reshape(self.n, self.m).T
        part = np.ix_(stored.any(1), stored.any(0))
        self.expected = np.full((self.m, self.n), np.nan, self.c.dtype)
        self.expected[part] = a[part[0][:, 0]].astype(float) @ b[:, part[1][0]].astype(float)
        self._wrong = (self.c != self.expected) & (stored | every)
        self.exact = not self._wrong.any()
        if self.unfinished:
            return
        if every and not self.exact:
            self.findings = distinct([*self.findings, *two_writers(self.log, memory)])
        if every and not self.stop and not stored.all():
            self.findings.append(self._never_stored(machine.program, memory, stored))
        if not self.exact:
            self.findings = [*(n for n in self.notes if n.kind == "slip"), *self.findings]
        if not self.ok:
            self.findings = [*redefined(machine.program, params), *self.findings]

    def _never_stored(self, program: Program, memory: Memory, stored: np.ndarray) -> Finding:
        column, row = np.argwhere(~stored.T)[0]
        many = int((~stored).sum())
        more = f" and {many - 1:,} more elements are" if many > 1 else " is"
        message = f"{memory.name}({row}, {column}){more} never stored"
        site = next((e.site for e in self.log if e.memory is memory and e.site.stores), None)
        if site is None:
            sites = (s for s in program.sites if s.kind == "store")
            site = next((s for s in sites if s.text.startswith(f"{memory.name}[")), None)
            message += ": no work-item comes here" if site else ""
        where = (site.line, site.column) if site else (0, 0)
        return Finding("never written", message, *where, count=many)

    @property
    def ok(self) -> bool:
        """Whether the product is exact and nothing was found."""
        return self.exact and super().ok

    @property
    def verdict(self) -> str:
        if self.stop:
            return f"stopped: {self.stop}"
        if self.unfinished and not self.findings:
            return super().verdict
        if any(f.kind == "inaccurate" for f in self.findings):
            return f"wrong: {super().verdict}"
        if (self.exact or self.unfinished) and self.findings:
            return f"wrong, but right here by luck: {super().verdict}"
        if self.exact:
            return f"right: every element exact, and {self.nothing}"
        column, row = np.argwhere(self._wrong.T)[0]
        many, at = f"{int(self._wrong.sum()):,} of {self.c.size:,}", f"C({row}, {column})"
        got, want = self.c[row, column], self.a[row].astype(float) @ self.b[:, column]
        text = f"wrong: {many} elements; the first is {at} = {got:g} instead of {want:g}"
        return f"{text}; {super().verdict}" if self.findings else text


def redefined(program: Program, params: Mapping[str, int]) -> Iterator[Finding]:
    """Parameters that the text sets itself: a reason for much that is wrong."""
    for name, value in params.items():
        macro = program.macros.get(name)
        text = "".join(t.text for t in macro.body) if macro else ""
        if macro and macro.line and text != str(value):
            message = f"the text sets {name} to {text} itself, but is launched for {name}={value}"
            yield Finding("redefined", message, macro.line, 1)

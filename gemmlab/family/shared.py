"""What kernels with local memory and kernels without it share: where the matrices begin, alpha, beta, and the store
of an element."""

from __future__ import annotations

from .configuration import Configuration
from .text import Lines, writes


@writes
def beginnings(c: Configuration) -> Lines:
    """Where the matrices begin; of a batch, those that the third dimension of the launch says. C has no gaps."""
    if not c.batch:
        return ["A += offset_a;", "B += offset_b;"]
    return [
        "const long pair = get_group_id(2);  // which pair of matrices of this launch",
        "A += offset_a + pair*step_a;",
        "B += offset_b + pair*step_b;",
        "C += (first + pair)*M*N;",
    ]


@writes
def factors(c: Configuration) -> Lines:
    """Complex factors, which came as two numbers each."""
    return [
        f"const {c.type()} {name} = ({c.type()})({name}_re, {name}_im);"
        for name in ("alpha", "beta")[: 1 + c.beta]
        if c.parts == 2
    ]


@writes
def stored(c: Configuration, total: str, m: str, n: str, conditions: Lines) -> Lines:
    """C(m, n) = alpha total + beta C0(m, n), if the conditions hold.

    Args:
        total: the sum of the products, as C, like the following ones.
        m, n: its row and its column, in brackets where they are sums.
        conditions: what must hold.
    """
    place = f"C[{'offset_out + ' * c.part}{n}*{'ldc' if c.part else 'M'} + {m.strip('()')}]"
    before = f"C0[offset_c + {m}*down + {n}*across]"
    if c.parts == 1:
        lines = [f"{place} = alpha*{total}" + f" + beta*{before}" * c.beta + ";"]
    elif c.beta:
        lines = [f"const {c.type()} before = {before};", f"{place} = product(alpha, {total}) + product(beta, before);"]
    else:
        lines = [f"{place} = product(alpha, {total});"]
    return [f"if ({' && '.join(conditions)}) {{", *(f"    {line}" for line in lines), "}"] if conditions else lines


@writes
def stored_together(c: Configuration, m: str, n: str, conditions: Lines) -> Lines:
    """C(m, n) and its neighbours in the rows below, of which each is alpha times its sum, in one store.

    Args:
        m, n, conditions: as in `stored`.
    """
    sums, vector = (f"acc[j][i + {down}]" if down else "acc[j][i]" for down in range(c.stored)), c.type(c.stored)
    if c.parts == 2:
        values = f"({vector})({', '.join(f'product(alpha, {total})' for total in sums)})"
    else:
        values = f"alpha*({vector})({', '.join(sums)})"
    line = f"*(__global {vector}*)&C[{n}*M + {m}] = {values};"
    return [f"if ({' && '.join(conditions)}) {{", f"    {line}", "}"] if conditions else [line]

"""Notebooks on a machine without an OpenCL device: a cell that needs one says what works instead,
and the cells after it run.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ..opencl.devices import WITHOUT_DEVICE, NoDeviceError, devices

SENTENCE = f"Left out: {WITHOUT_DEVICE}."


def install(shell: Any) -> None:
    """Let cells of this IPython go on after what needs a device, if there is none."""
    there = any(isinstance(one, LeaveOut) for one in shell.ast_transformers)
    if not there and not devices():
        shell.ast_transformers.append(LeaveOut(shell.user_ns))


class LeaveOut(ast.NodeTransformer):
    """Lets each statement of a cell end quietly if it needs a device.

    What it would have assigned is missing then; a later statement that needs a missing name ends
    quietly, too.
    """

    NAME = "_gemmlab_leave_out"

    def __init__(self, names: dict[str, Any]):
        self.missing: set[str] = set()
        self.has_explained: bool = False
        names[self.NAME] = self

    def visit_Module(self, cell: ast.Module) -> ast.Module:
        self.has_explained = False
        cell.body = [self._guarded(statement) for statement in cell.body]
        return ast.fix_missing_locations(cell)

    def _guarded(self, statement: ast.stmt) -> ast.stmt:
        inner = [*ast.walk(statement)]
        if any(isinstance(node, ast.Await | ast.NamedExpr) for node in inner):
            return statement
        here = ast.Name(self.NAME, ast.Load())
        if isinstance(statement, ast.Expr):  # IPython shows the value of a cell's last expression
            nothing = ast.arguments([], [], None, [], [], None, [])
            function = ast.Attribute(here, "value", ast.Load())
            call = ast.Call(function, [ast.Lambda(nothing, statement.value)], [])
            return ast.copy_location(ast.Expr(call), statement)
        names = [n.id for n in inner if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
        guard = ast.Attribute(here, "if_no_device", ast.Load())
        call = ast.Call(guard, [ast.List([*map(ast.Constant, names)], ast.Load())], [])
        return ast.copy_location(ast.With([ast.withitem(call)], [statement]), statement)

    def value(self, expression: Callable[[], Any]) -> Any:
        """The value of an expression; None if it needs a device."""
        with self.if_no_device([]):
            return expression()
        return None

    @contextmanager
    def if_no_device(self, assigned: list[str]) -> Iterator[None]:
        try:
            yield
        except (NoDeviceError, NameError) as error:
            if isinstance(error, NameError) and error.name not in self.missing:
                raise
            self.missing.update(assigned)
            if not self.has_explained:
                print(SENTENCE)
            self.has_explained = True
        else:
            self.missing.difference_update(assigned)

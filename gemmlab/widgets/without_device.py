"""Notebooks where there is no OpenCL device, or, in a browser's Python, a package is missing: a
cell that needs it says so, and the cells after it run.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ..opencl.devices import WITHOUT_DEVICE, NoDeviceError, devices

SENTENCE = f"Left out: {WITHOUT_DEVICE}."
#: Where some packages do not exist: Python of a browser is one process, without threads.
IN_TAB = sys.platform == "emscripten"


def install(shell: Any) -> None:
    """Let cells of this IPython go on after what cannot run here."""
    there = any(isinstance(one, LeaveOut) for one in shell.ast_transformers)
    if not there and (IN_TAB or not devices()):
        shell.ast_transformers.append(LeaveOut(shell.user_ns))


class LeaveOut(ast.NodeTransformer):
    """Lets each statement of a cell end quietly if it needs what there is not.

    What it would have assigned is missing then; a later statement that needs a missing name ends
    quietly, too.
    """

    NAME = "_gemmlab_leave_out"

    def __init__(self, names: dict[str, Any]):
        self.missing: set[str] = set()
        self.has_explained: bool = False
        self._why = SENTENCE  # something was left out
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
        names += [(n.asname or n.name).split(".")[0] for n in inner if isinstance(n, ast.alias)]
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
        except (NoDeviceError, NameError, ImportError) as error:
            match error:
                case NoDeviceError():
                    self._why = SENTENCE
                case ImportError() if IN_TAB:
                    name = error.name or "package for it"
                    self._why = f"Left out: Python in a browser has no {name}. Elsewhere it runs."
                case NameError() if error.name in self.missing:
                    pass
                case _:
                    raise
            self.missing.update(assigned)
            if not self.has_explained:
                print(self._why)
            self.has_explained = True
        else:
            self.missing.difference_update(assigned)

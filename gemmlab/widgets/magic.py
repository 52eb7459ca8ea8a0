"""`%%gemm`: a cell of OpenCL C that is compiled, checked and timed in a separate process whenever it is run."""

from __future__ import annotations

from typing import Any

from IPython.core.magic import Magics, line_cell_magic, magics_class

from ..catalog import find, sources
from .explorer import Explorer


@magics_class
class GemmMagics(Magics):
    """`%gemm 3` writes kernel 3 into a new cell; `%%gemm 3 TS=32 WPT=8` runs the cell as kernel 3."""

    @line_cell_magic
    def gemm(self, line: str, cell: str | None = None):
        """Show an explorer for the kernel in this cell.

        %%gemm NUMBER [NAME=VALUE ...]   NAME: a parameter of the kernel, M, N, K, or device
        %gemm NUMBER                     writes such a cell with the kernel's own text
        """
        shell: Any = self.shell
        try:
            number, settings, device = _parse(line)
            if cell is None:
                text = sources.read(find(number).file)
                shell.set_next_input(f"%%gemm {line.strip()}\n{text}")
                return None
            sizes = {name.lower(): settings.pop(name) for name in "MNK" if name in settings}
            shell.user_ns["gemm_source"] = cell
            source = f"\n{cell}"  # the blank line makes line 2 of the cell line 2 for the compiler
            return Explorer(number, **sizes, params=settings or None, device=device, source=source)
        except (ValueError, TypeError, RuntimeError) as error:
            print(f"%gemm: {error}")  # a typing error in the first line deserves a sentence and not a traceback
            return None


def _parse(line: str) -> tuple[int, dict[str, int], str | None]:
    words = line.split()
    if not words or not words[0].isdigit():
        raise ValueError("begin with the number of a kernel, as in `%%gemm 3 TS=32 WPT=8`")
    settings, device = {}, None
    for word in words[1:]:
        name, equals, value = word.partition("=")
        if name == "device" and equals:
            device = value
        elif equals and value.isdigit():
            settings[name] = int(value)
        else:
            raise ValueError(f"{word!r} is not of the form NAME=NUMBER")
    return int(words[0]), settings, device

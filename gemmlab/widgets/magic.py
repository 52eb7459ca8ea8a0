"""`%%gemm`: a cell of OpenCL C, compiled, checked and timed in a separate process."""

from __future__ import annotations

import shlex
from typing import Any

from IPython.core.magic import Magics, line_cell_magic, magics_class

from ..ladder import Key, find, key, sources
from .cells import Cell, running_cell
from .explorer import Explorer
from .lesson import prefer_cuda

LANGUAGES = {"cuda": "CUDA C++", "opencl": "OpenCL C"}


@magics_class
class GemmMagics(Magics):
    """`%gemm 3` writes kernel 3 into a new cell; `%%gemm 3 TS=32` runs a cell as kernel 3."""

    @line_cell_magic
    def gemm(self, line: str, cell: str | None = None) -> Explorer | None:
        """Show an explorer for the kernel in this cell.

        %%gemm NUMBER [NAME=VALUE ...]   NAME: a parameter of the kernel, M, N, K, or device, which
                                         is "browser" for the GPU of the reader's browser
        %%gemm NUMBER part=WORD ...      the cell is only the part of the kernel below the comment
                                         that begins with WORD (or part="load: the next")
        %%gemm NUMBER part=ONE-TWO ...   the same, from the part ONE to the part TWO
        %gemm NUMBER                     writes such a cell with the kernel's own text
        %gemm cuda                       from now on `Difference` compares kernels as CUDA C++
        %gemm opencl                     from now on it compares them as OpenCL C again
        """
        shell: Any = self.shell
        try:
            if cell is None and line.strip() in LANGUAGES:
                prefer_cuda(line.strip() == "cuda")
                print(f"From now on, differences between kernels are in {LANGUAGES[line.strip()]}.")
                return None
            number, settings, words = _parse(line)
            if cell is None:
                text = sources.read(find(number).file)
                shell.set_next_input(f"%%gemm {line.strip()}\n{text}")
                return None
            named = frozenset(settings)
            sizes = {name.lower(): settings.pop(name) for name in "MNK" if name in settings}
            text, code, part = sources.read(find(number).file), cell.rstrip("\n"), ""
            source, original, lines = cell, text.rstrip("\n"), None
            if "part" in words:
                part = words["part"]
                original = sources.part(text, part)
                source = text.replace(original, code)
                first = text[: text.index(original)].count("\n") + 1
                lines = range(first, first + code.count("\n") + 1)
            shell.user_ns["gemm_source"] = source
            if not lines:
                source = f"\n{source}"  # makes line 2 of a cell line 2 for the compiler
            edited = Cell(running_cell(), code, source, original, part, lines, named)
            params, device = settings or None, words.get("device")
            return Explorer(number, **sizes, params=params, device=device, source=edited)
        except (ValueError, TypeError, RuntimeError, OSError) as error:
            # a typing error in the first line deserves a sentence and not a traceback
            print(f"%gemm: {error}")
            return None


def _parse(line: str) -> tuple[Key, dict[str, int], dict[str, str]]:
    """The kernel, numbers by name, and the words of part and device; a comment ends the line."""
    words = shlex.split(line, comments=True)
    if not words or "=" in words[0]:
        raise ValueError("begin with the number of a kernel, as in `%%gemm 3 TS=32 WPT=8`")
    settings, named = {}, {}
    for word in words[1:]:
        name, equals, value = word.partition("=")
        if name in settings or name in named:
            raise ValueError(f"{name} is given twice")
        if name in ("device", "part") and equals:
            named[name] = value
        elif equals and value.isdigit():
            settings[name] = int(value)
        else:
            raise ValueError(f"{word!r} is not of the form NAME=NUMBER")
    return key(words[0]), settings, named

"""Completion inside `%%gemm`: settings in its first line, names of OpenCL C and kernels below."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from IPython.core.completer import (
    CompletionContext,
    SimpleCompletion,
    SimpleMatcherResult,
    context_matcher,
)

from clscope import builtins

from ..ladder import find, key, sources

KEYWORDS = (
    *("__kernel", "__global", "__local", "__constant", "__private", "const", "void", "return"),
    *("float", "float2", "float4", "float8", "float16", "double", "uint", "size_t", "while"),
    *("break", "continue", "CLK_LOCAL_MEM_FENCE", "CLK_GLOBAL_MEM_FENCE"),
)


def install(shell: Any) -> None:
    """Let an IPython complete these cells."""
    matchers = shell.Completer.custom_matchers
    if complete not in matchers:
        matchers.append(complete)


@context_matcher()
def complete(context: CompletionContext) -> SimpleMatcherResult:
    """Return what can follow the cursor; nothing in other cells."""
    first, _, code = context.full_text.partition("\n")
    if not first.startswith("%%gemm"):
        return SimpleMatcherResult(completions=[])
    names = _settings(first) if context.cursor_line == 0 else _names(first, code)
    begun = context.token
    fitting = sorted({name for name in names if name.startswith(begun) and name != begun})
    completions = [SimpleCompletion(text=name) for name in fitting]
    return SimpleMatcherResult(completions=completions, suppress=True)


def _settings(line: str) -> list[str]:
    """Return what the first line can name."""
    words = line.split()
    text = _kernel(words)
    if text is None:
        return []
    if line.rstrip().endswith("part=") or re.search(r"part=\w*$", line):
        return re.findall(r"(?m)^\s+// (\w+)", text)
    params = [param.name for param in find(key(words[1])).params]
    taken = {word.partition("=")[0] for word in words}
    return [f"{name}=" for name in (*params, *"MNK", "device", "part") if name not in taken]


def _names(line: str, code: str) -> Iterable[str]:
    """Return the names that the code of a cell can use."""
    text = f"{code}\n{_kernel(line.split()) or ''}"
    own = re.findall(r"[A-Za-z_]\w{2,}", re.sub(r"//.*", "", text))
    return (*builtins.FUNCTIONS, *KEYWORDS, *own)


def _kernel(words: list[str]) -> str | None:
    """Return the text of the kernel that a first line names."""
    try:
        return sources.read(find(key(words[1])).file)
    except (IndexError, ValueError):
        return None

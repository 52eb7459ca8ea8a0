"""What a page has to launch for a product with a kernel: shader, sizes, work-groups.

    gemmlab.webgpu.job(6, 512, 512, 512, {...})    # what runner.js needs to run and check it

In JupyterLab, ``gemmlab.Explorer(6, 512, device="browser")`` runs such a product.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from clscope.wgsl import STYLES, Shader, Style, translate

from .ladder import find
from .ladder.spec import Limits

#: What every GPU offers to pages in a browser.
LEAST = Limits("a browser", 256, (256, 256), 16384, 4, asynchronous=False, warpgroups=False)


@dataclass(frozen=True)
class Job:
    """A product C = A B with a kernel, ready for runner.js.

    Attributes:
        kernel: its number; params: complete.
        m, n, k: the sizes; the kernel runs unpadded.
        transposed: whether B is stored as N x K.
        groups: work-groups to launch.
        step: so many steps of k say how long all will take.
        shaders: the kernel in each style that a page tries.
    """

    kernel: int
    params: dict[str, int]
    m: int
    n: int
    k: int
    transposed: bool
    groups: tuple[int, int, int]
    step: int
    shaders: dict[str, Shader]


def job(
    kernel: int,
    m: int,
    n: int,
    k: int,
    params: Mapping[str, int] | None = None,
    *,
    text: str | None = None,
    styles: Mapping[str, Style] = STYLES,
) -> Job:
    """Plan a product with a kernel of the catalog, or with an edited `text` of it.

    Raises:
        ValueError: the catalog has no such kernel.
        ParameterError: the parameters are illegal, or the kernel cannot run these sizes unpadded.
        TextError: the text is no OpenCL C, or WGSL cannot say it.
    """
    spec = find(kernel)
    full = spec.validate(params)
    spec.check_sizes(m, n, k, full)
    source = spec.text(full) if text is None else text
    shaders = {label: translate(source, "gemm", full, style) for label, style in styles.items()}
    across, down = spec.global_size(m, n, full)
    unit = spec.multiples(full)[2]
    step = min(k, unit * max(1, k // (16 * unit)))
    high, wide = next(iter(shaders.values())).size[:2]
    groups = (across // high, down // wide, 1)
    return Job(kernel, full, m, n, k, spec.wants_transposed(full), groups, step, shaders)


def limits(gpu: Mapping[str, int], name: str = "this GPU") -> Limits:
    """What a GPU allows, from the limits that its adapter reports to the page."""
    return Limits(
        name=name,
        work_group=gpu["maxComputeInvocationsPerWorkgroup"],
        per_dimension=(gpu["maxComputeWorkgroupSizeX"], gpu["maxComputeWorkgroupSizeY"]),
        local_memory=gpu["maxComputeWorkgroupStorageSize"],
        vector=4,
        asynchronous=False,
        warpgroups=False,
    )

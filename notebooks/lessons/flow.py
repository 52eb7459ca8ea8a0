"""A product as a flow of floats: from DRAM through the caches and registers to the multiply-adders.

Each pipe shows what the kernel demands per multiply-add, and how much of that the chip can deliver.
The fill is how busy the pipe is at the measured rate. The pipe with the least room glows: it is the
lowest of these ceilings.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass, replace
from html import escape

from gemmlab import model
from gemmlab.draw import pipes
from gemmlab.draw.pipes import BOXES, Flow, Pipe, short
from gemmlab.ladder import Key
from gemmlab.measurement import records, rungs

from .cycles import instructions, turns

#: Text is white on dark shapes, or in a grey for light and dark pages.
WIDTH = 880
SLATE, BLUE, TIGHT, GREY, WHITE = "#3d4a5c", "#2566a8", "#c2410c", "#808080", "#ffffff"
ROW, BOX, PIPE, EMPTY = 134, 76, 116, "#6b7686"
SECONDS = 1.6  # of the animation


@dataclass(frozen=True)
class Drawing:
    """An <svg> element, described by its `alt`.

    A notebook shows it as the source of an image: in a notebook that is not trusted yet, JupyterLab
    shows images, but no <svg> elements.
    """

    svg: str
    alt: str

    def _repr_mimebundle_(self, include=None, exclude=None):
        source = b64encode(self.svg.encode()).decode()
        html = (
            f'<img alt="{escape(self.alt)}" style="width:100%;max-width:{WIDTH}px" '
            f'src="data:image/svg+xml;base64,{source}">'
        )
        return {"text/html": html, "text/plain": f"[picture: {self.alt}]"}


def page(height: float, alt: str, *parts: str) -> Drawing:
    """A drawing that shrinks with the page."""
    svg = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        f'width="100%" style="max-width:{WIDTH}px;height:auto" role="img" '
        f'font-family="system-ui, sans-serif"><title>{escape(alt)}</title>'
        f"{''.join(parts)}</svg>"
    )
    return Drawing(svg, alt)


def box(x: float, y: float, width: float, height: float, colour: str = SLATE) -> str:
    return f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="5" fill="{colour}"/>'


def text(
    x: float, y: float, words: str, size: float, colour: str = WHITE, *, bold: bool = False,
    anchor: str = "middle",
) -> str:  # fmt: skip
    weight = ' font-weight="600"' if bold else ""
    return (
        f'<text x="{x:.0f}" y="{y}" text-anchor="{anchor}" font-size="{size}" '
        f'fill="{colour}"{weight}>{words}</text>'
    )


def of(rung: model.Explanation, title: str = "") -> Flow:
    """The flow of a kernel at 4096 that `gemmlab.model.explain` has explained."""
    return pipes.flow(rung.ceilings, rung.chip, rung.share, title or f"kernel {rung.kernel}")


def counted(*kernels: Key) -> Drawing:
    """The flows of recorded kernels, with the turns of local memory and the instructions that the
    chip itself counted.

    The simulator counts the fewest turns that vector loads can take, and no addresses.
    """
    flows = []
    for kernel in kernels:
        flow = of(rungs.rung(kernel))
        dram, l2, local, issue = flow.pipes
        local = replace(local, need=turns(kernel))
        issue = replace(issue, need=instructions(kernel))
        flows.append(replace(flow, pipes=(dram, l2, local, issue)))
    return picture(flows)


def picture(flows: Sequence[Flow]) -> Drawing:
    """Flows below each other; each pipe begins at the fill of the one above it, and moves."""
    glow = (
        '<defs><filter id="glow" x="-20%" y="-40%" width="140%" height="180%">'
        f'<feDropShadow dx="0" dy="0" stdDeviation="5" flood-color="{TIGHT}"/></filter></defs>'
    )
    rows = [
        f'<g transform="translate(0 {row * ROW})">{_row(flow, start)}</g>'
        for row, (start, flow) in enumerate(zip([None, *flows], flows, strict=False))
    ]
    return page(ROW * len(rows), " ".join(map(str, flows)), glow, *rows)


def _row(flow: Flow, start: Flow | None) -> str:
    """A heading, five boxes, and the four pipes between them."""
    reached = model.percent(flow.share)
    head = f"{flow.title}: {reached} of the peak. The tightest pipe allows {flow.allowed}."
    parts = [text(WIDTH / 2, 16, head, 15, GREY, bold=True)]
    for i, lines in enumerate(BOXES):
        x = i * (BOX + PIPE) + 10
        parts.append(box(x, 30, BOX, 84))
        for number, line in enumerate(filter(None, lines)):
            y = 76 + 16 * number - (8 if lines[1] else 0)
            parts.append(text(x + BOX / 2, y, line, 12.5, bold=not number or i == 4))
    for i, each in enumerate(flow.pipes):
        was = start.pipes[i].busy(start.share) if start else None
        parts.append(_pipe(i, each, flow.share, i == flow.tight, was))
    return "".join(parts)


def _pipe(i: int, pipe: Pipe, share: float, tight: bool, was: float | None) -> str:
    """An arrow from box i to the next, filled from below as far as it is busy."""
    x, top, bottom, point = i * (BOX + PIPE) + 10 + BOX, 36, 108, 14
    end, middle = x + PIPE, (top + bottom) / 2
    shape = f"M{x + 2} {top}H{end - point}L{end - 1} {middle}L{end - point} {bottom}H{x + 2}Z"
    busy = pipe.busy(share)
    height = bottom - top
    move = ""
    if was is not None and abs(was - busy) > 0.005:
        move = "".join(
            f'<animate attributeName="{name}" from="{old:.1f}" to="{new:.1f}" dur="{SECONDS}s" '
            'begin="0.6s" calcMode="spline" keyTimes="0;1" keySplines="0.4 0 0.2 1"/>'
            for name, old, new in (
                ("y", bottom - was * height, bottom - busy * height),
                ("height", was * height, busy * height),
            )
        )
    colour = TIGHT if tight else BLUE
    name = f"clip{i}{'t' if tight else ''}"
    glow = ' filter="url(#glow)"' if tight else ""
    centre = x + (PIPE - point) / 2 + 2
    return (
        f'<clipPath id="{name}"><path d="{shape}"/></clipPath>'
        f'<path d="{shape}" fill="{EMPTY}"{glow}/><g clip-path="url(#{name})">'
        f'<rect x="{x}" y="{bottom - busy * height:.1f}" width="{PIPE}" '
        f'height="{busy * height:.1f}" fill="{colour}">{move}</rect></g>'
        + text(centre, 58, f"{short(pipe.need)} {pipe.unit}", 14, bold=True)
        + text(centre, 78, f"room for {short(pipe.width)}", 12.5)
        + text(centre, 97, f"{100 * busy:.0f} % busy", 12.5)
    )


def merged_loads() -> dict[str, float]:
    """GFLOPS of kernel 3 on an H200 where the compiler merged loads, and where it could not."""
    rates = records.variants(record="nvidia_h200_ceilings", kernel=3, metric="GFLOPS")
    names = {
        "OpenCL without aligned(16)": "as it is",
        "OpenCL with aligned(16)": "aligned(16)",
        "CUDA": "kernel 3",
        "CUDA, loop of k not unrolled": "kernel 3, unroll 1",
    }
    return {name: rates[variant].gflops for name, variant in names.items()}

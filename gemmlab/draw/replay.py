"""A simulated product as a film: for each step of a work-group a picture of what it touches, and the same in words."""

from __future__ import annotations

from html import escape

from matplotlib.patches import Circle

from ..simt import ProductRun, views
from ..simt.watch import Entry
from .diagram import COLOURS, boxes, faint, grid, runs
from .picture import GREEN, INK, ORANGE, RED, Picture, count

#: How strongly a square is coloured: touched by the work-item, by its group in this step, shortly before.
ITEM, GROUP, EARLIER = 1.0, 0.5, 0.22
DOT = 0.24  # the radius of what marks an element, where a square has the side 1
WIDTH = 4.4  # of the picture, in inches
#: Points of a side below which lines around every square would hide its colour: then one line in so many is drawn.
SMALLEST, LINES = 2.5, 8
#: Widths in units of text (see `_layout`): of the whole picture, left of A, of the key, of what stands above an array.
ACROSS, LEFT, KEY, TITLE = 40, 2.4, 12, 11.5


class Replay:
    """What a work-group of a simulated product does, step by step.

    Attributes:
        run: the product. steps: see `simt.views.steps`. items: how many work-items the group has.

    A and B, C and the arrays in local memory stay where they are, so that only the colours change from step to step. So
    do parts of tiles in global memory: those of a work-group, its first and its last, are drawn one below the other.
    """

    def __init__(self, run: ProductRun, group: int = 0):
        self.run, self.group = run, group
        self.steps = views.steps(run, group)
        self.items = run.local_size[0] * run.local_size[1]
        self._places, self._unit = _layout(run)
        self._side = 72 * WIDTH / (ACROSS * self._unit)  # of a square, in points
        every = [e for step in self.steps for e in step.entries]
        self._owned = {item: views.places(every, "C", item, store=True) for item in range(self.items)}
        self._base()

    def _base(self) -> None:
        """Draw what stays: matrices, arrays, axes, legend."""
        unit = self._unit
        down = max(y + rows for _, y, rows, _, _ in self._places.values()) + 2.2 * unit
        self._picture = Picture(WIDTH, WIDTH * (down / unit + 2) / ACROSS, "")
        self._ax = ax = self._picture.sheet()
        ax.set(xlim=(-LEFT * unit, (ACROSS - LEFT) * unit), ylim=(-down, 2 * unit))
        self._titles = {}
        for name, (x, y, rows, cols, sides) in self._places.items():
            every = self.run.tile if name == self.run.pieces else (LINES, LINES) if self._side < SMALLEST else (1, 1)
            grid(ax, x, y, rows, cols, _colour(name), "", every=every)
            title = ax.text(x, -y + 0.5 * unit, f"{name}:", color=_colour(name), fontsize=10, fontweight="bold")
            self._titles[name] = title  # with a colon, so that no other word is like it
            if sides and name != "C":  # its rows are A's
                ax.text(x - 0.6 * unit, -y - rows / 2, sides[0], color=INK, fontsize=10, ha="right", va="center")
            if sides and (name != "B" or self.run.transposed):  # its columns are C's
                ax.text(x + cols / 2, -y - rows - 0.3 * unit, sides[1], color=INK, fontsize=10, ha="center", va="top")
        self._legend()
        self._head, self._stays = self._picture.svg().split(">", 1)
        self._marks: list = []

    def _legend(self) -> None:
        """The key, in the corner that A and B leave free."""
        unit, y = self._unit, self._places["B"][1] if self.run.transposed else 0.0
        rows: list[tuple[float, str]] = [(ITEM, "this work-item"), (GROUP, "its group, now")]
        rows += [(EARLIER, "shortly before"), (0, "its part of C")]
        for row, (strength, words) in enumerate(rows):
            at = y + 2 * unit * row
            if strength:
                boxes(self._ax, [(0, -at - unit, unit, unit)], faint(INK, strength))
            else:
                self._ax.add_patch(Circle((unit / 2, -at - unit / 2), unit / 3, facecolor=GREEN))
            self._ax.text(1.6 * unit, -at - unit / 2, words, color=INK, fontsize=9.8, va="center")

    def picture(self, number: int, item: int = 0) -> Picture:
        """Step `number`, from 1 on, with one work-item in full colour; the next call changes the same picture."""
        for mark in self._marks:
            mark.remove()
        self._marks = []
        for name, (x, y, *_) in self._places.items():
            self._titles[name].set_text(self._title(name, number))
            for strength, squares in self._coloured(name, number, item).items():
                some = [(x + col, -(y + row + high), 1, high) for col, row, high in squares]
                self._marks += boxes(self._ax, some, faint(_colour(name), strength))
        for x, y in self._own(item):
            self._marks.append(self._ax.add_artist(Circle((x + 0.5, -y - 0.5), DOT, facecolor=GREEN)))
        for x, y in self._crossed(number):
            sides = ([x, x + 1], [-y, -y - 1]), ([x, x + 1], [-y - 1, -y])
            self._marks += [line for xs, ys in sides for line in self._ax.plot(xs, ys, color=RED)]
        self._picture.alt = self.words(number, item)
        return self._picture

    def svg(self, number: int, item: int = 0) -> str:
        """The same as an <svg> element for a panel, without Matplotlib, so that a step comes soon after a key.

        Matplotlib has drawn what stays; what changes from step to step is written below that, and into the titles.
        """
        marks, inside = [], self._stays
        for name, (x, y, *_) in self._places.items():
            inside = inside.replace(f">{name}:</text>", f">{self._title(name, number)}</text>")
            for strength, squares in self._coloured(name, number, item).items():
                path = "".join(f"M{x + col:g} {y + row:g}h1v{high}h-1z" for col, row, high in squares)
                marks.append(f'<path d="{path}" fill="{_colour(name)}" fill-opacity="{strength}"/>')
        marks += [f'<circle cx="{x + 0.5:g}" cy="{y + 0.5:g}" r="{DOT}" fill="{GREEN}"/>' for x, y in self._own(item)]
        marks += [f'<path d="M{x:g} {y:g}l1 1m0-1l-1 1" stroke="{RED}" stroke-width="{1.5 / self._side:g}"/>'
                  for x, y in self._crossed(number)]  # fmt: skip
        head = self._head.replace('aria-label=""', f'aria-label="{escape(self.words(number, item))}"')
        lie = f"scale({self._side:g}) translate({LEFT * self._unit:g} {2 * self._unit:g})"  # as `_base` has it
        return f'{head}><g transform="{lie}">{"".join(marks)}</g>{inside}'

    def _coloured(self, name: str, number: int, item: int) -> dict[float, list[tuple[int, int, int]]]:
        """The squares of an array that are touched, by how strongly they are coloured: see `diagram.runs`."""
        entries = self.steps[number - 1].entries
        told = {EARLIER: views.places(self._before(number, name), name), GROUP: views.places(entries, name),
                ITEM: views.places(entries, name, item)}  # fmt: skip
        strongest = {index: strength for strength, indices in told.items() for index in indices}
        cells = {strength: [self._cell(name, i) for i, most in strongest.items() if most == strength]
                 for strength in told}  # fmt: skip
        return {strength: runs(some) for strength, some in cells.items() if some}

    def _title(self, name: str, number: int) -> str:
        """What stands above an array: its name, and whether it is read or stored."""
        entries = self.steps[number - 1].entries
        used = {e.site.stores for e in entries if e.memory is not None and e.memory.name == name}
        verbs = [verb for store, verb in ((False, "read"), (True, "stored")) if store in used]
        return f"{name}: {', '.join(verbs)}" if verbs else name

    def _own(self, item: int) -> list[tuple[float, float]]:
        """Where the elements of C are drawn that a work-item stores."""
        return [self._corner("C", index) for index in self._owned[item]]

    def _crossed(self, number: int) -> list[tuple[float, float]]:
        """Where the elements are drawn that are touched in a step and about which something was found."""
        entries = self.steps[number - 1].entries
        return [self._corner(f.array, f.element) for f in self.run.findings
                if f.array in self._places and f.element in views.places(entries, f.array)]  # fmt: skip

    def _corner(self, name: str, index: int) -> tuple[float, float]:
        """Where the upper left corner of an element is drawn, from the left and from above."""
        (x, y, *_), (col, row) = self._places[name], self._cell(name, index)
        return x + col, y + row

    def _before(self, number: int, name: str) -> list[Entry]:
        """The accesses to an array before a step, in the latest phase in which there are any."""
        found: list[Entry] = []
        phase = None
        for step in reversed(self.steps[: number - 1]):
            if found and step.phase != phase:
                break
            mine = [e for e in step.entries if e.memory is not None and e.memory.name == name]
            found, phase = found + mine, step.phase
        return found

    def _cell(self, name: str, index: int) -> tuple[int, int]:
        """Column and row of an element: matrices and parts of tiles lie column by column, local arrays row by row."""
        _, _, rows, cols, sides = self._places[name]
        if name == self.run.pieces:
            high, wide = self.run.tile
            piece, inside = divmod(index, high * wide)
            return piece // 2 * wide + inside // high, piece % 2 * high + inside % high
        return divmod(index, rows) if sides else divmod(index, cols)[::-1]

    def words(self, number: int, item: int = 0) -> str:
        """What happens in a step."""
        step = self.steps[number - 1]
        head = f"Step {number} of {len(self.steps)}, phase {step.phase}, line {step.line}"
        if not step.entries:
            return f"{head}. The kernel cannot go on: {self.run.stop.message if self.run.stop else ''}"
        mine = _sentence(f"work-item {self._who(item)}", self._of_item(step.entries, item))
        return f"{head}. {_sentence('The group', _of_group(step))}{mine}"

    def _who(self, item: int) -> str:
        return str((item % self.run.local_size[0], item // self.run.local_size[0]))

    def _of_item(self, entries: list[Entry], item: int) -> list[str]:
        """What one work-item does: which elements it touches, and how many multiply-adds it makes."""
        said = []
        for store, verb in ((False, "reads"), (True, "stores")):
            touched = {name: views.places(entries, name, item, store) for name in self._places}
            named = [self._element(name, indices) for name, indices in touched.items() if indices]
            said += [f"{verb} {_listed(named)}"] if named else []
        here = [e for e in entries if e.site.kind == "multiply-add"]
        mads = sum(e.site.width for e in here if e.wave.active(e.mask)[e.wave.items == item].any())
        return said + ([f"makes {count(mads, 'multiply-add')}"] if mads else [])

    def _element(self, name: str, indices: list[int]) -> str:
        """The first of some elements, as one writes it, and how many more there are."""
        col, row = self._cell(name, indices[0])
        first = f"{name}({row}, {col})" if name in "ABC" else f"{name}[{row}][{col}]"
        if name == self.run.pieces:
            first = f"{name}[{indices[0]}]"
        return f"{first} (and {len(indices) - 1} more)" if len(indices) > 1 else first


def _of_group(step: views.Step) -> list[str]:
    """What the work-group does, and what it costs."""
    first, counts = step.entries[0], step.counts
    if first.site.kind == "barrier":
        return ["has come to the barrier: whatever was stored before may be read behind it"]
    said = []
    for verb, moved in (("reads", counts.loads), ("stores", counts.stores)):
        if moved:
            said.append(f"{verb} {_listed([count(n, 'number') + f' of {name}' for name, n in moved.items()])}")
    if counts.transactions:
        said.append(f"moves {count(counts.transactions, 'sector')} of global memory")
    if counts.turns:
        said.append(f"takes {count(counts.turns, 'turn')} of local memory")
    if counts.multiply_adds:
        said.append(f"makes {count(counts.multiply_adds, 'multiply-add')}")
    if first.site.kind in ("branch", "loop"):
        there = first.wave.active(first.mask)
        yes = int((there & first.value).sum())
        said.append(f"comes to a condition, which holds for {yes} of {int(there.sum())} work-items")
    return said


def _listed(words: list[str]) -> str:
    """One, two and three."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def _sentence(who: str, does: list[str]) -> str:
    return f"{who[0].upper()}{who[1:]} {_listed(does)}. " if does else ""


def _layout(run: ProductRun) -> tuple[dict[str, tuple[float, float, int, int, tuple[str, str] | None]], float]:
    """Where matrices and local arrays lie (x, y, rows, columns, and what a matrix's sides are called), and the unit.

    Squares have the size 1, and words are as large as ever: a fortieth of the picture's width is the `unit` in which
    room for them is counted. As the width depends on it in turn, it is found step by step.
    """
    unit = 0.0
    for _ in range(30):  # each step halves what is missing, or does better
        found, width = _placed(run, unit)
        unit = width / ACROSS
    return found, unit


def _placed(run: ProductRun, unit: float) -> tuple[dict, float]:
    """The places for a given unit, and the width that they need."""
    rows, cols = run.b_shape
    right = max(run.k + 2 * unit, KEY * unit) + unit  # where C begins; the key is as wide as A, or wider
    if run.transposed:  # B's transpose is drawn below C
        found: dict = {"A": (0.0, 0.0, run.m, run.k, ("m", "k")), "C": (right, 0.0, run.m, run.n, ("m", "n")),
                       "B": (right, run.m + 4 * unit, rows, cols, ("n", "k"))}  # fmt: skip
    else:
        below = max(run.k, 8 * unit) + 2.4 * unit
        found = {"A": (0.0, below, run.m, run.k, ("m", "k")), "B": (right, 0.0, rows, cols, ("k", "n")),
                 "C": (right, below, run.m, run.n, ("m", "n"))}  # fmt: skip
    x, y = max(x + cols for x, _, _, cols, _ in found.values()) + 2 * unit, 0.0
    for name, (rows, cols) in run.shapes.items():
        found[name] = (x, y, rows, cols, None)
        y += rows + 2.4 * unit
    if run.pieces:
        high, wide = run.tile
        lowest = max(y + rows for _, y, rows, _, _ in found.values())
        found[run.pieces] = (0.0, lowest + 3.6 * unit, 2 * high, run.params["GROUPS"] * wide, None)
    end = max(x + cols for x, _, _, cols, _ in found.values()) + unit
    return found, LEFT * unit + (max(end, x + TITLE * unit) if run.shapes else end)


def _colour(name: str) -> str:
    """A text of the reader's own may name its arrays otherwise."""
    return COLOURS.get(name, ORANGE)

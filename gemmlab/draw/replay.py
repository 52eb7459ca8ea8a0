"""A simulated product step by step: what a work-group touches, as a picture and in words."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.patches import Circle, Rectangle

from clscope import views
from clscope.wave import Entry

from ..simulation import ProductRun
from .diagram import COLOURS, Area, areas, boxes, grid, runs
from .picture import BLUE, GREEN, INK, ORANGE, RED, Picture, count, faint

#: Opacity of a square: touched by the work-item, by its group in this step, shortly before.
ITEM, GROUP, EARLIER = 1.0, 0.5, 0.22
#: Radius of the mark on an element of C, where a square has side 1.
DOT = 0.24
#: Width of the picture in inches.
WIDTH = 4.4
#: Squares smaller than this many points get only every eighth grid line, which else hides colours.
SMALLEST, LINES = 2.5, 8
#: Widths in text units, 1/40 of the picture: all, left of A, the key, titles of local arrays.
ACROSS, LEFT, KEY, TITLE = 40, 2.4, 12, 11.5

#: What the rows and the columns of a matrix are called.
SIDES = {"A": ("m", "k"), "B": ("k", "n"), "C": ("m", "n")}

Squares = tuple[int, int, int]  # column, first row, how many: see `diagram.runs`


class Replay:
    """What a work-group of a simulated product does, step by step.

    Attributes:
        run: the product.
        steps: see `clscope.views.steps`.
        items: work-items of the group.

    Arrays keep their positions from step to step; only colours and titles change. Of the parts of
    tiles in global memory, a work-group's first is drawn above its last.
    """

    def __init__(self, run: ProductRun, group: int = 0):
        self.run, self.group = run, group
        self.steps = views.steps(run, group)
        self.items = run.local_size[0] * run.local_size[1]
        self._areas, self._unit = _layout(run)
        self._side = 72 * WIDTH / (ACROSS * self._unit)  # of a square, in points
        entries = [e for step in self.steps for e in step.entries]
        self._stored = {item: views.places(entries, "C", item, store=True)
                        for item in range(self.items)}  # fmt: skip

    def _empty(self, titles: dict[str, str], alt: str) -> Picture:
        """A picture of what does not change: matrices, arrays, key."""
        unit = self._unit
        bottom = max(area.y + area.rows for area in self._areas.values()) + 2.2 * unit
        picture = Picture(WIDTH, WIDTH * (bottom / unit + 2) / ACROSS, alt)
        ax = picture.sheet()
        ax.set(xlim=(-LEFT * unit, (ACROSS - LEFT) * unit), ylim=(-bottom, 2 * unit))
        for name, (x, y, rows, cols) in self._areas.items():
            every = (LINES, LINES) if self._side < SMALLEST else (1, 1)
            if name == self.run.pieces:
                every = self.run.tile
            grid(ax, self._areas[name], _colour(name), "", every=every)
            ax.text(x, -y + 0.5 * unit, titles[name], color=_colour(name), fontsize=10,
                    fontweight="bold")  # fmt: skip
            if name not in SIDES:
                continue
            down, along = SIDES[name][::-1] if name == "B" and self.run.transposed else SIDES[name]
            if name != "C":  # C's rows are A's
                ax.text(x - 0.6 * unit, -y - rows / 2, down, color=INK, fontsize=10, ha="right",
                        va="center")  # fmt: skip
            if name != "B" or self.run.transposed:  # B's columns are C's
                ax.text(x + cols / 2, -y - rows - 0.3 * unit, along, color=INK, fontsize=10,
                        ha="center", va="top")  # fmt: skip
        self._draw_key(ax)
        return picture

    def _draw_key(self, ax: Axes) -> None:
        """The key, in the corner that A and B leave free."""
        unit, top = self._unit, self._areas["B"].y if self.run.transposed else 0.0
        rows = {"this work-item": ITEM, "its group, now": GROUP, "shortly before": EARLIER}
        for row, words in enumerate((*rows, "its part of C")):
            y = -top - 2 * unit * row
            if words in rows:
                for side, colour in ((0.0, BLUE), (unit / 2, ORANGE)):
                    face = faint(colour, rows[words])
                    ax.add_patch(Rectangle((side, y - unit), unit / 2, unit, facecolor=face))
            else:
                ax.add_patch(Circle((unit / 2, y - unit / 2), unit / 3, facecolor=GREEN))
            ax.text(1.6 * unit, y - unit / 2, words, color=INK, fontsize=9.8, va="center")

    def picture(self, number: int, item: int = 0) -> Picture:
        """Step `number`, counted from 1, with one work-item in full colour."""
        titles = {name: self._title(name, number) for name in self._areas}
        picture = self._empty(titles, self.words(number, item))
        (ax,) = picture.axes
        for name, (x, y, *_) in self._areas.items():
            for opacity, squares in self._touched(name, number, item).items():
                some = [(x + col, -(y + row + high), 1, high) for col, row, high in squares]
                boxes(ax, some, faint(_colour(name), opacity))
        for x, y in (self._corner("C", index) for index in self._stored[item]):
            ax.add_artist(Circle((x + 0.5, -y - 0.5), DOT, facecolor=GREEN))
        for x, y in self._faulty(number):
            for ys in ((-y, -y - 1), (-y - 1, -y)):
                ax.plot((x, x + 1), ys, color=RED)
        return picture

    def _touched(self, name: str, number: int, item: int) -> dict[float, list[Squares]]:
        """The touched squares of an array, by their opacity."""
        entries = self.steps[number - 1].entries
        strongest: dict[int, float] = {}
        for opacity, indices in (
            (EARLIER, views.places(self._before(number, name), name)),
            (GROUP, views.places(entries, name)),
            (ITEM, views.places(entries, name, item)),
        ):
            strongest |= dict.fromkeys(indices, opacity)
        cells: dict[float, list[tuple[int, int]]] = {}
        for index, opacity in strongest.items():
            cells.setdefault(opacity, []).append(self._cell(name, index))
        return {opacity: runs(squares) for opacity, squares in sorted(cells.items())}

    def _title(self, name: str, number: int) -> str:
        """The name of an array, and whether it is read or stored."""
        entries = self.steps[number - 1].entries
        stores = {e.site.stores for e in entries if e.memory is not None and e.memory.name == name}
        verbs = [verb for store, verb in ((False, "read"), (True, "stored")) if store in stores]
        return f"{name}: {', '.join(verbs)}" if verbs else name

    def _faulty(self, number: int) -> list[tuple[float, float]]:
        """Corners of the elements that are touched in a step and that a finding is about."""
        entries = self.steps[number - 1].entries
        return [self._corner(f.array, f.element) for f in self.run.findings
                if f.array in self._areas
                and f.element in views.places(entries, f.array)]  # fmt: skip

    def _corner(self, name: str, index: int) -> tuple[float, float]:
        """The upper left corner of an element, from the left and from the top."""
        col, row = self._cell(name, index)
        return self._areas[name].x + col, self._areas[name].y + row

    def _before(self, number: int, name: str) -> list[Entry]:
        """The accesses to an array before a step, in the latest phase that has any."""
        accesses: list[Entry] = []
        phase = None
        for step in reversed(self.steps[: number - 1]):
            if accesses and step.phase != phase:
                break
            accesses += [e for e in step.entries if e.memory is not None and e.memory.name == name]
            phase = step.phase
        return accesses

    def _cell(self, name: str, index: int) -> tuple[int, int]:
        """Column and row of an element; only local arrays are row-major."""
        if name == self.run.pieces:
            high, wide = self.run.tile
            piece, inside = divmod(index, high * wide)
            return piece // 2 * wide + inside // high, piece % 2 * high + inside % high
        if name in SIDES:
            return divmod(index, self._areas[name].rows)
        row, col = divmod(index, self._areas[name].cols)
        return col, row

    def words(self, number: int, item: int = 0) -> str:
        """What happens in a step."""
        step = self.steps[number - 1]
        head = f"Step {number} of {len(self.steps)}, phase {step.phase}, line {step.line}"
        if not step.entries:
            why = self.run.stop.message if self.run.stop else ""
            return f"{head}. The kernel cannot go on: {why}"
        who = (item % self.run.local_size[0], item // self.run.local_size[0])
        mine = _sentence(f"Work-item {who}", self._of_item(step.entries, item))
        return f"{head}. {_sentence('The group', _of_group(step))}{mine}"

    def _of_item(self, entries: list[Entry], item: int) -> list[str]:
        """What a work-item does: the elements it touches, its multiply-adds."""
        phrases = []
        for store, verb in ((False, "reads"), (True, "stores")):
            touched = {name: views.places(entries, name, item, store) for name in self._areas}
            named = [self._element(name, indices) for name, indices in touched.items() if indices]
            if named:
                phrases.append(f"{verb} {_listed(named)}")
        multiply_adds = sum(
            e.site.width for e in entries
            if e.site.kind == "multiply-add" and e.active[e.wave.items == item].any()
        )  # fmt: skip
        if multiply_adds:
            phrases.append(f"makes {count(multiply_adds, 'multiply-add')}")
        return phrases

    def _element(self, name: str, indices: list[int]) -> str:
        """The first of some elements in the notation of its array, and how many more there are."""
        col, row = self._cell(name, indices[0])
        if name == self.run.pieces:
            first = f"{name}[{indices[0]}]"
        else:
            first = f"{name}({row}, {col})" if name in "ABC" else f"{name}[{row}][{col}]"
        return f"{first} (and {len(indices) - 1} more)" if len(indices) > 1 else first


def _of_group(step: views.Step) -> list[str]:
    """What the work-group does, and what it costs."""
    first, counts = step.entries[0], step.counts
    if first.site.kind == "barrier":
        return ["has come to the barrier: whatever was stored before may be read behind it"]
    phrases = []
    for verb, moved in (("reads", counts.loads), ("stores", counts.stores)):
        if moved:
            numbers = [f"{count(n, 'number')} of {name}" for name, n in moved.items()]
            phrases.append(f"{verb} {_listed(numbers)}")
    if counts.transactions:
        phrases.append(f"moves {count(counts.transactions, 'sector')} of global memory")
    if counts.turns:
        phrases.append(f"takes {count(counts.turns, 'turn')} of local memory")
    if counts.multiply_adds:
        phrases.append(f"makes {count(counts.multiply_adds, 'multiply-add')}")
    if first.site.kind in ("branch", "loop"):
        active = first.active
        yes, all_of_them = int((active & first.value).sum()), int(active.sum())
        phrases.append(f"comes to a condition, which holds for {yes} of {all_of_them} work-items")
    return phrases


def _listed(words: list[str]) -> str:
    """One, two and three."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def _sentence(who: str, does: list[str]) -> str:
    return f"{who} {_listed(does)}. " if does else ""


def _layout(run: ProductRun) -> tuple[dict[str, Area], float]:
    """The areas of all arrays, and the text unit: a fortieth of the picture's width.

    Squares have side 1, and text has a fixed size, so the gaps depend on the width, and the width
    on the gaps. Each iteration at least halves the error.
    """
    unit = 0.0
    for _ in range(30):
        found, width = _areas(run, unit)
        unit = width / ACROSS
    return found, unit


def _areas(run: ProductRun, unit: float) -> tuple[dict[str, Area], float]:
    """The areas for a given unit, and the width that they need."""
    right = max(run.k + 2 * unit, KEY * unit) + unit  # the key may be wider than A
    found = areas(run, right, max(run.k, 8 * unit) + 2.4 * unit, 4 * unit)
    x, y = right + max(run.n, run.b_shape[1]) + 2 * unit, 0.0
    for name, (rows, cols) in run.shapes.items():
        found[name] = Area(x, y, rows, cols)
        y += rows + 2.4 * unit
    if run.pieces:
        high, wide = run.tile
        lowest = max(p.y + p.rows for p in found.values())
        wide *= run.params["GROUPS"]
        found[run.pieces] = Area(0.0, lowest + 3.6 * unit, 2 * high, wide)
    end = max(p.x + p.cols for p in found.values()) + unit
    if run.shapes:
        end = max(end, x + TITLE * unit)
    return found, LEFT * unit + end


def _colour(name: str) -> str:
    """A text of the reader's own may have other arrays."""
    return COLOURS.get(name, ORANGE)

"""One work-item of a replay: who it is, and the memory that it touches."""

from __future__ import annotations


class WorkItem:
    """One work-item of a replay: its identifiers, and the memory it may touch.

    Memory is written down as it is touched: (group, item, step, phase, store, array, index, width), `index`
    and `width` in floats.
    """

    def __init__(self, group, local, number, memory: dict[str, list], log: list):
        self.group, self.local = group, local
        self._number, self._memory, self._log = number, memory, log
        self._step = self.phase = 0

    def load(self, array: str, index: int) -> float:
        self._touch(array, index, 1, False)
        return self._memory[array][index]

    def store(self, array: str, index: int, value: float) -> None:
        self._touch(array, index, 1, True)
        self._memory[array][index] = value

    def load_vector(self, array: str, index: int, width: int) -> list[float]:
        """`width` neighbouring floats by one instruction."""
        self._touch(array, index, width, False)
        return self._memory[array][index : index + width]

    def store_vector(self, array: str, index: int, values: list[float]) -> None:
        self._touch(array, index, len(values), True)
        self._memory[array][index : index + len(values)] = values

    def _touch(self, array: str, index: int, width: int, store: bool) -> None:
        if not 0 <= index <= len(self._memory[array]) - width:
            raise IndexError(f"work-item {self.local} of group {self.group} touches {array}[{index}], which is outside")
        self._log.append((*self._number, self._step, self.phase, store, array, index, width))
        self._step += 1

"""What a sandbox answers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from ..measurement.comparison import Comparison
from .look import Seen


@dataclass(frozen=True)
class Outcome:
    """The answer to a request.

    Attributes:
        arguments: of the request.
        result: of the job, such as a `Result`; None if there is a problem.
        problem: a sentence; its `kind` is "hang", "crash", "stopped", or the name of an error.
        seen: what the simulator saw in a reader's source code, or why it could not run it; None if
            it saw nothing wrong.
        compared: the interval of a measured rate.
    """

    arguments: dict[str, Any]
    result: Any = None
    problem: str = ""
    kind: str = ""
    seen: Seen | None = None
    compared: Comparison | None = None

    @property
    def state(self) -> str:
        """What a panel shows: "ok"; "wrong"; "luck" if the device's result is right although the
        simulator saw a mistake; or the kind of the problem.
        """
        if self.result is None:
            return self.kind
        if not self.result.ok:
            return "wrong"
        return "luck" if self.seen and self.seen.why else "ok"

    @property
    def ok(self) -> bool:
        """Whether the result is right, and not by luck."""
        return self.state == "ok"

    @property
    def verdict(self) -> str:
        """The verdict on the result, or the problem, and what the simulator saw."""
        if self.state == "luck":
            return f"wrong, but right here by luck: {self.seen}"
        verdict = self.result.verdict if self.result else self.problem
        seen = self.seen
        if self.state == "wrong" and seen:  # what was not looked at explains nothing
            seen = replace(seen, unfinished="")
        if not seen or not str(seen) or (seen.unread and self.kind == "BuildError"):
            return verdict
        between = "\n" if "\n" in verdict else " " if verdict.endswith("?") else "; "
        return f"{verdict}{between}{seen}"

    def __str__(self) -> str:
        if self.result:
            return str(replace(self.result, verdict=self.verdict))
        return self.verdict

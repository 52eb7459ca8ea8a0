"""Names that have moved to `precision` and `schedule`, for modules that import them from here."""

from .precision import PRECISIONS, letter_of
from .schedule import UNITS

__all__ = ["PRECISIONS", "UNITS", "letter_of"]

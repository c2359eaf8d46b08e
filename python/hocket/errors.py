"""Everything that hocket raises about what a user gave it; each message is one line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hocket._core import Violation


class Error(Exception):
    """Base of all errors of this package."""


class SpecError(Error, ValueError):
    """A topology, collective, plan or option that makes no sense."""


class InfeasibleError(Error):
    """What was asked for cannot be done here."""


class VerificationError(Error):
    """A plan that does not do what its collective asks.

    Attributes
    ----------
    violations : tuple of Violation
        Counterexamples, the first hundred.
    """

    def __init__(self, message: str, violations: Sequence[Violation] = ()) -> None:
        super().__init__(message)
        self.violations = tuple(violations)


class SimulationError(Error):
    """A simulation that came to nothing."""

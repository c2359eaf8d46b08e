"""Everything that hocket raises about what a user gave it; each message is one line."""

from __future__ import annotations

TYPE_CHECKING = False  # this file is loaded with the package: what fails finds its errors there
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from typing_extensions import Self

    from hocket._core import Violation


class Error(Exception):
    """Base of all errors of this package.

    Its text is ``origin: field: why; remedy``, without the parts that it does not have.

    Attributes
    ----------
    field : str or None
        The argument, option or key that is wrong.
    why : str
        What is wrong with it.
    remedy : str or None
        What would be right.
    origin : str or None
        The file, with its line where that is known, or the object that has the field; the algorithm or the
        job that cannot run here.
    instead : tuple of mappings
        Options that would do, each mapping a way out, as ``{"recompute": True}``; the remedy names them.
    """

    def __init__(
        self,
        field: str | None,
        why: str,
        remedy: str | None = None,
        origin: str | None = None,
        *,
        instead: Sequence[Mapping[str, object]] = (),
    ) -> None:
        if instead and remedy is None:
            remedy = "give " + listed([_keywords(way) for way in instead])
        super().__init__(field, why, remedy, origin)
        self.field = field
        self.why = why
        self.remedy = remedy
        self.origin = origin
        self.instead = tuple(instead)

    def __str__(self) -> str:
        what = ": ".join(part for part in (self.origin, self.field, self.why) if part)
        return what if self.remedy is None else f"{what}; {self.remedy}"

    def but(self, **parts: str | None) -> Self:
        """Return the same error with other parts, as ``error.but(field="--size")``.

        Parameters
        ----------
        parts
            Any of `field`, `why`, `remedy` and `origin`.
        """
        own = {"field": self.field, "why": self.why, "remedy": self.remedy, "origin": self.origin}
        made = type(self)(**{**own, **parts})  # type: ignore[arg-type]
        made.instead = self.instead
        return made

    def within(self, origin: str) -> Self:
        """Return the same error with an origin before the one that it has."""
        return self.but(origin=f"{origin}: {self.origin}" if self.origin else origin)


def listed(ways: Sequence[str]) -> str:
    """Write ways out as ``a, b or c``."""
    return " or ".join(filter(None, (", ".join(ways[:-1]), ways[-1])))


def _keywords(way: Mapping[str, object]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in way.items())


class SpecError(Error, ValueError):
    """A topology, collective, plan or option that makes no sense."""


class InfeasibleError(Error):
    """The request cannot be done here."""


class VerificationError(Error):
    """A plan that does not do what its collective asks.

    Attributes
    ----------
    violations : tuple of Violation
        Counterexamples, the first hundred.
    """

    def __init__(self, why: str, violations: Sequence[Violation] = ()) -> None:
        super().__init__(None, why)
        self.args = (why, tuple(violations))
        self.violations = tuple(violations)


class SimulationError(Error):
    """A simulation that came to nothing."""


class TransportError(Error):
    """A call between processes that failed, or a group that did not come together.

    Attributes
    ----------
    code : str
        ``join``, ``died``, ``lost``, ``stalled``, ``mismatch``, ``aborted``, ``store_lost`` or
        ``interrupted``.
    culprit : int or None
        The rank at fault, where one is.
    call : int
        Number of the call, counted from 1; 0 outside of calls.
    """

    def __init__(
        self, why: str, code: str = "aborted", culprit: int | None = None, call: int = 0
    ) -> None:
        super().__init__(None, why)
        self.args = (why, code, culprit, call)
        self.code = code
        self.culprit = culprit
        self.call = call

"""Constants of the law of training, as they are shipped and as they are fitted.

A constant is a product of parts, each with an owner: ``any``; an accelerator and a precision (``h100``,
``b200 8-bit``); a program (``megatron-core``); or a program on an accelerator. A part that nobody has is 1,
which makes an accelerator and a program answerable that were never seen together.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from math import prod
from pathlib import Path

from hocket._results import Result
from hocket.fitting.constants import Fitted
from hocket.throughput.cost_model import CONSTANTS
from hocket.throughput.job import USUAL
from hocket.throughput.machine import Machine
from hocket.throughput.stack import Stack

_FILE = Path(__file__).parent / "constants.yml"
_ERRORS = "errors"


ANY = "any"
"""Owner of the parts that all runs share."""
KNOWN, ALL, OUTSIDE = "program and accelerator fitted", "all runs", "outside the law"
"""Classes of runs."""
FEWEST_SOURCES = 5
"""Sources below which a class of runs counts as all."""


@dataclass(frozen=True)
class ExpectedError(Result):
    """How far predictions of a class of runs were off.

    Attributes
    ----------
    of
        The class of runs.
    sources, runs
        Who published what was left out, and how many runs that were.
    median, within
        Of predicted over measured time less one, without its sign, each source weighing the same: half are
        below the one, and 9 of 10 of a source that is new below the other.
    """

    of: str
    sources: int
    runs: int
    median: float
    within: float


@dataclass(frozen=True)
class Constants:
    """Constants of the law.

    Attributes
    ----------
    fitted
        Parts by owner and name.
    sources
        What each owner's parts were fitted to.
    errors
        What error is to be expected, by class of runs; each source was left out of the fit in turn.
    """

    fitted: Mapping[tuple[str, str], Fitted] = field(default_factory=dict)
    sources: Mapping[str, str] = field(default_factory=dict)
    errors: Mapping[str, ExpectedError] = field(default_factory=dict)

    def has(self, owner: str, name: str) -> bool:
        """Return whether this very owner has a part of the constant."""
        return (owner, name) in self.fitted

    def knows(self, chip: str) -> bool:
        """Return whether runs of an accelerator were fitted, at any precision."""
        return any(name == "efficiency" and of.split()[0] == chip for of, name in self.fitted)

    def given(self, name: str, stack: Stack, machine: Machine, precision: str) -> float:
        """Return a constant: the product of the parts that are known, or its prior if none is."""
        first, *more = owners_of(name, stack, machine, precision)
        value = self.fitted[first, name].value if self.has(first, name) else CONSTANTS[name].prior
        return value * prod(self.fitted[of, name].value for of in more if self.has(of, name))

    def values(self, stack: Stack, machine: Machine, precision: str) -> dict[str, float]:
        """Return every constant of the law."""
        return {
            name: self.given(name, stack, machine, precision)
            for name in CONSTANTS
            if stack.fused or name != "attention"
        }

    def class_of(self, stack: Stack, machine: Machine, precision: str) -> str:
        """Return the class of runs by a program on a machine."""
        if not stack.hides_gathers:
            return OUTSIDE
        _, products, program, _ = owners_of("efficiency", stack, machine, precision)
        is_known = self.has(products, "efficiency") and self.has(program, "efficiency")
        return KNOWN if is_known else ALL

    def expected(self, stack: Stack, machine: Machine, precision: str) -> ExpectedError | None:
        """Return the error to expect; None if no constants were tried on runs that are new to them."""
        return self.of_class(self.class_of(stack, machine, precision))

    def of_class(self, of: str) -> ExpectedError | None:
        """Return the error to expect of a class of runs; one of few sources counts as all."""
        own = self.errors.get(of)
        is_told = own is not None and (of == OUTSIDE or own.sources >= FEWEST_SOURCES)
        return own if is_told else self.errors.get(ALL)

    def with_values(self, values: Mapping[tuple[str, str], float]) -> Constants:
        """Return these with other values, without intervals."""
        return self.with_fitted({key: Fitted(each) for key, each in values.items()})

    def with_fitted(self, fitted: Mapping[tuple[str, str], Fitted]) -> Constants:
        """Return these with more constants."""
        return replace(self, fitted={**self.fitted, **fitted})

    def as_yaml(self) -> str:
        """Write them as the shipped file has them."""
        lines = [
            "# Parts of constants by owner, and the ends of their 90 % intervals where runs tell them; a",
            "# constant is the product of its owners' parts. Launch in seconds.",
        ]
        for owner in dict.fromkeys(owner for owner, _ in self.fitted):
            lines.append(f"{owner}:")
            if owner in self.sources:
                lines.append(f'  source: "{self.sources[owner]}"')
            for (other, name), each in self.fitted.items():
                if other == owner:
                    lines.append(f"  {name}: {each.written()}")
        lines += [f"{_ERRORS}:"] if self.errors else []
        for error in self.errors.values():
            far = f"median: {error.median:.3f}, within: {error.within:.3f}"
            count = f"sources: {error.sources}, runs: {error.runs}"
            lines.append(f'  - {{of: "{error.of}", {count}, {far}}}')
        return "\n".join(lines) + "\n"


def owners_of(name: str, stack: Stack, machine: Machine, precision: str) -> tuple[str, ...]:
    """Name who has parts of a constant, whoever shares it most first."""
    chip, program = machine.family, stack.constants
    if name == "efficiency":
        products = chip if precision == USUAL else f"{chip} {precision}"
        return ANY, products, program, f"{program} on {chip}"
    if name == "attention":
        return f"{stack.attention} on {chip}", f"{program} on {chip}"
    return (ANY,) if name == "depth" else (ANY, program)


NONE = Constants()
"""No constants."""
_FLASH = {
    "flash-attention-1 on a100": (0.6, "Dao 2023: 25 to 40 % of the peak, half the scores counted"),
    "flash-attention-1 on h100": (0.3, "that of A100, by cores and clock"),
    "flash-attention-2 on a100": (1.2, "Dao 2023: 50 to 73 % of the peak, half the scores counted"),
    "flash-attention-2 on h100": (
        0.6,
        "Shah et al. 2024, figure 5: forward 335 TFLOP/s, half counted",
    ),
}
SOURCED = Constants(
    {(owner, "attention"): Fitted(value, is_seen=False) for owner, (value, _) in _FLASH.items()},
    {owner: source for owner, (_, source) in _FLASH.items()},
)
"""Attention by kernel and accelerator, to which nothing was fitted; a mask leaves half the scores out."""


@cache
def shipped() -> Constants:
    """Return the constants that are shipped."""
    return constants_of(_FILE)


def constants_of(path: Path) -> Constants:
    """Read constants as :meth:`Constants.as_yaml` writes them."""
    from hocket.files.yaml_tree import read_yaml

    values, _ = read_yaml(path)
    fitted: dict[tuple[str, str], Fitted] = {}
    sources: dict[str, str] = {}
    errors = [ExpectedError(**each) for each in values.pop(_ERRORS, ())]
    for owner, parts in values.items():
        for key, part in parts.items():
            if key == "source":
                sources[owner] = part
            else:
                fitted[owner, key] = Fitted.read(part)
    return Constants(fitted, sources, {each.of: each for each in errors})

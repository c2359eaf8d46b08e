"""Constants of the law of training by their owners, as they are shipped and as they are fitted.

An owner is an accelerator (``a100``, or ``b200 8-bit`` where products of fewer bits were fitted), a program
on an accelerator (``llm-foundry on a100``), or the fabric of nodes of an accelerator.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

from hocket._results import Result
from hocket.fitting.constants import Fitted
from hocket.throughput.cost_model import CONSTANTS
from hocket.throughput.job import USUAL
from hocket.throughput.machine import Machine
from hocket.throughput.stack import Stack

_FILE = Path(__file__).parent / "constants.yml"


@dataclass(frozen=True)
class ExpectedError(Result):
    """Errors of predictions for runs that were not fitted, as shares of the measured time.

    Attributes
    ----------
    median, p90
        Of how many `runs`.
    of
        Which runs.
    """

    median: float
    p90: float
    runs: int
    of: str


@dataclass(frozen=True)
class Constants:
    """Constants of the law.

    Attributes
    ----------
    fitted
        By owner and name.
    sources
        What each owner's constants were fitted to.
    errors
        What error is to be expected of a program on an accelerator.
    """

    fitted: Mapping[tuple[str, str], Fitted] = field(default_factory=dict)
    sources: Mapping[str, str] = field(default_factory=dict)
    errors: Mapping[str, ExpectedError] = field(default_factory=dict)

    def has(self, owner: str, name: str) -> bool:
        """Return whether this very owner has the constant."""
        return (owner, name) in self.fitted

    def given(self, name: str, stack: Stack, machine: Machine, precision: str) -> float | None:
        """Return a constant: of its owner or of the nearest that has it, or None if there is none."""
        found = self.owner(name, stack, machine, precision)
        return None if found is None else self.fitted[found, name].value

    def owner(self, name: str, stack: Stack, machine: Machine, precision: str) -> str | None:
        """Name whose constant is taken: the same program on another accelerator if need be."""
        own = owner_of(name, stack, machine, precision)
        if self.has(own, name):
            return own
        if CONSTANTS[name].of == "accelerator":
            usual = owner_of(name, stack, machine, USUAL)
            return usual if self.has(usual, name) else None
        if CONSTANTS[name].of == "fabric":
            return None
        alike = own.partition(" on ")[0] + " on "
        others = [owner for owner, key in self.fitted if key == name and owner.startswith(alike)]
        return others[-1] if others else None

    def values(self, stack: Stack, machine: Machine, precision: str) -> dict[str, float]:
        """Return every constant of the law, those that nobody has fitted at their priors."""
        found = {}
        for name, constant in CONSTANTS.items():
            if name == "attention" and not stack.fused:
                continue
            value = self.given(name, stack, machine, precision)
            found[name] = constant.prior if value is None else value
        return found

    def with_values(self, values: Mapping[tuple[str, str], float]) -> Constants:
        """Return these with other values, without intervals."""
        return self.with_fitted({key: Fitted(each) for key, each in values.items()})

    def with_fitted(self, fitted: Mapping[tuple[str, str], Fitted]) -> Constants:
        """Return these with more constants."""
        return replace(self, fitted={**self.fitted, **fitted})

    def as_yaml(self) -> str:
        """Write them as the shipped file has them."""
        lines = ["# value, and the ends of its 90 % interval where runs tell it; launch in seconds"]
        for owner in dict.fromkeys(owner for owner, _ in self.fitted):
            lines.append(f"{owner}:")
            if owner in self.sources:
                lines.append(f'  source: "{self.sources[owner]}"')
            for (other, name), each in self.fitted.items():
                if other == owner:
                    lines.append(f"  {name}: {each.written()}")
            if owner in self.errors:
                lines.append(self._error_line(owner))
        owners = {owner for owner, _ in self.fitted}
        for owner in self.errors:
            if owner not in owners:
                lines += [f"{owner}:", self._error_line(owner)]
        return "\n".join(lines) + "\n"

    def _error_line(self, owner: str) -> str:
        error = self.errors[owner]
        cells = f'{error.median:.3f}, {error.p90:.3f}, {error.runs}, "{error.of}"'
        return f"  error: [{cells}]"


def owner_of(name: str, stack: Stack, machine: Machine, precision: str) -> str:
    """Name who has a constant."""
    kind = CONSTANTS[name].of
    if kind == "fabric":
        return (
            f"fabric of {machine.accelerator.name}, {machine.hardware.nic_bandwidth * 1e-9:g} GB/s"
        )
    if kind == "accelerator":
        return machine.family if precision == USUAL else f"{machine.family} {precision}"
    program = stack.attention if name == "attention" else stack.constants
    return f"{program} on {machine.family}"


def elsewhere(stack: Stack) -> str:
    """Name whose error is to be expected of a program whose constants are assumed."""
    return f"{stack.name} elsewhere"


def outside(stack: Stack, precision: str) -> str:
    """Name whose error is to be expected of a kind of runs that the law does not describe."""
    return f"{stack.name} outside, {precision}"


NONE = Constants()
"""No constants."""
SOURCED = Constants(
    {
        ("flash-attention-2 on a100", "attention"): Fitted(1.2, 1.0, 1.46, True),
        ("flash-attention-2 on h100", "attention"): Fitted(0.6, 0.5, 0.68, True),
    },
    {
        "flash-attention-2 on a100": "Dao 2023: 50 to 73 % of the peak, half the scores counted",
        "flash-attention-2 on h100": "Shah et al. 2024, figure 5: forward 335 TFLOP/s, half of it counted",
    },
)
"""Constants that nothing was fitted to; a causal mask leaves half of the scores out."""


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
    errors: dict[str, ExpectedError] = {}
    for owner, parts in values.items():
        for key, part in parts.items():
            if key == "source":
                sources[owner] = part
            elif key == "error":
                errors[owner] = ExpectedError(float(part[0]), float(part[1]), int(part[2]), part[3])
            else:
                fitted[owner, key] = Fitted.read(part)
    return Constants(fitted, sources, errors)

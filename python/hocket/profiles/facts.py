"""What is known of a machine beside its classes: ``h100+ib,nvls=off,launch=torch``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hocket._checks import did_you_mean
from hocket.errors import SpecError
from hocket.units import shown

SWITCHES: Mapping[str, str] = {
    "nvls": "whether switches of a node sum (NVLink SHARP)",
    "sharp": "whether switches between nodes sum (SHARP)",
    "ll": "whether the protocol LL is used",
    "ll128": "whether the protocol LL128 is used",
}
"""Facts that are on or off."""
_LAUNCH = "launch"
_STATES = {"on": True, "off": False}


@dataclass(frozen=True)
class Facts:
    """What is known of a machine; ``None`` where nothing is.

    Attributes
    ----------
    nvls, sharp, ll, ll128
        As :data:`SWITCHES` says.
    launch
        Kind of program that launches, of those of the profile.
    """

    nvls: bool | None = None
    sharp: bool | None = None
    ll: bool | None = None
    ll128: bool | None = None
    launch: str | None = None

    @property
    def without(self) -> tuple[str, ...]:
        """Protocols that are not used."""
        return tuple(name for name in ("ll", "ll128") if getattr(self, name) is False)

    def written(self) -> str:
        """Write them as they are read: ``,nvls=off``."""
        states = {
            name: "on" if value else "off"
            for name in SWITCHES
            if (value := getattr(self, name)) is not None
        }
        if self.launch is not None:
            states[_LAUNCH] = self.launch
        return "".join(f",{name}={value}" for name, value in states.items())


NOTHING = Facts()
"""Where nothing is known."""


def read_facts(parts: list[str], *, where: str | None = None) -> Facts:
    """Read facts, each as ``"nvls=off"``.

    Raises
    ------
    SpecError
        If there is no such fact, one is given twice, or its value is none that it has.
    """
    found: dict[str, bool | str] = {}
    for part in parts:
        name, _, value = part.strip().partition("=")
        known = [*SWITCHES, _LAUNCH]
        if name not in known:
            right = did_you_mean(name, known, f"facts are {', '.join(known)}, as nvls=off")
            raise SpecError("profile", f"there is no fact {shown(name)}", right, where)
        if name in found:
            raise SpecError("profile", f"{name} is given twice", "give each fact once", where)
        if name == _LAUNCH and value:
            found[name] = value
        elif name != _LAUNCH and value in _STATES:
            found[name] = _STATES[value]
        else:
            right = "launch=mpi" if name == _LAUNCH else f"{name}=on or {name}=off"
            raise SpecError("profile", f"{shown(part)} states nothing", f"give {right}", where)
    return Facts(**found)  # type: ignore[arg-type]

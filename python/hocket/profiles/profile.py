"""Profiles: the constants of a machine, from topology files and as they are shipped."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import MappingProxyType

from hocket._checks import did_you_mean, instance_of, one_of
from hocket._core import Bound
from hocket.errors import SpecError
from hocket.files.complaint import shown_path
from hocket.fitting.constants import Constant, Fitted, digits, values_of
from hocket.profiles.block_constants import BLOCK_CONSTANTS
from hocket.profiles.cost_model import CONSTANTS, launch_behind
from hocket.profiles.fit import Fit
from hocket.topology.spec import ProfileSpec, TopologySpec
from hocket.units import shown

_FOLDER = Path(__file__).parent / "shipped"
_HIDDEN = 0.01
"""Microseconds below which a launch is hidden behind the kernel before."""


@dataclass(frozen=True)
class Profile:
    """The costs of a machine other than latency and bandwidth of its links.

    Attributes
    ----------
    name
        What it is called.
    constants
        By name, in the units of :data:`hocket.profiles.cost_model.CONSTANTS`; what is missing is its prior.
    launch
        What launching a collective takes, by kind of program [us]; the first is the default.
    launch_per_npu
        What each NPU of a process that drives several adds to it [us].
    source
        Where the constants come from, a line each.
    blocks
        Constants of thread blocks by name, in the units of
        :data:`hocket.profiles.block_constants.BLOCK_CONSTANTS`; none where no schedule was measured.
    fitted_to
        The files of measured times that it was fitted to: the start of their SHA-256, by name. Shipped
        profiles name theirs in `source`.
    """

    name: str
    constants: Mapping[str, Fitted]
    launch: Mapping[str, float]
    launch_per_npu: float = 0.0
    source: tuple[str, ...] = ()
    blocks: Mapping[str, Fitted] = field(default_factory=dict)
    fitted_to: Mapping[str, str] = field(default_factory=dict)

    @property
    def values(self) -> dict[str, float]:
        """Every constant of the law; those that are not stated are their priors."""
        return values_of(CONSTANTS, self.constants)

    @property
    def block_values(self) -> dict[str, float]:
        """Every constant of thread blocks; those that are not stated are their priors.

        Raises
        ------
        SpecError
            If the profile states none.
        """
        if not self.blocks:
            right = "take one that does, such as mi300x, or fit them to times of known schedules"
            raise SpecError("blocks", f"profile {self.name!r} states none", right)
        return values_of(BLOCK_CONSTANTS, self.blocks)

    def launching(self, kind: str | None = None) -> float:
        """Return what launching takes [us], of a kind of program; by default of the first.

        Raises
        ------
        SpecError
            If there is no such kind.
        """
        if not self.launch:
            raise SpecError(
                "launch", f"profile {self.name!r} states none", "add one: launch: {mpi: 15}"
            )
        if kind is None:
            return next(iter(self.launch.values()))
        one_of("launch", kind, list(self.launch))
        return self.launch[kind]

    def launch_behind(self, took: float, work: float, own: float) -> float:
        """Return the launch with which work takes so long, within those of its kinds of programs [us].

        Parameters
        ----------
        took, work
            What was measured, and what it takes without a launch [us].
        own
            What the NPUs add to a launch [us].
        """
        known = self.launch.values()
        return min(max(launch_behind(took, work) - own, min(known)), max(known)) + own

    @classmethod
    def of_fit(
        cls,
        name: str,
        fit: Fit,
        source: tuple[str, ...] = (),
        fitted_to: Mapping[str, str] = MappingProxyType({}),
    ) -> Profile:
        """Return what was fitted as a profile; constants that the data does not tell have no interval."""
        launch = {file: each.value for file, each in fit.launch.items()}
        constants = dict(fit.constants)
        return cls(name, constants, launch, fit.launch_per_npu, source, {}, fitted_to)

    def as_yaml(self) -> str:
        """Write it as the section ``profile:`` of a topology file."""
        lines = ["profile: # times in microseconds, efficiencies as shares of nominal bandwidth"]
        if self.source:
            lines += ["  notes:", *(f'    - "{_plain(each)}"' for each in self.source)]
        if self.fitted_to:
            lines.append("  fitted_to: # files, each with the start of its SHA-256")
            lines += [f'    "{_plain(each)}": "{told}"' for each, told in self.fitted_to.items()]
        if self.launch:
            lines.append("  launch:")
            lines += [f"    {name}: {_launch(value)}" for name, value in self.launch.items()]
        if self.launch_per_npu:
            lines.append(f"  launch_per_npu: {digits(self.launch_per_npu)}")
        lines.append("  constants: # value, and the ends of its 90 % interval where data tells it")
        lines += [f"    {name}: {each.written()}" for name, each in self.constants.items()]
        if self.blocks:
            lines.append("  blocks: # of thread blocks, rates in GB/s")
            lines += [f"    {name}: {each.written()}" for name, each in self.blocks.items()]
        return "\n".join(lines) + "\n"


def profile_names() -> list[str]:
    """Names of the shipped profiles."""
    return sorted(file.stem for file in _FOLDER.glob("*.yml"))


def as_profile(value: object) -> Profile:
    """Return the profile that a caller means: itself, or by its name or file.

    Raises
    ------
    SpecError
        If it is none.
    """
    if isinstance(value, str):
        return load_profile(value)
    right = f"name one of {', '.join(profile_names())}, or a topology file that has one"
    return instance_of(Profile, "profile", value, right)


def profile_of(spec: TopologySpec) -> Profile:
    """Return the profile that a topology file states.

    Raises
    ------
    SpecError
        If it states none, or one that is not shipped or has constants that there are not.
    """
    where = spec.origin or spec.name
    if spec.profile is None:
        known = ", ".join(profile_names())
        right = f"name one in its file (profile: {known}), give --profile, or run hocket calibrate"
        raise SpecError("profile", "there is none", right, origin=where)
    if spec.profile.name is not None:
        return load_profile(spec.profile.name, origin=where)
    return _made(spec.name, spec.profile, where)


def why_below(bound: Bound, seconds: float, profile: Profile) -> str | None:
    """Explain why a prediction is below the bound of any plan, or return ``None`` if it is not."""
    if seconds * 1e12 >= bound.time_ps:
        return None
    return f"profile {profile.name} was fitted to machines that are quicker than this topology says"


def load_profile(name: str, *, origin: str | None = None) -> Profile:
    """Return a shipped profile, or that of a topology file by its path.

    Raises
    ------
    SpecError
        If there is none.
    """
    if name.endswith((".yml", ".yaml")):
        from hocket.topology.text import from_file

        path = Path(name)
        if not path.is_file():
            raise SpecError(None, "there is no such file", "check the path", shown_path(path))
        return profile_of(from_file(path))
    if name not in profile_names():
        right = did_you_mean(name, profile_names(), f"profiles are {', '.join(profile_names())}")
        raise SpecError("profile", f"there is no {shown(name)}", right, origin=origin)
    return _shipped(name)


@cache
def _shipped(name: str) -> Profile:
    from hocket.files.yaml_tree import read_yaml
    from hocket.topology.yaml import profile_from_values

    path = _FOLDER / f"{name}.yml"
    values, lines = read_yaml(path)
    return _made(name, profile_from_values(values, lines, shown_path(path)), name)


def _made(name: str, spec: ProfileSpec, where: str) -> Profile:
    constants = _read("constants", spec.constants, CONSTANTS, where)
    blocks = _read("blocks", spec.blocks, BLOCK_CONSTANTS, where)
    own = spec.launch, spec.launch_per_npu, spec.source, blocks, spec.fitted_to
    return Profile(name, constants, *own)


def _read(
    section: str,
    given: Mapping[str, tuple[float, ...]],
    known: Mapping[str, Constant],
    where: str,
) -> dict[str, Fitted]:
    found = {}
    for key, (value, *interval) in given.items():
        if key not in known:
            right = did_you_mean(key, known, f"constants are {', '.join(known)}")
            raise SpecError(f"profile.{section}.{key}", "there is no such constant", right, where)
        if len(interval) == 1 or (interval and not interval[0] <= value <= interval[1]):
            why = f"{list(given[key])} is not a value with its interval"
            raise SpecError(f"profile.{section}.{key}", why, "give [value, low, high]", where)
        found[key] = Fitted.read(given[key])
    return found


def _plain(text: str) -> str:
    return "".join(each for each in text if each.isprintable() and each not in '"\\')


def _launch(value: float) -> str:
    """Write what launching takes; what the kernels hide altogether is none."""
    return "0" if value < _HIDDEN else digits(value)

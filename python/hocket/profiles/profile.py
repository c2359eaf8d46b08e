"""Profiles: the constants of a machine, from topology files and as they are shipped."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from types import MappingProxyType

from hocket._checks import did_you_mean, instance_of, one_of
from hocket._core import Bound, Topology
from hocket.errors import SpecError
from hocket.files.complaint import shown_path
from hocket.fitting.constants import Constant, Fitted, digits, values_of
from hocket.profiles.block_constants import BLOCK_CONSTANTS
from hocket.profiles.classes import BOX_NPUS, BOXES, FABRICS, Box, Fabric
from hocket.profiles.cost_model import CONSTANTS, launch_behind
from hocket.profiles.expected import OTHER, ExpectedError, band_of, evidence
from hocket.profiles.facts import NOTHING, Facts, read_facts
from hocket.profiles.fit import Fit
from hocket.profiles.hardware import Hardware, hardware_for
from hocket.topology.spec import ProfileSpec, TopologySpec
from hocket.units import shown

_FOLDER = Path(__file__).parent / "shipped"
_NO_FABRIC = Fabric("")
_USUAL_FABRIC = "ib"
_LEAST = 0.95
"""Share of a class's nominal bandwidth from which on links are those of that class."""
_OF_FABRIC = [name for name, each in CONSTANTS.items() if each.of == "fabric"]
_HOW = (
    "name one in its file (profile: h100), give --profile, as h100+ib, or run hocket calibrate; "
    "docs/machines.md lists boxes and fabrics"
)
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
    box, fabric
        Classes of its nodes and of what joins them, of :mod:`hocket.profiles.classes`; empty if unknown.
    errors
        Of times of this machine that were kept back, by band of sizes: median and 90th percentile.
    facts
        What is known of the machine besides.
    is_composed
        Whether its constants are those of its classes, not of one machine.
    """

    name: str
    constants: Mapping[str, Fitted]
    launch: Mapping[str, float]
    launch_per_npu: float = 0.0
    source: tuple[str, ...] = ()
    blocks: Mapping[str, Fitted] = field(default_factory=dict)
    fitted_to: Mapping[str, str] = field(default_factory=dict)
    box: str = ""
    fabric: str = ""
    errors: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    facts: Facts = NOTHING
    is_composed: bool = False

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
            kind = self.facts.launch
        if kind is None:
            return next(iter(self.launch.values()))
        one_of("launch", kind, list(self.launch))
        return self.launch[kind]

    def launching_all(self, npus: int, nodes: int, kind: str | None = None) -> float:
        """Return what launching on so many NPUs and nodes takes [us], theirs included.

        Raises
        ------
        SpecError
            If there is no such kind, or another is a fact of the machine.
        """
        start, known = self.launching(kind), self.facts.launch
        if kind is not None and known not in (None, kind):
            wrong = f"it is {kind!r}, but the profile says launch={known}"
            raise SpecError("launch", wrong, "give one of them")
        named = known if kind is None else kind
        is_process = (next(iter(self.launch)) if named is None else named) == "process"
        if nodes > 1 or (self.is_composed and not is_process):
            return start
        return start + self.launch_per_npu * npus

    def expected(self, hardware: Hardware, nodes: int, size: int) -> ExpectedError:
        """Return the error to expect of a size [bytes]: that of the machine, or of machines like it."""
        band = band_of(size)
        if band in self.errors:
            median, p90 = self.errors[band]
            return ExpectedError(self.name, band, 1, 0, 1 + median, 1 + p90)
        return evidence().of_class(self._class(hardware, nodes), size)

    def _class(self, hardware: Hardware, nodes: int) -> str:
        """Return the class of machines of so many nodes; of links unlike those of its box the others."""
        box = BOXES.get(self.box)
        is_like = box is not None and (hardware.npus == 1 or _is_like(box, hardware))
        of = evidence().class_of(self.box, self.fabric, nodes, hardware.npus)
        return of if is_like else OTHER

    def remarks(self, hardware: Hardware, nodes: int) -> Iterator[str]:
        """Return what of a network this profile does not fit, or does not know."""
        box = BOXES.get(self.box)
        if box is not None and hardware.npus > 1 and not _is_like(box, hardware):
            yield (
                f"links of {hardware.bandwidth / 1e9:.4g} GB/s from an NPU are not those of {self.box}, "
                f"{box.bandwidth / 1e9:.4g} GB/s"
            )
        if box is not None and box.can_sum and not hardware.sums and self.facts.nvls is None:
            yield f"switches of this network do not sum; those of {self.box} may: nvls=on"
        if nodes == 1 and self.fabric:
            yield f"a single node, so nothing of the fabric {self.fabric} counts"
        if nodes > 1 and not any(name in self.constants for name in _OF_FABRIC):
            yield (
                f"profile {self.name} says nothing of what joins nodes, so constants of that are priors: "
                f"{self.box or 'h100'}+{_USUAL_FABRIC} has them"
            )

    def hardware(self, nominal: Hardware, nodes: int) -> Hardware:
        """Return the hardware of a machine as its fabric and what is known of it have it.

        Raises
        ------
        SpecError
            If a fact is not one of such a machine.
        """
        box = BOXES.get(self.box)
        can_sum = nominal.sums if self.facts.nvls is None else self.facts.nvls
        found = replace(
            nominal,
            sums=can_sum and (box is None or box.can_sum),
            without=tuple(self.facts.without),
            sums_between=bool(self.facts.sharp),
        )
        if nodes == 1 and self.facts.sharp:
            wrong = "sharp=on: there is one node, and switches between nodes are meant"
            raise SpecError("profile", wrong, "leave it out")
        if nodes == 1 or self.fabric not in FABRICS:
            return found
        fabric = FABRICS[self.fabric]
        nics = found.nic_bandwidth
        if box is not None and box.rack and found.npus > BOX_NPUS:
            nics = min(nics, box.rack)
        return replace(
            found,
            nic_bandwidth=min(nics, fabric.most) if fabric.most else nics,
            by_processor=fabric.by_processor,
            without=tuple({*fabric.without, *found.without}),
        )

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
        classes = {"box": self.box, "fabric": self.fabric}
        lines += [f"  {key}: {value}" for key, value in classes.items() if value]
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
        if self.constants:
            lines.append(
                "  constants: # value, and the ends of its 90 % interval where data tells it"
            )
        lines += [f"    {name}: {each.written()}" for name, each in self.constants.items()]
        if self.errors:
            lines.append("  errors: # of sizes kept back: median and 90th percentile, as shares")
            lines += [
                f'    "{band}": [{digits(median)}, {digits(p90)}]'
                for band, (median, p90) in self.errors.items()
            ]
        if self.blocks:
            lines.append("  blocks: # of thread blocks, rates in GB/s")
            lines += [f"    {name}: {each.written()}" for name, each in self.blocks.items()]
        return "\n".join(lines) + "\n"


@cache
def profile_names() -> tuple[str, ...]:
    """Names of the machines that have a profile of their own."""
    return tuple(sorted(file.stem for file in (_FOLDER / "machines").glob("*.yml")))


def as_profile(value: object) -> Profile:
    """Return the profile that a caller means: itself, or by its name or file.

    Raises
    ------
    SpecError
        If it is none.
    """
    if isinstance(value, str):
        return load_profile(value)
    known = ", ".join(profile_names())
    right = f"name one of {known}, a box on a fabric, as h100+ib, or a topology file that has one"
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
        raise SpecError("profile", "there is none", _HOW, origin=where)
    if spec.profile.name is not None:
        return load_profile(spec.profile.name, origin=where)
    return _made(spec.name, spec.profile, where)


def profile_for(network: Topology, spec: TopologySpec | None = None) -> Profile:
    """Return the profile that a topology file states, or else that of the classes that the network shows.

    The box is that of the GPU of a dump, or of the bandwidth of an NPU inside its node and of whether
    switches join NPUs; what joins several nodes is taken to be InfiniBand. The profile's first source says
    so.

    Raises
    ------
    SpecError
        If there is none, and no class of boxes has such links.
    """
    if spec is not None and spec.profile is not None:
        return profile_of(spec)
    nodes = max(len(network.groups), 1)
    hardware = hardware_for("all-reduce", network)
    gpu = None if spec is None else spec.gpu
    box = _box_of(hardware, gpu)
    if box is None:
        wrong = (
            f"there is none, and no class of boxes has links of {hardware.bandwidth / 1e9:.4g} GB/s"
        )
        raise SpecError("profile", wrong, _HOW, origin=network.name)
    by = f"its GPUs, {gpu}" if gpu else f"links of {hardware.bandwidth / 1e9:.4g} GB/s from an NPU"
    if nodes == 1:
        found = load_profile(box)
        return replace(found, source=(f"box {box} by {by}", *found.source))
    found = load_profile(f"{box}+{_USUAL_FABRIC}")
    others = [name for name in FABRICS if name != _USUAL_FABRIC]
    line = f"box {box} by {by}; fabric {_USUAL_FABRIC} is assumed: --profile {box}+FABRIC names another"
    return replace(found, source=(f"{line} ({', '.join(others)})", *found.source))


def _is_like(box: Box, hardware: Hardware) -> bool:
    """Return whether links are those of a class of boxes."""
    rate = hardware.most or hardware.bandwidth
    return _LEAST * box.bandwidth <= rate <= box.bandwidth / _LEAST


def _box_of(hardware: Hardware, gpu: str | None) -> str | None:
    """Return the class of boxes with such a GPU, or with such links; ``None`` if there is none."""
    # Links of AMD's boxes are no sign: networks of other makers have such rates too.
    found = [
        name
        for name, box in BOXES.items()
        if (gpu in box.gpus if gpu else _is_like(box, hardware) and not name.startswith("mi"))
    ]
    if hardware.is_on_pci or hardware.npus == 1 or not found:
        return None
    alike = [name for name in found if BOXES[name].is_switched == hardware.is_switched]
    return (alike or found)[0]


def why_below(bound: Bound, seconds: float, profile: Profile) -> str | None:
    """Explain why a prediction is below the bound of any plan, or return ``None`` if it is not."""
    if seconds * 1e12 >= bound.time_ps:
        return None
    return f"profile {profile.name} was fitted to machines that are quicker than this topology says"


def load_profile(name: str, *, origin: str | None = None) -> Profile:
    """Return a shipped profile, one of classes, or that of a topology file by its path.

    Parameters
    ----------
    name
        As ``"a100-infiniband"``, a machine of its own; ``"h100+ib"``, a box and a fabric; or
        ``"mine.yml"``. Facts may follow: ``"h100+ib,nvls=off"``.

    Raises
    ------
    SpecError
        If there is none, or a fact contradicts it.
    """
    base, *facts = name.split(",")
    if base.lower().partition("+")[0] in BOXES:
        base = base.lower()
    if base.endswith((".yml", ".yaml")):
        from hocket.topology.text import from_file

        path = Path(base)
        if not path.is_file():
            raise SpecError(None, "there is no such file", "check the path", shown_path(path))
        found = profile_of(from_file(path))
    elif base in profile_names():
        found = _shipped(base)
    else:
        found = _composed(base, origin)
    return _with(found, read_facts(facts, where=origin), origin)


def _with(found: Profile, facts: Facts, origin: str | None) -> Profile:
    """Return a profile with facts, which must not contradict it."""
    if facts == NOTHING:
        return found
    if facts.sharp and not FABRICS.get(found.fabric, _NO_FABRIC).can_sum:
        own = f"{found.fabric} has" if found.fabric else "a profile of one node has"
        right = f"leave it out, or name a fabric that may: {found.box or 'h100'}+ib"
        raise SpecError("profile", f"sharp=on: {own} no switches that sum", right, origin)
    if facts.nvls and found.box in BOXES and not BOXES[found.box].can_sum:
        wrong = f"nvls=on: switches of {found.box} do not sum"
        raise SpecError("profile", wrong, "leave it out", origin)
    if facts.launch is not None and facts.launch not in found.launch:
        others = _launches().launch
        if facts.launch in others:
            found = replace(found, launch={**found.launch, facts.launch: others[facts.launch]})
        found.launching(facts.launch)
    return replace(found, name=found.name + facts.written(), facts=facts)


@cache
def _shipped(name: str) -> Profile:
    return _read_profile(_FOLDER / "machines" / f"{name}.yml", name)


@cache
def _composed(name: str, origin: str | None) -> Profile:
    """Return the profile of a box, alone or on a fabric."""
    box, plus, fabric = name.partition("+")
    known = [*profile_names(), *(each for each in BOXES if each not in profile_names())]
    if box not in BOXES:
        one = did_you_mean(box, known, f"profiles are {', '.join(known)}")
        right = f"{one}; a box may have a fabric, as h100+ib"
        raise SpecError("profile", f"there is no {shown(name)}", right, origin=origin)
    if plus and fabric not in FABRICS:
        right = did_you_mean(fabric, FABRICS, f"fabrics are {', '.join(FABRICS)}")
        raise SpecError("profile", f"there is no fabric {shown(fabric)}", right, origin=origin)
    parts = [_class("boxes", box)]
    parts += [_class("fabrics", fabric)] if plus else []
    launches = _launches()
    about = [f"{each.name}: {', '.join(each.source)}" for each in parts]
    return Profile(
        name,
        {key: each for part in parts for key, each in part.constants.items()},
        launches.launch,
        launches.launch_per_npu,
        tuple(about),
        box=box,
        fabric=fabric,
        is_composed=True,
    )


@cache
def _launches() -> Profile:
    """Return what launching takes, by class."""
    return _read_profile(_FOLDER / "launches.yml", "launches")


def _class(kind: str, name: str) -> Profile:
    """Return the constants of a class; those of any where nobody published times of it."""
    path = _FOLDER / kind / f"{name}.yml"
    if path.is_file():
        return _read_profile(path, name)
    found = _read_profile(_FOLDER / kind / "any.yml", name)
    return replace(
        found, name=name, source=("nobody published times, so constants are those of any",)
    )


def _read_profile(path: Path, name: str) -> Profile:
    from hocket.files.yaml_tree import read_yaml
    from hocket.topology.yaml import profile_from_values

    values, lines = read_yaml(path)
    return _made(name, profile_from_values(values, lines, shown_path(path)), name)


def _made(name: str, spec: ProfileSpec, where: str) -> Profile:
    constants = _read("constants", spec.constants, CONSTANTS, where)
    blocks = _read("blocks", spec.blocks, BLOCK_CONSTANTS, where)
    own = spec.launch, spec.launch_per_npu, spec.source, blocks, spec.fitted_to
    for key, value, known in (("box", spec.box, BOXES), ("fabric", spec.fabric, FABRICS)):
        if value and value not in known:
            right = did_you_mean(value, known, f"classes are {', '.join(known)}")
            raise SpecError(f"profile.{key}", f"there is no {shown(value)}", right, where)
    errors = {band: (median, p90) for band, (median, p90) in spec.errors.items()}
    return Profile(name, constants, *own, spec.box, spec.fabric, errors)


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

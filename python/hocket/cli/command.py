"""Commands as functions: what their parameters say of options is all that is said of them.

A parameter is ``Annotated`` with an :class:`Option` or an :class:`Argument`; one whose type is a dataclass
stands for the options that are the fields of that class, with a :class:`Panel` for those of the library.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from functools import cached_property, partial
from importlib import import_module
from inspect import Parameter, cleandoc, signature
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, TypeAlias, get_args, get_origin, get_type_hints

from hocket._checks import did_you_mean
from hocket._moved import REMEDY
from hocket._options import declared
from hocket.cli import complete
from hocket.errors import SpecError
from hocket.units import shown

Completer: TypeAlias = Callable[[str], list[str]]
"""Gives the values that begin as what is typed."""
Check: TypeAlias = Callable[[str, Any], object]
"""Refuses a value of an option, by the option's name and the value."""

REQUIRED = Parameter.empty
OTHERS = "Options"
"""Panel of options that belong to no group."""


class UsageError(Exception):
    """Words that are no call of a command."""


class UnknownOptionError(UsageError):
    """An option that the command does not have."""

    def __init__(self, option: str, near: str) -> None:
        super().__init__(f"No such option: {option}{near and '; '}{near}")
        self.option = option


@dataclass(frozen=True)
class Argument:
    """The arguments that stand without a name.

    Parameters
    ----------
    metavar
        What help calls it.
    complete
        Completes it in a shell.
    """

    help: str
    metavar: str
    complete: Completer | None = None


@dataclass(frozen=True, init=False)
class Option:
    """An option.

    Parameters
    ----------
    names
        As they are typed: ``--size``, ``-s``, or ``--cache/--no-cache``; by default that of the parameter.
    metavar
        What help calls its value; by default what its type is.
    complete
        Completes its value in a shell.
    panel
        Heading in help; by default that of its group.
    rare
        Whether only ``--help-all`` shows it.
    check
        Refuses a value by the option's name and the value, before the command runs.
    """

    names: tuple[str, ...]
    help: str
    metavar: str | None
    complete: Completer | None
    panel: str | None
    rare: bool
    check: Check | None

    def __init__(
        self,
        *names: str,
        help: str,
        metavar: str | None = None,
        complete: Completer | None = None,
        panel: str | None = None,
        rare: bool = False,
        check: Check | None = None,
    ) -> None:
        given = (names, help, metavar, complete, panel, rare, check)
        for each, value in zip(fields(self), given, strict=True):
            object.__setattr__(self, each.name, value)


@dataclass(frozen=True)
class Panel:
    """The place in the help of options that a class of the library declares.

    The class says all else of them: their names, types, units and defaults, and what each is.

    Parameters
    ----------
    rare
        Those that only ``--help-all`` shows; True for all.
    but, only
        Those that the command does not have; or those that it has, all by default.
    of
        The class, where the value is a dictionary of those that are given.
    """

    title: str = ""
    rare: Collection[str] | bool = False
    but: Collection[str] = ()
    only: Collection[str] = ()
    of: type | None = None


def _ascii(kind: Callable[[str], Any], text: str) -> Any:
    """Read a number in digits from 0 to 9; Python takes those of other scripts, too."""
    if not text.isascii():
        raise ValueError(text)
    return kind(text)


_READERS: dict[type, tuple[Callable[[str], Any], str, str]] = {
    str: (str, "text", "TEXT"),
    int: (partial(_ascii, int), "a whole number", "N"),
    float: (partial(_ascii, float), "a number", "X"),
}
"""What makes a value of its text, what the text is to be, and what help calls it."""


@dataclass(frozen=True)
class Param:
    """A parameter of a command."""

    field: str
    told: Option | Argument
    kind: type
    is_many: bool
    default: Any
    panel: str

    @property
    def is_flag(self) -> bool:
        """Whether it takes no value."""
        return self.kind is bool

    @property
    def names(self) -> tuple[str, ...]:
        """Its names as help writes them: those that are given, or the one of the parameter."""
        if isinstance(self.told, Argument):
            return (self.told.metavar,)
        if self.told.names:
            return self.told.names
        name = self.field.removesuffix("s" * self.is_many).replace("_", "-")
        both = self.is_flag and self.default is not False
        short = [_SHORT[self.field]] if self.field in _SHORT else []
        return (f"--{name}/--no-{name}" if both else f"--{name}", *short)

    @cached_property
    def words(self) -> dict[str, bool]:
        """Its names, and whether a flag of that name is on."""
        if isinstance(self.told, Argument):
            return {}
        found: dict[str, bool] = {}
        for each in self.names:
            on, slash, off = each.partition("/")
            found |= {on: True, off: False} if slash else {on: True}
        return found

    @property
    def name(self) -> str:
        """Its name in errors: the longest of its names, or the argument's name in the help."""
        if isinstance(self.told, Argument):
            return self.told.metavar
        return max((each for each, is_on in self.words.items() if is_on), key=len)

    @property
    def value(self) -> str:
        """The name of its value in the help; empty for a flag."""
        if self.is_flag:
            return ""
        return self.told.metavar or _METAVARS.get(self.field, _READERS[self.kind][2])

    def read(self, text: str) -> Any:
        """Make a value of a text."""
        reader, what, _ = _READERS[self.kind]
        try:
            return reader(text)
        except ValueError:
            raise SpecError(self.name, f"{shown(text)} is not {what}") from None


_METAVARS = {
    name: word
    for word, names in {
        "RATE": ("bandwidth", "host_bandwidth"),
        "TIME": ("latency",),
        "SIZE": ("size",),
        "NAME": ("algorithm", "algorithms", "scheme", "preset", "fidelity", "npu", "phase", "part"),
        "HOW": (
            "routing",
            "unwind",
            "relays",
            "order",
            "switching",
            "latency_model",
            "hash",
            "weights",
        ),
        "RUNTIME": ("runtime",),
        "PROFILE": ("profile",),
        "FILE": (
            "output",
            "file",
            "measured",
            "plot",
            "timeline",
            "perfetto",
            "heat",
            "save",
            "groups",
        ),
        "A,B": ("failed",),
        "LIST": ("npus", "map", "places", "inputs"),
        "SIZES": ("parallel",),
        "NPU": ("root",),
    }.items()
    for name in names
}
"""What stands in help for the value of an option, by the parameter that it sets."""
_SHORT = {
    "algorithms": "-a",
    "chunks": "-c",
    "parallel": "-p",
    "size": "-s",
    "topology": "-t",
    "workers": "-w",
}
"""Short names of options of the library."""

HELP = Param(
    "help", Option("--help", "-h", help="Show this, and exit."), bool, False, False, OTHERS
)
HELP_ALL = Param(
    "help_all", Option("--help-all", help="Show every option."), bool, False, False, OTHERS
)
QUIET = Param(
    "quiet",
    Option("--quiet", "-q", help="Print only the result, without progress and notes."),
    bool,
    False,
    False,
    "Output",
)
_OF_ALL = (QUIET, HELP, HELP_ALL)


@dataclass(frozen=True)
class Command:
    """A command that is imported when it is called, or a group of such commands.

    Parameters
    ----------
    place
        Module and name of its function, as ``"hocket.cli.plan:plan"``. The first paragraph of the
        docstring is what it does; one that begins with "For example" shows how it is called.
    modes
        Other functions that do it another way: each by the option that asks for it, ``--front``, or by
        the end of the name of the file that is written, ``-o FILE.html``.
    commands
        What is under it; then `about` and `example` say what a function would. Words that call none of
        them are for its own function, if it has one.
    package
        Distribution that has it instead: its entry point of this name in the group ``hocket.commands``.
    is_program
        Whether all that is typed after its name, ``--help`` too, is for a program that it runs.
    """

    place: str = ""
    modes: Mapping[str, str] = field(default_factory=dict)
    commands: Mapping[str, Command] = field(default_factory=dict)
    about: str = ""
    example: str = ""
    package: str = ""
    is_program: bool = False

    @property
    def summary(self) -> str:
        """A summary in one sentence; read from the source, since an import would take longer."""
        return self.about or next(iter(paragraphs(_docstring(self.place))))

    def under(self, name: str) -> Command:
        """Return the command of this name that is under it, of another package if need be."""
        found = self.commands[name]
        if not found.package:
            return found
        from importlib.metadata import entry_points  # takes as long as a whole start

        for point in entry_points(group="hocket.commands", name=name):
            return point.load()  # type: ignore[no-any-return]
        why = f"`{name}` is a command of {found.package}, which is not installed"
        raise SpecError(None, why, REMEDY)

    def mode(self, words: Sequence[str]) -> tuple[str, str]:
        """Return the mode that words ask for, empty for none, and where its function is."""
        files = [each for i, each in enumerate(words) if i and words[i - 1] in ("-o", "--output")]
        files += [each.partition("=")[2] for each in words if each.startswith("--output=")]
        for mark, place in self.modes.items():
            end = mark.removeprefix("-o FILE")
            if mark in words or (end != mark and any(each.endswith(end) for each in files)):
                return mark, place
        return "", self.place


def paragraphs(text: str) -> list[str]:
    """Return the paragraphs of a docstring, a line each."""
    return [" ".join(each.split()) for each in text.split("\n\n")]


def _docstring(place: str) -> str:
    module, _, name = place.partition(":")
    package, _, last = module.rpartition(".")
    folder = (
        Path(__file__).parent
        if package == __package__
        else Path(str(import_module(package).__file__)).parent
    )
    source = (folder / f"{last}.py").read_text(encoding="utf-8")
    found = re.search(rf'^def {name}\(.*?\).*?:\n    """(.*?)"""', source, re.DOTALL | re.MULTILINE)
    assert found is not None, place
    return cleandoc(found[1])


def at(place: str) -> Callable[..., int | None]:
    """Import what is at a place, as ``"hocket.cli.plan:plan"``."""
    module, _, name = place.partition(":")
    return getattr(import_module(module), name)  # type: ignore[no-any-return]


class Call:
    """A function of a command, imported, and the words that call it.

    Parameters
    ----------
    path
        The words before its own, ``hocket plan``.
    place
        Module and name of the function.
    mode
        The option that asks for it, if it is a mode of a command.
    """

    def __init__(self, path: str, place: str, mode: str = "") -> None:
        self.path = path
        self.mode = mode
        self.function = at(place)
        hints = get_type_hints(self.function, include_extras=True)
        parameters = signature(self.function).parameters.values()
        self._parts = [_part(each.name, hints[each.name], each.default) for each in parameters]
        found: dict[str, Param] = {}
        for each in (param for part in self._parts for param in part.params):
            found.setdefault(
                each.field, each
            )  # what two classes of the library declare is one option
        self.params = [*found.values(), *_OF_ALL]

    @property
    def summary(self) -> str:
        """A summary in one sentence."""
        return paragraphs(self.function.__doc__ or "")[0]

    @property
    def example(self) -> str:
        """Its name; empty if nothing states one."""
        told = [
            each for each in paragraphs(cleandoc(self.function.__doc__ or "")) if "For ex" in each
        ]
        return told[0] if told else ""

    @property
    def arguments(self) -> list[Param]:
        """The arguments that stand without a name."""
        return [each for each in self.params if isinstance(each.told, Argument)]

    @cached_property
    def options(self) -> dict[str, Param]:
        """The options by each of their names."""
        return {word: each for each in self.params for word in each.words}

    def values(self, words: Sequence[str]) -> dict[str, Any]:
        """Read the words as values of the parameters that they give.

        Where they have an option for help, they give that alone.

        Raises
        ------
        UsageError, SpecError
            If a word is none of an option, a value is missing, or it is not of its type.
        """
        given: dict[str, list[Any]] = {}
        plain: list[str] = []
        rest = [each for each in words if not self.mode or each != self.mode]
        while rest:
            word = rest.pop(0)
            if word == "--":
                plain += rest
                break
            if len(word) < 2 or word[0] != "-":
                plain.append(word)
                continue
            name, equals, text = word.partition("=")
            if word[1] != "-":  # -s1MB, or flags in one word: -qv
                name, equals, text = word[:2], "=" * (len(word) > 2), word[2:]
            param = self.options.get(name)
            if param is None:
                raise UnknownOptionError(name, did_you_mean(name, list(self.options), ""))
            if param.is_flag:
                if equals and word[1] == "-":
                    raise UsageError(f"Option {name!r} does not take a value")
                if equals:
                    rest.insert(0, f"-{text}")
                value = param.words[name]
            elif equals or rest:
                value = param.read(text if equals else rest.pop(0))
            else:
                raise UsageError(f"Option {name!r} requires an argument")
            given.setdefault(param.field, []).append(value)
        if given.keys() & {"help", "help_all"}:
            return dict.fromkeys(given, True)
        return self._checked(given, plain)

    def _checked(self, given: dict[str, list[Any]], plain: list[str]) -> dict[str, Any]:
        for each in self.arguments:
            if each.is_many and plain:
                given[each.field], plain = [each.read(text) for text in plain], []
            elif plain:
                given[each.field] = [each.read(plain.pop(0))]
        if plain:
            more = "s" * (len(plain) > 1)
            raise UsageError(f"Got unexpected extra argument{more} ({' '.join(map(shown, plain))})")
        found: dict[str, Any] = {}
        for each in self.params:
            values = given.get(each.field)
            if values is None and each.default is REQUIRED:
                raise UsageError(_missing(each))
            if values is None:
                continue
            if "" in values:  # of a shell's variable that is not set
                raise SpecError(each.name, "'' is empty", "give a value")
            if each.is_many:
                found[each.field] = values
            elif len(values) > 1 and not each.is_flag:
                why = f"is given {len(values)} times, and taken once"
                raise SpecError(each.name, why, "give one")
            else:
                found[each.field] = values[-1]
        return found

    def __call__(self, values: dict[str, Any]) -> int:
        """Run it with the values of its parameters, and give its exit code."""
        for each in self.params:
            if each.field in values and isinstance(each.told, Option) and each.told.check:
                each.told.check(each.name, values[each.field])
        return self.function(**_made(self._parts, values)) or 0


def _missing(param: Param) -> str:
    if isinstance(param.told, Argument):
        return f"Missing argument {param.name!r}"
    return f"Missing option {' / '.join(map(repr, param.words))}"


@dataclass(frozen=True)
class _Part:
    """A parameter of a function, or a field of a group: its options, and what makes its value of theirs."""

    name: str
    params: list[Param]
    make: Callable[[Mapping[str, Any]], Any]
    is_group: bool


def _made(parts: Iterable[_Part], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of parts, but of those that are not given."""
    return {part.name: part.make(given) for part in parts if part.is_group or part.name in given}


def _part(name: str, hint: Any, default: Any, title: str = OTHERS) -> _Part:
    kind, *told = get_args(hint) if get_origin(hint) is Annotated else (hint,)
    if told and isinstance(told[0], Panel):
        params = _of_library(told[0].of or kind, told[0])
        names = [each.field for each in params]
        return _Part(
            name, params, lambda given: kind(**{n: given[n] for n in names if n in given}), True
        )
    if isinstance(kind, type) and is_dataclass(kind):
        hints, title = get_type_hints(kind, include_extras=True), getattr(kind, "panel", OTHERS)
        parts = [
            _part(each.name, hints[each.name], _required(each.default), title)
            for each in fields(kind)
        ]
        params = [each for part in parts for each in part.params]
        return _Part(name, params, lambda given: kind(**_made(parts, given)), True)
    return _Part(name, [_param(name, hint, default, title)], lambda given: given[name], False)


def _required(default: Any) -> Any:
    return REQUIRED if default is MISSING else default


def _of_library(kind: type, panel: Panel) -> list[Param]:
    found = []
    for each in declared(kind).values():
        if each.name not in panel.but and each.name in (panel.only or [each.name]):
            rare = panel.rare is True or (panel.rare is not False and each.name in panel.rare)
            metavar = _METAVARS.get(each.name, each.unit) or None
            told = Option(
                help=re.sub(r"`(\w+)`", _as_option, each.doc),
                metavar=metavar,
                complete=_COMPLETERS.get(each.name),
                rare=rare,
            )
            default = _required(each.default)
            title = panel.title or getattr(kind, "panel", OTHERS)
            found.append(Param(each.name, told, each.kind, each.is_many, default, title))
    return found


def _as_option(name: re.Match[str]) -> str:
    return "--" + name[1].replace("_", "-")


_COMPLETERS: dict[str, Completer] = {
    "npu": complete.devices,
    "routing": complete.routings,
    "algorithm": complete.algorithms,
    "algorithms": complete.algorithms,
    "collective": complete.collectives,
    "workload": complete.models,
    "topology": complete.topologies,
}
"""What completes the fields of classes of the library."""


def _param(name: str, hint: Any, default: Any, panel: str) -> Param:
    assert get_origin(hint) is Annotated, name
    kind, told = get_args(hint)
    kinds = [each for each in get_args(kind) if each is not NoneType]
    is_many = get_origin(kind) is list
    if kinds and not is_many:
        (kind,) = kinds
        is_many = get_origin(kind) is list
    if is_many:
        (kind,) = get_args(kind)
    return Param(name, told, kind, is_many, default, getattr(told, "panel", None) or panel)

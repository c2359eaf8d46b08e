"""The help and docs/command-line.md: both are made of the commands themselves."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from shutil import get_terminal_size
from textwrap import wrap

from hocket.cli.command import HELP, HELP_ALL, QUIET, REQUIRED, Argument, Call, Command, Param
from hocket.cli.commands import COMMANDS, EXAMPLE, GROUPS, ROOT_OPTIONS, SUMMARY

_LEFT = 24
"""Columns for names of options; a longer one has a line of its own."""
_WIDEST = 100


def root_help() -> str:
    """Return the help of all."""
    parts = ["Usage: hocket COMMAND ...", SUMMARY]
    for title, commands in GROUPS.items():
        parts.append(_section(title, _summaries(commands)))
    parts.append(_section("options", ROOT_OPTIONS.items()))
    return _page([*parts, "hocket COMMAND --help says what its options are.", EXAMPLE])


def group_help(path: str, command: Command) -> str:
    """Return the help of a group of commands."""
    parts = [f"Usage: {path} COMMAND ...", command.summary]
    return _page([*parts, _section("commands", _summaries(command.commands)), command.example])


def help_of(call: Call, command: Command, *, everything: bool) -> str:
    """Return the help of a command: its common options, or all."""
    parts = [usage(call), call.summary]
    if call.arguments:
        rows = [(each.name, _told(each)) for each in call.arguments]
        parts.append(_section("arguments", rows))
    hidden = 0
    for panel in dict.fromkeys(each.panel for each in call.params):
        named = [each for each in call.params if each.panel == panel and each.words]
        named = [each for each in named if each not in (HELP, HELP_ALL)]
        told = [each for each in named if everything or not _is_rare(each)]
        hidden += len(named) - len(told)
        if told:
            parts.append(_section(panel, ((_names(each), _told(each)) for each in told)))
    if not call.mode and command.modes:
        rows = [(mark, Command(place).summary) for mark, place in command.modes.items()]
        note = f"{call.path} MODE --help shows the options of a mode."
        parts.append(_section("modes", rows) + f"\n  {note}")
    if hidden:
        parts.append(f"--help-all shows {hidden} more options.")
    return _page([*parts, call.example])


def usage(call: Call) -> str:
    """Return the line that says how a command is called."""
    words = [call.path, *filter(None, [call.mode])]
    for each in call.arguments:
        dots = each.name + "..." * each.is_many
        words.append(dots if each.default is REQUIRED else f"[{dots}]")
    return f"Usage: {' '.join(words)} [OPTIONS]"


def _is_rare(param: Param) -> bool:
    return not isinstance(param.told, Argument) and param.told.rare


def _names(param: Param) -> str:
    return f"{', '.join(param.names)} {param.value}".strip()


def _told(param: Param) -> str:
    """Describe a parameter and its default."""
    default = param.default
    if default is REQUIRED:
        return f"{param.told.help} [required]"
    if default is True:
        return f"{param.told.help} [default: on]"
    if not default or "default" in param.told.help.lower():
        return param.told.help
    if isinstance(default, tuple):
        default = ",".join(f"{x:g}" if isinstance(x, float) else str(x) for x in default)
    return f"{param.told.help} [default: {default}]"


def _summaries(commands: Mapping[str, Command]) -> Iterator[tuple[str, str]]:
    return ((name, each.summary) for name, each in commands.items())


def _section(title: str, rows: Iterable[tuple[str, str]]) -> str:
    """Write rows of two columns below a title."""
    width = _width()
    lines = [f"{title[:1].upper()}{title[1:]}:"]
    rows = list(rows)
    left = min(_LEFT, max(len(name) for name, _ in rows) + 2)
    for name, text in rows:
        wrapped = wrap(text, width - left - 2, break_long_words=False, break_on_hyphens=False)
        if len(name) > left - 2:
            lines.append(f"  {name}")
            name = ""
        for i, line in enumerate(wrapped or [""]):
            lines.append(f"  {'' if i else name:<{left}}{line}".rstrip())
    return "\n".join(lines)


def _page(parts: Sequence[str]) -> str:
    texts = []
    for part in filter(None, parts):
        lines = [part] if "\n" in part else wrap(part, _width(), break_on_hyphens=False)
        texts.append("\n".join(lines))
    return "\n\n".join(texts)


def _width() -> int:
    return min(get_terminal_size().columns, _WIDEST)


BEGIN, END = "<!-- commands: written by `make accept` -->\n", "<!-- end of commands -->\n"
_SHARED = 3
"""Commands that have an option with the same text, for it to be told once for all."""


def reference() -> str:
    """Return every command with all its options, in Markdown."""
    ways = [
        (path, command, [Call(path, place, mode) for mode, place in modes.items()])
        for path, command in leaves(COMMANDS, "hocket")
        for modes in [{} if command.is_program else {"": command.place, **command.modes}]
    ]
    counts = Counter(row for _, _, calls in ways for call in calls for row in _rows(call))
    shared = {row for row, count in counts.items() if count >= _SHARED and row[0].startswith("-")}
    parts = ["## Options of several commands\n", *_table(dict.fromkeys(sorted(shared)))]
    for title, commands in GROUPS.items():
        parts.append(f"## {title[:1].upper()}{title[1:]}\n")
        for path, command, calls in ways:
            if path.split()[1] not in commands:
                continue
            parts += [f"### {path}\n", f"{command.summary}\n"]
            if command.is_program:
                parts.append(f"`{path} --help` lists its options.\n")
            for call in calls:
                if call.mode:
                    parts.append(
                        f"With `{call.mode}`: {call.summary[:1].lower()}{call.summary[1:]}\n"
                    )
                parts.append(f"`{usage(call).removeprefix('Usage: ')}`\n")
                parts += _table(row for row in _rows(call) if row not in shared)
                names = ", ".join(
                    f"`{row[0].split()[0].rstrip(',')}`" for row in _rows(call) if row in shared
                )
                if names:
                    parts.append(f"And {names}.\n")
    return "\n".join(parts)


def leaves(commands: Mapping[str, Command], path: str) -> Iterator[tuple[str, Command]]:
    """Yield every command that is no group, with the words that call it."""
    for name, each in commands.items():
        if each.place and (each.is_program or not each.commands):
            yield f"{path} {name}", each
        yield from leaves(each.commands, f"{path} {name}")  # none of those of other packages


def _rows(call: Call) -> list[tuple[str, str]]:
    """Return the parameters of a command and their meaning, without those that all have."""
    names = {
        each: each.name if isinstance(each.told, Argument) else _names(each) for each in call.params
    }
    return [
        (name, _told(each)) for each, name in names.items() if each not in (HELP, HELP_ALL, QUIET)
    ]


def _table(rows: Iterable[tuple[str, str]]) -> list[str]:
    lines = [f"| `{name}` | {told} |" for name, told in rows]
    return ["| option | meaning |", "| --- | --- |", *lines, ""] if lines else []


def main() -> None:
    """Write the reference into the page that is named."""
    page = Path(sys.argv[1])
    before, _, rest = page.read_text(encoding="utf-8").partition(BEGIN)
    after = rest.partition(END)[2]
    page.write_text(f"{before}{BEGIN}\n{reference()}\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()

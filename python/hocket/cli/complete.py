"""Completion in a shell: commands, options, and values from closed lists."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from hocket._checks import is_decimal
from hocket.errors import SpecError

_FILES = (".yml", ".yaml", ".json", ".xml")
_FISH = """\
complete -c hocket -f -a "(set -l w (commandline -cpo) (commandline -ct); env _HOCKET_COMPLETE=1 \
COMP_WORDS=(string join ' ' -- $w) COMP_CWORD=(math (count $w) - 1) hocket)"
"""
_BASH = """\
_hocket_completion() {
    local IFS=$'\\n'
    COMPREPLY=( $(env COMP_WORDS="${COMP_WORDS[*]}" COMP_CWORD=$COMP_CWORD _HOCKET_COMPLETE=1 "$1") )
}
complete -o default -F _hocket_completion hocket
"""
_SCRIPTS = {
    "bash": _BASH,
    "zsh": f"autoload -U +X compinit && compinit\nautoload -U +X bashcompinit && bashcompinit\n{_BASH}",
    "fish": _FISH,
}
"""What makes a shell ask, by shell."""
_SETTINGS = {"bash": ".bashrc", "zsh": ".zshrc", "fish": ".config/fish/config.fish"}


def script(shell: str | None = None) -> str:
    """Return what makes a shell complete, by default the one that is used."""
    shell = shell or Path(os.environ.get("SHELL", "bash")).name
    if shell not in _SCRIPTS:
        raise SpecError("--show-completion", f"{shell} is not completed", "name bash, zsh or fish")
    return _SCRIPTS[shell].rstrip()


def install() -> str:
    """Have the user's shell complete from now on, and say where that is written."""
    shell = Path(os.environ.get("SHELL", "bash")).name
    script(shell)
    line = f"hocket --show-completion {shell} | source"
    if shell != "fish":
        line = f'eval "$(hocket --show-completion {shell})"'
    file = Path.home() / _SETTINGS[shell]
    before = file.read_text(encoding="utf-8") if file.exists() else ""
    if line not in before:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{before}\n{line}\n", encoding="utf-8")
    return f"{file}: {line}; open a new shell"


def answer() -> None:
    """Print what a shell asks for."""
    text, number = os.environ.get("COMP_WORDS", ""), os.environ.get("COMP_CWORD", "")
    words = text.split()
    last = int(number) if is_decimal(number) else len(words)
    print("\n".join(completed(words[1:last], words[last] if last < len(words) else "")))


def completed(words: list[str], incomplete: str) -> list[str]:
    """Complete a command, an option, or the value of an option or an argument.

    Parameters
    ----------
    words
        What stands before it, without the program.
    incomplete
        What is typed of it.
    """
    from hocket.cli.command import Call, Command
    from hocket.cli.commands import COMMANDS, ROOT_OPTIONS

    command, rest = Command(commands=COMMANDS), list(words)
    while rest and rest[0] in command.commands:
        command = command.under(rest.pop(0))
    if command.commands and not rest and not incomplete.startswith("-"):
        return _starting(command.commands, incomplete)
    if command.is_program or not command.place:
        names = (name for each in ROOT_OPTIONS for name in each.split(", "))
        return _starting(names, incomplete) if not words else []
    mode, place = command.mode(rest)
    call = Call("", place, mode)
    if incomplete.startswith("-"):
        return _starting([*call.options, *command.modes], incomplete)
    option = call.options.get(rest[-1]) if rest else None
    if option is None or option.is_flag:
        plain = sum(not each.startswith("-") for each in rest)
        option = next(iter(call.arguments[plain : plain + 1] or call.arguments[-1:]), None)
        if option is None or (plain >= len(call.arguments) and not option.is_many):
            return []
    return option.told.complete(incomplete) if option.told.complete else []


def _starting(names: Iterable[str], incomplete: str) -> list[str]:
    return [name for name in names if name.startswith(incomplete)]


def algorithms(incomplete: str) -> list[str]:
    """Complete names of algorithms."""
    from hocket.plans.algorithms import algorithms

    return _starting((each.name for each in algorithms()), incomplete)


def collectives(incomplete: str) -> list[str]:
    """Complete kinds of collectives, and files."""
    from hocket.plans.algorithms import BUILTIN

    kinds = dict.fromkeys(kind for each in BUILTIN.values() for kind in each.kinds)
    return _starting(kinds, incomplete) + _files(incomplete)


def topologies(incomplete: str) -> list[str]:
    """Complete shipped machines and files."""
    from hocket.topology import machines

    return _starting(machines.names(), incomplete) + _files(incomplete)


def models(incomplete: str) -> list[str]:
    """Complete shipped workloads and files."""
    from hocket.workload import models

    return _starting(models.names(), incomplete) + _files(incomplete)


def devices(incomplete: str) -> list[str]:
    """Complete what computes."""
    from hocket.workload.accelerators import ACCELERATORS

    return _starting((*ACCELERATORS, "chiplet"), incomplete)


def fidelities(incomplete: str) -> list[str]:
    """Complete fidelities of transfers."""
    return _starting(("link", "flow", "packet"), incomplete)


def all_fidelities(incomplete: str) -> list[str]:
    """Complete fidelities, that of schedules included."""
    return _starting(("link", "flow", "packet", "dimension"), incomplete)


def routings(incomplete: str) -> list[str]:
    """Complete ways to spread over equal paths."""
    from hocket.plans.synthesis.options import ROUTINGS

    return _starting(ROUTINGS, incomplete)


def _files(incomplete: str) -> list[str]:
    """Return files and folders that begin so: folders end in a slash."""
    folder, slash, start = incomplete.rpartition("/")
    try:
        found = sorted(Path(folder + slash or ".").iterdir())
    except (OSError, ValueError):  # the latter for a NUL
        return []
    return [
        f"{folder}{slash}{each.name}" + "/" * each.is_dir()
        for each in found
        if each.name.startswith(start)
        and (each.is_dir() or each.suffix in _FILES)
        and not (each.name.startswith(".") and not start)
    ]

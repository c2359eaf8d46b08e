"""Names that left a package or have another word now, and where they are."""

from collections.abc import Callable, Mapping

MOVED = {"testbed": "hocket_testbed", "reproduce": "hocket_studies"}
"""By the name that it had in :mod:`hocket`, the package that has it now, with hocket in one repository."""

REMEDY = "in a checkout of hocket, `make build` installs it"


def renamed(module: str, names: Mapping[str, str]) -> Callable[[str], object]:
    """Return a ``__getattr__`` for a module that answers an old name by its successor's name.

    Parameters
    ----------
    module
        The module's name.
    names
        The successors by old name.

    Raises
    ------
    ImportError
        For an old name, which `from MODULE import NAME` shows as well.
    AttributeError
        For any other name.
    """

    def answer(name: str) -> object:
        if name in names:
            raise ImportError(f"{module}.{name} is {module}.{names[name]} now")
        raise AttributeError(f"module {module!r} has no attribute {name!r}")

    return answer


def formerly(name: str) -> property:
    """Return a property that an old name of an attribute stays for a release."""
    return property(lambda self: getattr(self, name), doc=f"The former name of ``{name}``.")

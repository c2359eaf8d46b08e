"""The types of what results say, for JSON Schemas; read from the declarations, only where one is made."""

from __future__ import annotations

import ast
import inspect
from contextlib import suppress
from functools import cache
from itertools import pairwise
from types import ModuleType, NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from pydantic import Field as Described
from typing_extensions import NotRequired, TypedDict, is_typeddict

from hocket._options import attributes
from hocket._results import Field, Result, fields_of

_TYPED: dict[Any, Any] = {}


def typed(kind: Any) -> Any:
    """Return a type as Pydantic knows it: results are typed dictionaries, wherever they stand in it."""
    if is_typeddict(kind) or (isinstance(kind, type) and issubclass(kind, Result)):
        if kind not in _TYPED:
            _TYPED[kind] = dictionary(kind.__name__, _keys(kind), kind.__doc__, kind.__module__)
        return _TYPED[kind]
    inner, origin = get_args(kind), get_origin(kind)
    if not inner or origin is Literal:
        return kind
    if origin is Annotated:
        return Annotated.__class_getitem__((typed(inner[0]), *inner[1:]))
    made = tuple(map(typed, inner))
    if origin in (Union, UnionType):
        return Union[made]  # noqa: UP007
    return origin[made if made[1:] else made[0]]


def also(kind: Any, more: Any, /) -> Any:
    """Return what a command prints: a result, and the keys of a typed dictionary."""
    name = f"{kind.__name__}And{more.__name__}"
    return dictionary(name, {**_keys(kind), **_keys(more)}, more.__doc__, more.__module__)


def dictionary(name: str, keys: dict[str, Any], doc: str | None, module: str = __name__) -> Any:
    """Return a typed dictionary of results and other values."""
    made: Any = TypedDict(name, {key: typed(value) for key, value in keys.items()})  # type: ignore[misc]
    made.__module__, made.__doc__ = module, _first(doc)
    return made


def _keys(kind: Any) -> dict[str, Any]:
    """Return the keys of a result or a typed dictionary, with their types."""
    if not is_typeddict(kind) and kind.to_dict is not Result.to_dict:  # one that says it by itself
        return _keys(_hints(kind.to_dict, kind)["return"])
    if not is_typeddict(kind):
        return {each.key: _type(each) for each in fields_of(kind)}
    return get_type_hints(kind, _names(inspect.getmodule(kind)), include_extras=True)


def _type(each: Field) -> Any:
    name, owner = each.path[-1], each.owner
    own = each.function.__annotations__["return"] if each.function else owner.__annotations__[name]
    found = eval(own, _names(inspect.getmodule(owner))) if each.said.of is None else None
    if each.said.of is not None:
        found = _hints(each.said.of)["return"]
        found = Union[found, None] if own.endswith("| None") else found  # noqa: UP007
    if each.said.is_optional:
        found = Union[tuple(part for part in get_args(found) if part is not NoneType)]  # noqa: UP007
    doc = _first(each.function.__doc__) if each.function else _attributes(owner).get(name)
    found = Annotated[found, Described(description=doc)] if doc else found
    return NotRequired[found] if each.said.is_optional else found


def _hints(function: Any, owner: Any = None) -> dict[str, Any]:
    return get_type_hints(function, _names(inspect.getmodule(owner or function)))


@cache
def _names(module: ModuleType) -> dict[str, Any]:
    """Return the names of a module, and those that it imports for types alone."""
    names = dict(vars(module))
    for each in ast.parse(inspect.getsource(module)).body:
        if isinstance(each, ast.If) and ast.unparse(each.test) == "TYPE_CHECKING":
            for inner in each.body:
                with suppress(ImportError):  # of what is there for types alone itself
                    if isinstance(inner, ast.Import | ast.ImportFrom):
                        exec(compile(ast.Module([inner], []), module.__name__, "exec"), names)
    return names


@cache
def _attributes(owner: type) -> dict[str, str]:
    """Return what a class says of its fields: below each, or among its ``Attributes``."""
    found = {name: _first(text) for name, text in attributes(inspect.getdoc(owner) or "").items()}
    body = ast.parse(inspect.cleandoc(inspect.getsource(owner))).body[0].body  # type: ignore[attr-defined]
    for each, below in pairwise(body):
        is_text = isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant)
        if is_text and isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name):
            found[each.target.id] = _first(below.value.value)
    return found


def _first(text: str | None) -> str:
    """Return the first paragraph of a documentation, as one line."""
    return " ".join(inspect.cleandoc(text or "").split("\n\n")[0].split())

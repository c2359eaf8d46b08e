"""The door that takes graphs of networkx: any nodes, any attributes, directed or not, parallel edges."""

from __future__ import annotations

from draw import ODD, Draw

from hocket.topology.networkx import from_networkx, to_networkx

_NODES = (
    0,
    1,
    2,
    3,
    "0",
    "a",
    "b",
    "switch",
    None,
    (1, 2),
    1.5,
    True,
    "",
    "a b",
    "a\nb",
    "é",
    b"x",
)
_RATES = ("25 GB/s", "1 B/s", "200 Gb/s")
_DELAYS = ("700 ns", "0 s", "1 us")
_KINDS = ("npu", "switch", "npu", "npu")


def graph(data: bytes) -> None:
    """Make a graph and a network of it."""
    import networkx as nx

    draw = Draw(data)
    made = draw.one_of((nx.Graph, nx.DiGraph, nx.MultiGraph, nx.MultiDiGraph))()
    made.name = draw.one_of(("", "net", 3, None, "a\nb"))
    for _ in range(draw.below(8)):
        role = {} if draw.below(2) else {"kind": _or_odd(draw, _KINDS)}
        made.add_node(_or_odd(draw, _NODES), **role) if draw.below(8) else None
    for _ in range(draw.below(16)):
        facts = {"bandwidth": _or_odd(draw, _RATES), "latency": _or_odd(draw, _DELAYS)}
        if draw.below(16) == 1:
            facts.popitem()
        a, b = draw.one_of(_NODES), draw.one_of(_NODES)
        if a is not None and b is not None:
            made.add_edge(a, b, **facts)
    given = made if draw.below(16) else draw.one_of(ODD)
    network = from_networkx(given, bandwidth="bandwidth", latency="latency", kind="kind")
    network.inspect()
    repr(network)
    from_networkx(to_networkx(network))


def _or_odd(draw: Draw, values: tuple[object, ...]) -> object:
    value = draw.one_of(ODD) if draw.below(16) == 1 else draw.one_of(values)
    return "None" if value is None or isinstance(value, list | dict) else value

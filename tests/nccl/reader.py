"""NCCL's own rules for a file of graphs, written anew from its source, character by character.

Nothing of hocket is used here. What NCCL would refuse, or take without a word and go wrong with, raises
`RefusedError`.

Source: NVIDIA/nccl 2.30.7 (commit 5067397), src/graph/xml.cc, search.cc, connect.cc and rings.cc.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field

MAX_STR_LEN = 255
MAX_ATTR_COUNT = 16
MAX_SUBS = 640
MAX_NODES = 65536
MAXCHANNELS = 64
LINK_TYPES = ("LOC", "NVL", "NVB", "PIX", "PXB", "P2C", "PXN", "PHB", "SYS")


class RefusedError(Exception):
    """NCCL does not take it."""


@dataclass
class Element:
    name: str
    attributes: dict[str, str] = field(default_factory=dict)
    children: list[Element] = field(default_factory=list)


class Reader:
    """The reader of src/graph/xml.cc: one character at a time."""

    def __init__(self, text: str) -> None:
        self.text, self.at, self.nodes = text, 0, 0

    def char(self) -> str:
        if self.at == len(self.text):
            raise RefusedError("unexpected end")
        self.at += 1
        return self.text[self.at - 1]

    def token(self, takes_value: bool) -> tuple[str, str, str]:
        """A name, the value after it, and the character that ended it."""
        name = ""
        while True:
            char = self.char()
            if char == "=":
                if not takes_value:
                    raise RefusedError(f"unexpected value of {name}")
                value, last = self.value()
                return name, value, last
            if char in " >/\n\r":
                return name, "", char
            name += char
            if len(name) >= MAX_STR_LEN - 1:
                raise RefusedError("name too long")

    def value(self) -> tuple[str, str]:
        quote = self.char()
        if quote not in "\"'":
            raise RefusedError("a value without quotation marks")
        value = ""
        while (char := self.char()) != quote:
            value += char
            if len(value) >= MAX_STR_LEN - 1:
                raise RefusedError("value too long")
        return value, self.char()

    def node(self) -> tuple[str, Element] | None:
        char = " "
        while char in " \n\r":  # no tabs
            if self.at == len(self.text):
                return None
            char = self.char()
        if char != "<":
            raise RefusedError(f"expecting '<', got {char!r}")
        name, _, last = self.token(takes_value=False)
        if name.startswith("!--"):
            end = self.text.find("-->", self.at - 1)
            if end < 0:
                raise RefusedError("unterminated comment")
            self.at = end + 3
            return self.node()
        if name == "" and last == "/":
            name, _, last = self.token(takes_value=False)
            if last != ">":
                raise RefusedError("trailing characters in a closing tag")
            return "close", Element(name)
        element = Element(name)
        while last == " ":
            key, value, last = self.token(takes_value=True)
            if len(element.attributes) == MAX_ATTR_COUNT:
                raise RefusedError("attributes that are ignored")
            element.attributes[key] = value
        kind = "open"
        if last == "/":
            kind = "single"
            _, _, last = self.token(takes_value=False)
        if last != ">":
            raise RefusedError(f"expected >, got {last!r}")
        return kind, element

    def load(self, head: Element | None, kind: str = "open") -> list[Element]:
        """All elements within one, to its closing tag."""
        found: list[Element] = []
        if kind == "single":
            return found
        while True:
            self.nodes += 1
            if self.nodes > MAX_NODES:
                raise RefusedError("too many nodes")
            read = self.node()
            if read is None:
                if head is not None:
                    raise RefusedError(f"unterminated {head.name}")
                return found
            kind, element = read
            if kind == "close":
                if head is None or element.name != head.name:
                    raise RefusedError(f"mismatch: {element.name}")
                return found
            if len(found) == MAX_SUBS:
                raise RefusedError("too many subnodes")
            element.children = self.load(element, kind)
            found.append(element)


@dataclass
class Graph:
    """What ncclTopoGetGraphFromXml fills for one rank's node."""

    pattern: int
    channels: int
    cross: int
    intra: list[list[int]]
    inter: list[list[int]]


def number(element: Element, key: str) -> int:
    if key not in element.attributes:
        raise RefusedError(f"no attribute {key}")
    text = element.attributes[key]
    digits = text.lstrip("-")
    if not digits.isdecimal():
        raise RefusedError(f"{key} is {text!r}")  # strtol would take what it can
    return int(text)


def hexadecimal(text: str) -> int:
    return int(text, 16)


def load_graph(text: str, identity: int, ranks: dict[int, int], nets: set[int]) -> Graph:
    """The graph of an id for a node with some GPUs, by number their ranks, and NICs."""
    top = Reader(text).load(None)
    if [each.name for each in top] != ["graphs"]:
        raise RefusedError("no <graphs> alone")
    graphs = top[0]
    if number(graphs, "version") != 1:
        raise RefusedError("wrong version")
    found = [each for each in graphs.children if number(each, "id") == identity]
    if len(found) != 1:
        raise RefusedError(f"{len(found)} graphs of id {identity}")
    graph = found[0]
    for key in ("typeintra", "typeinter"):
        if graph.attributes.get(key) not in LINK_TYPES:
            raise RefusedError(f"{key} is unknown")
    for key in ("speedintra", "speedinter"):
        if not float(graph.attributes[key]) > 0:
            raise RefusedError(f"{key} is not positive")
    number(graph, "samechannels")
    count = number(graph, "nchannels")
    if count > MAXCHANNELS // 2:
        raise RefusedError("more channels than there is room for, once doubled")
    if count != len(graph.children):
        raise RefusedError("nchannels is not the number of channels")
    made = Graph(number(graph, "pattern"), count, number(graph, "crossnic"), [], [])
    for channel in graph.children:
        intra, inter = [], []
        for each in channel.children:
            dev = hexadecimal(each.attributes["dev"])
            if each.name == "net":
                if dev not in nets:
                    raise RefusedError(f"net {dev} is not there")
                inter.append(dev)
            elif each.name == "gpu":
                if "rank" in each.attributes:
                    raise RefusedError(
                        "a rank overrides dev, so that the file is of one node alone"
                    )
                if dev not in ranks:
                    raise RefusedError(f"dev {dev} not found")
                intra.append(ranks[dev])
        if len(intra) != len(ranks):
            raise RefusedError(f"a channel fills {len(intra)} of {len(ranks)} places")
        if len(inter) not in (0, 2):
            raise RefusedError(f"a channel has {len(inter)} nets")
        made.intra.append(intra)
        made.inter.append(inter)
    return made


def connect(rings: list[Graph], trees: list[Graph]) -> tuple[list[list[int]], int]:
    """Join the nodes as ncclTopoPreset and Postset do, and check the rings as ncclBuildRings does.

    Returns the rings of all ranks, and how many channels there are, doubled.
    """
    count = min(graph.channels for graph in (*rings, *trees))
    total = sum(len(graph.intra[0]) for graph in rings)
    found = []
    for c in range(count):
        following: dict[int, int] = {}
        places = [
            c ^ 1 if g.cross == 2 and count % 2 == 0 and n % 2 else c for n, g in enumerate(rings)
        ]
        orders = [graph.intra[place] for graph, place in zip(rings, places, strict=True)]
        for n, order in enumerate(orders):
            following.update(itertools.pairwise(order))
            following[order[-1]] = orders[(n + 1) % len(orders)][0]
        for start in range(total):
            current, seen = start, set()
            for _ in range(total):
                seen.add(current)
                current = following[current]
            if current != start:
                raise RefusedError(f"ring {c} does not loop back")
            if len(seen) != total:
                raise RefusedError(f"ring {c} does not contain all ranks")
        ring = [0]
        while len(ring) < total:
            ring.append(following[ring[-1]])
        found.append(ring)
    return found, min(2 * count, MAXCHANNELS)

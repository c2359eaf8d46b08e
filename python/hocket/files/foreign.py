"""Files of other programs that people take for what hocket reads, and what to give instead."""

from __future__ import annotations

import re

from hocket.errors import SpecError

HEAD = 4096
"""Characters from which a file is recognised."""
_DUMP = "give what NCCL or RCCL writes to NCCL_TOPO_DUMP_FILE=topo.xml, or a shipped machine"
_LINKS = (
    "write npus:, switches: and links: as YAML, such as {a: gpu0, b: nvs0, bandwidth: 2880 Gb/s}"
)
_KNOWN = (
    (
        r"^=+ *(?:ROCm System Management Interface|(?:Weight|Hops|Link Type) between two GPUs) *=+",
        "is what rocm-smi --showtopo prints, which states no bandwidths",
        f"{_DUMP} such as mi300x_8gpu",
    ),
    (
        r"^(?:ACCESS|WEIGHT|HOPS|LINK TYPE|NUMA BW) TABLE:",
        "is what amd-smi topology prints, whose links have a range of bandwidths alone",
        f"{_DUMP} such as mi300x_8gpu",
    ),
    (
        r"\A\s*(?:\d+ +){5}[A-Za-z]\w* *\n[\d ]+\n\d+ +\d+ +[\d.]+[GM]bps +[\d.]+[mun]?s\b",
        "is a topology of SimAI",
        _LINKS,
    ),
    (
        r"\A\s*\d+ +\d+ +\d+ *\n[\d ]+\n\d+ +\d+ +[\d.]+[GM]bps +[\d.]+[mun]?s\b",
        "is a topology of ns-3's simulations of RDMA",
        _LINKS,
    ),
    (
        r"\A\s*(?:HYBRID_\w+|DATA|MODEL|MICRO|DISTRIBUTED_INFERENCE)\b[^\n]*\n\s*\d+\s*\n"
        r"\S+[ \t]+-?\d+[ \t]",
        "is a workload as text, of SimAI or of ASTRA-sim 1",
        "give a shipped model or layers: as YAML, or traces of Chakra (.et) to hocket trace run",
    ),
    (
        r"^# Topology file: generated on|^vendid=0x",
        "is what ibnetdiscover prints, which names no GPUs",
        "give a topology of the machines and their NICs, such as clos:4x8x16@50GB/s,1us",
    ),
    (r"^[ |+\\-]*-\[0000:", "is what lspci -t prints, which states no bandwidths", _DUMP),
    (r"\AMachine \([^\n]*\n +(?:Package|NUMANode|Group)", "is what lstopo prints", _DUMP),
    (
        r'\A\s*\{\s*"version"\s*:\s*\d+\s*,\s*"start_time"\s*:',
        "is JSON of nccl-tests (-J)",
        "give what the program printed",
    ),
    (
        r"^\| NVIDIA-SMI \d",
        "is what nvidia-smi prints alone, which names no links",
        "give what nvidia-smi topo -m prints",
    ),
)
_PATTERNS = tuple((re.compile(pattern, re.MULTILINE), why, right) for pattern, why, right in _KNOWN)


def check_foreign(content: str | bytes, origin: str) -> None:
    """Refuse the file of another program by what it is.

    Parameters
    ----------
    origin
        The file, for messages.

    Raises
    ------
    SpecError
        Naming what it is, and what to give instead.
    """
    head = content[:HEAD]
    text = head.decode("utf-8", "replace") if isinstance(head, bytes) else head
    text = text.replace("\r\n", "\n")
    for pattern, why, right in _PATTERNS:
        if pattern.search(text) is not None:
            raise SpecError(None, why, right, origin)

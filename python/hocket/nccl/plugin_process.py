"""The process that asks a tuner plugin for its picks: a plugin may end the process that loads it.

``python -m hocket.nccl.plugin_process`` reads a question from standard input and writes
answers, both as JSON.

References
----------
NVIDIA/nccl 2.30.7, src/include/plugin/tuner/tuner_v2.h to tuner_v6.h, src/plugin/tuner (Apache-2.0), read
at commit 5067397.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

from hocket._children import end_with, limit_to

VERSIONS = (7, 6, 5, 4, 3, 2)
"""Of the API, in the order in which NCCL looks for them."""
COLLECTIVES = ("broadcast", "reduce", "all-gather", "reduce-scatter", "all-reduce")
"""Each at the place of NCCL's number of it."""
ALGORITHMS = ("tree", "ring", "collnet-direct", "collnet-chain", "nvls", "nvls-tree", "pat")
"""Each at the place of NCCL's number of it."""
PROTOCOLS = ("LL", "LL128", "Simple")
"""Each at the place of NCCL's number of it."""
IGNORED = -1.0
"""Cost of what is not to be used."""
_LINE = 1000
"""Bytes that are kept of what a plugin logs at once."""
_CONSTANTS = 159
"""Doubles of ``ncclTunerConstants_v7_t``, the most of all versions."""

_LOGGER = ctypes.CFUNCTYPE(
    None, ctypes.c_int, ctypes.c_ulong, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p
)
_POINTER = ctypes.c_void_p
_SIZE = ctypes.c_size_t
_INT = ctypes.c_int


class _Domain(ctypes.Structure):
    """``ncclNvlDomainInfo_v5_t``."""

    _fields_ = (("domains", _INT), ("least", _INT), ("most", _INT))


class _Tuner(ctypes.Structure):
    """The common start of all versions: a name and three functions."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("init", _POINTER),
        ("get_coll_info", _POINTER),
        ("end", _POINTER),
    )


class Plugin:
    """A tuner plugin that is loaded.

    Raises
    ------
    OSError
        If the library cannot be loaded.
    LookupError
        If it is no tuner plugin of a version that is known.
    RuntimeError
        If the plugin refuses to start.
    """

    def __init__(self, path: str, ranks: int, nodes: int) -> None:
        library = ctypes.CDLL(path)
        self.version, self._tuner = _symbol(library)
        self.log: list[str] = []
        self.name = (self._tuner.name or b"").decode("utf-8", "replace")
        self._logger = _LOGGER(self._write)
        self._context = _POINTER()
        made = self._init(ranks, nodes)
        if made != 0:
            raise RuntimeError(f"init gives {made}")

    def _write(
        self, level: int, flags: int, file: bytes | None, line: int, text: bytes | None
    ) -> None:
        if text and len(self.log) < 100 and level <= 3:
            self.log.append(text[:_LINE].decode("utf-8", "replace"))

    def _init(self, ranks: int, nodes: int) -> int:
        address = self._tuner.init
        context = ctypes.byref(self._context)
        if self.version <= 4:
            old = ctypes.CFUNCTYPE(_INT, _SIZE, _SIZE, _LOGGER, ctypes.POINTER(_POINTER))(address)
            return int(old(ranks, nodes, self._logger, context))
        new = ctypes.CFUNCTYPE(
            _INT,
            ctypes.POINTER(_POINTER),
            ctypes.c_uint64,
            _SIZE,
            _SIZE,
            _LOGGER,
            ctypes.POINTER(_Domain),
            ctypes.POINTER(ctypes.c_double * _CONSTANTS),
        )(address)
        self._domain = _Domain(nodes, ranks // nodes, ranks // nodes)
        self._constants = (ctypes.c_double * _CONSTANTS)()
        return int(
            new(
                context,
                0,
                ranks,
                nodes,
                self._logger,
                ctypes.byref(self._domain),
                ctypes.byref(self._constants),
            )
        )

    def ask(
        self, collective: int, size: int, costs: Sequence[float]
    ) -> tuple[int, int, list[float]]:
        """Return the pick for one size.

        Returns
        -------
        result, channels, costs
            Of the call (0: done), channels (0: left to NCCL), and the costs that it left.
        """
        table = (ctypes.c_float * (len(ALGORITHMS) * len(PROTOCOLS)))(*costs)
        number = ctypes.POINTER(_INT)
        algorithm, protocol, channels = _INT(-1), _INT(-1), _INT(0)
        words: list[tuple[Any, Any]] = [(_POINTER, self._context), (_INT, collective)]
        words.append((_SIZE, size))
        if self.version == 2:  # writes a pick instead of costs
            picks = [(number, ctypes.byref(each)) for each in (algorithm, protocol)]
            words += [(_INT, 0), (_INT, 0), (_INT, 1), *picks]
        else:
            words += [(_INT, 1), (_POINTER, ctypes.cast(table, _POINTER))]
            words += [(_INT, len(ALGORITHMS)), (_INT, len(PROTOCOLS))]
            words += [(_INT, 0)] * (self.version > 3)
        words.append((number, ctypes.byref(channels)))
        kinds, values = zip(*words, strict=True)
        result = ctypes.CFUNCTYPE(_INT, *kinds)(self._tuner.get_coll_info)(*values)
        left = list(table)
        at = algorithm.value * len(PROTOCOLS) + protocol.value
        if algorithm.value >= 0 and protocol.value >= 0 and at < len(left) and left[at] >= 0:
            left[at] = 0.0
        return int(result), channels.value, left

    def close(self) -> None:
        """End the plugin."""
        ctypes.CFUNCTYPE(_INT, _POINTER)(self._tuner.end)(self._context)


def _symbol(library: ctypes.CDLL) -> tuple[int, _Tuner]:
    for version in VERSIONS:
        try:
            return version, _Tuner.in_dll(library, f"ncclTunerPlugin_v{version}")
        except ValueError:
            continue
    first, *_, last = (f"ncclTunerPlugin_v{version}" for version in VERSIONS)
    raise LookupError(f"it has no symbol {first} to {last}")


def answer(question: dict[str, Any], load: Callable[..., Plugin] = Plugin) -> dict[str, Any]:
    """Answer a question: a plugin's path, ranks, nodes, and for each call collective, size and costs."""
    try:
        plugin = load(question["library"], question["ranks"], question["nodes"])
    except (OSError, LookupError, RuntimeError) as error:
        return {"error": str(error)}
    asked = [plugin.ask(*call) for call in question["calls"]]
    plugin.close()
    return {"name": plugin.name, "api": plugin.version, "answers": asked, "log": plugin.log}


def main() -> None:
    """Answer the question on standard input; what the plugin prints goes nowhere."""
    out = os.dup(1)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    question = json.load(sys.stdin)
    end_with(question["parent"])
    limit_to(question["memory"], question["seconds"])
    found = answer(question)
    with os.fdopen(out, "w") as file:
        file.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()

"""Prediction and audit of what NCCL runs, and files that change it.

``hk.nccl.predict("all-reduce", "dgx_a100_2box", size="64 MiB")`` gives its pick; ``choices`` of the result
are all that it weighed. The prediction is NCCL's own, by the constants of the version that :data:`VERSION`
names: it ranks algorithms, and says 0.2 to 0.9 of what is measured below 64 MiB (docs/machines.md).

``hk.nccl.audit("topo.xml", "graph.xml")`` judges what NCCL itself wrote, :func:`design_graphs` finds rings
and trees for ``NCCL_GRAPH_FILE``, and :func:`graph_file` lets one communicator read them.
:func:`tuner_table` makes tables for tuner plugins, and :func:`ask_tuner` asks any plugin (docs/nccl.md).
"""

from __future__ import annotations

from hocket.nccl.communicator import graph_file
from hocket.nccl.constants import VERSION
from hocket.nccl.design import GraphDesign, design_graphs
from hocket.nccl.graphs import Graph, read_graph, write_graph
from hocket.nccl.machine import Machine, load_machine
from hocket.nccl.plugin import AskedPick, AskedTuner, ask_tuner
from hocket.nccl.prediction import NcclPrediction, predict
from hocket.nccl.report import Audit, AuditEntry, audit
from hocket.nccl.tuner import TunerRow, TunerTable, read_tuner, tuner_table

__all__ = [
    "VERSION",
    "AskedPick",
    "AskedTuner",
    "Audit",
    "AuditEntry",
    "Graph",
    "GraphDesign",
    "Machine",
    "NcclPrediction",
    "TunerRow",
    "TunerTable",
    "ask_tuner",
    "audit",
    "design_graphs",
    "graph_file",
    "load_machine",
    "predict",
    "read_graph",
    "read_tuner",
    "tuner_table",
    "write_graph",
]


def __dir__() -> list[str]:
    return __all__

"""Steering flows: hashes of switches, ports that lead along paths, probes, and the agent of a host.

>>> import hocket as hk
>>> tor = hk.steering.SwitchHash("linux", seed=12345)
>>> header = hk.steering.Header("10.0.0.1", "10.0.1.1", 4791, protocol="udp")
>>> port = hk.steering.find_port(header, [hk.steering.Stage(tor, 32, 7)])
>>> tor.way(header.by(port), 32)
7
"""

from __future__ import annotations

from hocket.steering.agent import Agent, bind, flow
from hocket.steering.calibration import Calibration, Identified, calibrate, probe_port
from hocket.steering.flows import Flow, Job
from hocket.steering.hashes import (
    ALGORITHMS,
    Header,
    Stage,
    SwitchHash,
    find_label,
    find_port,
    queue_pair_port,
)
from hocket.steering.probes import probe, probe_each

__all__ = [
    "ALGORITHMS",
    "Agent",
    "Calibration",
    "Flow",
    "Header",
    "Identified",
    "Job",
    "Stage",
    "SwitchHash",
    "bind",
    "calibrate",
    "find_label",
    "find_port",
    "flow",
    "probe",
    "probe_each",
    "probe_port",
    "queue_pair_port",
]


def __dir__() -> list[str]:
    return __all__

"""Networks of Linux namespaces on one machine: real packets over switches of the kernel that hash.

docs/testbed.md says what it is good for. It needs Linux and root.
"""

from __future__ import annotations

from hocket_testbed.calibrated import Calibration
from hocket_testbed.clos import ClosSpec, build
from hocket_testbed.clos_plans import ClosPlan, ClosPlans, run_clos_plans
from hocket_testbed.neighbours import learn_fabric
from hocket_testbed.network import NetworkSpec, build_network
from hocket_testbed.ownership import clean
from hocket_testbed.packet_marks import METHODS_IPV6
from hocket_testbed.plan_runs import PlanRun, PlanStudy, run_plans
from hocket_testbed.ports import METHODS, Wanted, port_for
from hocket_testbed.rights import what_is_missing
from hocket_testbed.rings import Ring, all_reduce
from hocket_testbed.steered import Steered, SteeredRow, steer_flows
from hocket_testbed.study import Study, StudyRun, run_study

__all__ = [
    "METHODS",
    "METHODS_IPV6",
    "Calibration",
    "ClosPlan",
    "ClosPlans",
    "ClosSpec",
    "NetworkSpec",
    "PlanRun",
    "PlanStudy",
    "Ring",
    "Steered",
    "SteeredRow",
    "Study",
    "StudyRun",
    "Wanted",
    "all_reduce",
    "build",
    "build_network",
    "clean",
    "learn_fabric",
    "port_for",
    "run_clos_plans",
    "run_plans",
    "run_study",
    "steer_flows",
    "what_is_missing",
]


def __dir__() -> list[str]:
    return __all__

"""The requirements of a testbed: programs, rights and features of the kernel."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from shutil import which
from threading import Thread

from hocket.errors import InfeasibleError
from hocket.installation import Part
from hocket_testbed.namespaces import leave_for_new

__all__ = ["check_rights", "part", "what_is_missing"]

_SEED = Path("/proc/sys/net/ipv4/fib_multipath_hash_seed")


def check_rights() -> None:
    """Check that a testbed can be built here.

    Raises
    ------
    InfeasibleError
        Saying in one line what is missing.
    """
    missing = what_is_missing()
    if missing is not None:
        raise InfeasibleError(None, f"no testbed can be built here: {missing[0]}", missing[1])


def part() -> Part:
    """Report for ``hocket doctor`` whether a testbed can be built here."""
    purpose, missing = "`testbed`: networks of Linux namespaces", what_is_missing()
    if missing is None:
        return Part("namespaces", purpose, "can be built")
    return Part("namespaces", purpose, None, f"{missing[1]}: {missing[0]}")


def what_is_missing() -> tuple[str, str] | None:
    """Describe what is missing for a testbed and what would help, or None if it can be built."""
    if sys.platform != "linux":
        return "network namespaces are of Linux", "run it on Linux"
    for program in ("ip", "tc"):
        if which(program) is None:
            return f"there is no program {program}", "install iproute2"
    found: list[tuple[str, str] | None] = []
    # A thread of its own, since it goes into a namespace of its own.
    thread = Thread(target=lambda: found.append(_tried()))
    thread.start()
    thread.join()
    return found[0]


def _tried() -> tuple[str, str] | None:
    """Try in a namespace that goes with the thread."""
    try:
        leave_for_new()
    except OSError as error:
        return f"network namespaces need root ({error.strerror})", "run it as root"
    if not _SEED.exists():
        return "the kernel has no fib_multipath_hash_seed", "use Linux 6.11 or later"
    for program, arguments, feature in (
        ("ip", "link add testbed0 type veth peer name testbed1", "pairs of interfaces (veth)"),
        ("tc", "qdisc add dev testbed0 root handle 1: htb default 1", "the queue htb"),
        (
            "tc",
            "filter add dev testbed0 parent 1: protocol ip prio 1 u32 match u16 0 0xff80 at 2 "
            "flowid 1:2",
            "the filter u32",
        ),
    ):
        done = subprocess.run([program, *arguments.split()], capture_output=True, check=False)
        if done.returncode:
            return f"the kernel has no {feature}", "build it with NET_SCH_HTB, NET_CLS_U32 and VETH"
    return None

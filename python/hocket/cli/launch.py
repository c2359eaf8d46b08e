"""``hocket agent launch``: run a program whose connections the agent steers."""

from __future__ import annotations

from typing import Annotated

from hocket.cli.command import Argument, Option
from hocket.errors import SpecError


def launch(
    command: Annotated[
        list[str],
        Argument(metavar="COMMAND", help="The program and its arguments, after --."),
    ],
    *,
    to: Annotated[
        list[str] | None,
        Option(
            "--to",
            help="Address to which the program connects, such as 10.1.0.1:5201, or "
            "10.1.0.1:5201x4 for four connections. Can be repeated.",
        ),
    ] = None,
    agent: Annotated[
        str | None,
        Option(
            "--agent",
            help="The agent's socket. Default: HOCKET_AGENT_SOCKET, or /run/hocket/agent.sock.",
        ),
    ] = None,
) -> int:
    """Run a program whose connections use the agent's ports (Linux, root).

    For example: hocket agent launch --to 10.1.0.1:5201 -- iperf3 -c 10.1.0.1
    """
    from hocket.steering.agent import Agent
    from hocket.steering.cgroup import launch as launched
    from hocket.steering.cgroup import parse_target

    if not to:
        raise SpecError(
            "to", "it is missing", "say whereto the program connects: --to 10.1.0.1:5201"
        )
    targets = [parse_target(each) for each in to]
    return launched(command, targets, agent=Agent(agent))

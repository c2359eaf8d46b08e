"""``hocket launch``: run a program whose connections the agent steers."""

from __future__ import annotations

from typing import Annotated

import typer

from hocket.errors import SpecError


def launch(
    command: Annotated[
        list[str],
        typer.Argument(help="The program and its arguments, after --.", show_default=False),
    ],
    *,
    to: Annotated[
        list[str] | None,
        typer.Option(
            "--to",
            help="Whereto it connects, as 10.1.0.1:5201, or 10.1.0.1:5201x4 for four connections; "
            "may be repeated.",
        ),
    ] = None,
    agent: Annotated[
        str | None,
        typer.Option(
            "--agent",
            help="The agent's socket; default: HOCKET_AGENT_SOCKET, or /run/hocket/agent.sock.",
        ),
    ] = None,
) -> None:
    """Run a program whose connections leave from the ports that the agent gives (Linux, root)."""
    from hocket.steering.agent import Agent
    from hocket.steering.cgroup import launch as launched
    from hocket.steering.cgroup import parse_target

    if not to:
        raise SpecError(
            "to", "it is missing", "say whereto the program connects: --to 10.1.0.1:5201"
        )
    targets = [parse_target(each) for each in to]
    code = launched(command, targets, agent=Agent(agent))
    if code:
        raise typer.Exit(code)

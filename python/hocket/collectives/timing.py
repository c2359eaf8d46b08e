"""Choices of the models of time: order of links, switching of devices, latency model."""

from __future__ import annotations

from typing import Literal

LinkOrder = Literal["ready", "plan", "priority"]
"""Links serve messages as they are ready, in the order of the plan, or by it among those that wait."""
Switching = Literal["store-and-forward", "cut-through"]
"""Devices pass a message on once it is whole, or as it arrives."""
Latency = Literal["overlapped", "occupying"]
"""A link serves others during its latency, or is occupied."""

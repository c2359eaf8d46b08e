"""The result of an examination as JSON."""

from __future__ import annotations

from typing_extensions import TypedDict


class PartData(TypedDict):
    """Something that may be installed."""

    name: str
    purpose: str
    found: str | None
    """Its version or place; None where it is missing."""
    remedy: str | None
    """How to get it, where it is missing."""


class InstallationData(TypedDict):
    """The installed parts."""

    hocket: str
    python: str
    platform: str
    cores: int
    parts: list[PartData]

"""The installed parts: the package and its optional parts, with their purpose."""

from hocket.installation.components import Installation, Part, examine

__all__ = ["Installation", "Part", "examine"]

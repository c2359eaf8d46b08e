"""Plans, proves, bounds and simulates collective communication on any network."""

from hocket._core import __version__

__all__ = ["__version__"]

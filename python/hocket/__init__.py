"""Plan, prove, bound and simulate collective communication on any network.

>>> import hocket as hk
>>> topo = hk.topology.mesh(4, 4, bandwidth="25 GB/s", latency="21 ns")
>>> plan = hk.plan("all-reduce", topo, size="256 MB", algorithm="ring")
>>> run = hk.simulate(plan.verify())

What a program uses is imported when it is first asked for: the command line is then ready for Ctrl-C
before anything that takes long to import. Errors are there from the start,
for ``except hk.TransportError``.
"""

from hocket.errors import Error as Error
from hocket.errors import InfeasibleError as InfeasibleError
from hocket.errors import SimulationError as SimulationError
from hocket.errors import SpecError as SpecError
from hocket.errors import TransportError as TransportError
from hocket.errors import VerificationError as VerificationError

TYPE_CHECKING = False  # typing itself takes longer to import than this file
if TYPE_CHECKING:
    from hocket._core import __version__ as __version__
    from hocket._public import *  # noqa: F403


if not TYPE_CHECKING:  # which would take every name for one of the package

    def __getattr__(name: str) -> object:
        """Return a module of the package, or a public name."""
        from importlib import import_module
        from importlib.util import find_spec

        if name == "__all__":
            return __dir__()
        unknown = AttributeError(f"module {__name__!r} has no attribute {name!r}")
        if name != "__version__":
            if name.startswith("__"):
                raise unknown
            if name.isidentifier() and find_spec(f"{__name__}.{name}") is not None:
                return import_module(f"{__name__}.{name}")
        from hocket._moved import MOVED, REMEDY

        if name in MOVED:  # an error that `from hocket import NAME` shows as well
            raise ImportError(f"hocket.{name} is the package {MOVED[name]} now; {REMEDY}")
        public = vars(import_module(f"{__name__}._public"))
        if name not in public or (name.startswith("_") and not name.startswith("__")):
            raise unknown
        globals()[name] = public[name]
        return public[name]


def __dir__() -> list[str]:
    from hocket import _public

    return sorted(
        name for name in vars(_public) if name == "__version__" or not name.startswith("_")
    )

"""Files of other runtimes."""

from collections.abc import Callable
from typing import final

from hocket._core import Plan

__all__ = [
    "Checked",
    "Exported",
    "Finding",
    "Raised",
    "check_msccl",
    "check_mscclpp",
    "check_nccl_graph",
    "export_msccl",
    "export_mscclpp",
    "raise_msccl",
    "raise_mscclpp",
]

@final
class Finding:
    """One thing that is wrong with a file."""

    @property
    def code(self) -> str: ...
    @property
    def line(self) -> int | None: ...
    @property
    def place(self) -> str: ...
    @property
    def detail(self) -> str: ...
    @property
    def text(self) -> str: ...

@final
class Checked:
    """The kind of a file and its faults; sizes in bytes."""

    @property
    def name(self) -> str: ...
    @property
    def collective(self) -> str: ...
    @property
    def ranks(self) -> int: ...
    @property
    def chunks(self) -> int: ...
    @property
    def in_place(self) -> bool: ...
    @property
    def out_of_place(self) -> bool: ...
    @property
    def protocol(self) -> str: ...
    @property
    def blocks(self) -> int: ...
    @property
    def steps(self) -> int: ...
    @property
    def scratch_chunks(self) -> int: ...
    @property
    def min_bytes(self) -> int: ...
    @property
    def max_bytes(self) -> int | None: ...
    @property
    def contents_known(self) -> bool: ...
    @property
    def count(self) -> int: ...
    @property
    def findings(self) -> list[Finding]: ...
    @property
    def notes(self) -> list[str]: ...

@final
class Exported:
    """The written file."""

    @property
    def chunks(self) -> int: ...
    @property
    def channels(self) -> int: ...
    @property
    def blocks(self) -> int: ...
    @property
    def steps(self) -> int: ...
    @property
    def scratch_chunks(self) -> int: ...
    @property
    def in_place(self) -> bool: ...
    @property
    def notes(self) -> list[str]: ...

@final
class Raised:
    """The program of a file as transfers of a plan, right one after the other."""

    @property
    def collective(self) -> str: ...
    @property
    def ranks(self) -> int: ...
    @property
    def chunks(self) -> int: ...
    @property
    def name(self) -> str: ...
    @property
    def transfers(self) -> list[tuple[int, int, int, int, bool]]: ...
    @property
    def unused(self) -> int: ...

def check_msccl(
    text: str,
    *,
    chunks_per_message: int = 1,
    runs: bool = False,
    progress: Callable[[str, int, int], None] | None = None,
) -> Checked:
    """Read and judge a file of MSCCL; where it `runs`, on integers as well.

    Raises
    ------
    hocket.SpecError
        If it cannot be read.
    """

def check_mscclpp(
    text: str,
    *,
    chunks_per_message: int = 1,
    runs: bool = False,
    progress: Callable[[str, int, int], None] | None = None,
) -> Checked:
    """Read and judge a file of MSCCL++; where it `runs`, on integers as well.

    Raises
    ------
    hocket.SpecError
        If it cannot be read.
    """

def check_nccl_graph(text: str) -> tuple[list[Finding], list[str]]:
    """Check a file of NCCL's graphs: broken rules of NCCL's, and notes.

    Raises
    ------
    hocket.SpecError
        If it cannot be read.
    """

def export_msccl(
    plan: Plan,
    write: Callable[[str], object],
    *,
    protocol: str = "Simple",
    channels: int | None = None,
    instances: int = 1,
    in_place: bool | None = None,
    min_bytes: int = 0,
    max_bytes: int | None = None,
    progress: Callable[[str, int, int], None] | None = None,
) -> Exported:
    """Write a plan as a file of MSCCL, part by part, to `write`; sizes in bytes.

    Raises
    ------
    hocket.InfeasibleError
        If the format cannot express it, or no runtime loads it.
    """

def export_mscclpp(
    plan: Plan,
    write: Callable[[str], object],
    *,
    protocol: str = "Simple",
    channels: int | None = None,
    instances: int = 1,
    in_place: bool | None = None,
    min_bytes: int = 0,
    max_bytes: int | None = None,
    progress: Callable[[str, int, int], None] | None = None,
) -> Exported:
    """Write a plan as a file of MSCCL++, part by part, to `write`; sizes in bytes.

    Raises
    ------
    hocket.InfeasibleError
        If the format cannot express it, or the executor cannot hold it.
    """

def raise_msccl(text: str) -> Raised:
    """Return the transfers of a file of MSCCL: first chunk, count, sender, receiver, whether it sums.

    Raises
    ------
    hocket.SpecError
        If it cannot be read.
    hocket.InfeasibleError
        If no plan can say what it does.
    """

def raise_mscclpp(text: str) -> Raised:
    """Like :func:`raise_msccl`, for a file of MSCCL++.

    Raises
    ------
    hocket.SpecError
        If it cannot be read.
    hocket.InfeasibleError
        If no plan can say what it does.
    """

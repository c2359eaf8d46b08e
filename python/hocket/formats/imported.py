"""Files of runtimes, read as plans."""

from __future__ import annotations

from os import PathLike
from typing import TYPE_CHECKING

from hocket._checks import path_of
from hocket._options import options_of
from hocket.collectives.collective import Progress
from hocket.errors import InfeasibleError, SpecError
from hocket.formats.checked import placed, read_file
from hocket.formats.options import ImportOptions, heeded

if TYPE_CHECKING:
    from hocket.plans.plan import Plan
    from hocket.topology.sources import TopologyLike


def import_plan(
    path: str | PathLike[str],
    topology: TopologyLike,
    *,
    options: ImportOptions | None = None,
    progress: Progress | None = None,
) -> Plan:
    """Read what a file of a runtime does as a plan, and prove it.

    Parameters
    ----------
    path
        A program of MSCCL or MSCCL++, or graphs of NCCL (``NCCL_GRAPH_DUMP_FILE``); which of them is found
        by its contents.
    topology
        The network that it is for; of graphs of NCCL the dump of the machine (``NCCL_TOPO_DUMP_FILE``).
    options
        How it is read.
    progress
        Called with stage, done and total; an exception stops the work.

    Returns
    -------
    Plan
        Proved; it can be simulated, compared, saved and written for another runtime.

    Raises
    ------
    SpecError
        If the file is wrong, of a kind that says no plan, or of other ranks than the topology has.
    InfeasibleError
        If the topology lacks a link, or no plan can say what the file does.
    VerificationError
        If the plan does not do what its collective asks.

    Examples
    --------
    >>> import hocket as hk
    >>> plan = hk.import_plan("plan.xml", "dgx1_v100")  # doctest: +SKIP
    >>> hk.simulate(plan).gap  # doctest: +SKIP
    """
    file = path_of("path", path)
    text, kind = read_file(file)
    if kind.plan is None:
        why = f"{kind.title} says no plan"
        right = "programs of MSCCL and MSCCL++ and graphs of NCCL do"
        raise SpecError(None, why, right, origin=str(file))
    said = heeded(options_of(ImportOptions, options, {}), kind, kind.imports)
    try:
        plan = kind.plan(text, file, topology, said, progress)
    except SpecError as error:
        raise placed(file, error) from None
    except InfeasibleError as error:
        raise error.but(origin=error.origin or str(file)) from None
    return plan.verify(progress=progress)

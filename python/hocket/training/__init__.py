"""Training: how long an iteration takes, and what of it is communication.

:func:`train` simulates iterations of any model on any network (:mod:`hocket.training.run`): layers
(:mod:`hocket.workload.costs`) are spread over NPUs (`parallel`, `stages`) and described to the core
(`build`), which makes and runs a graph of computation and collectives. These take what `network` says.
:mod:`hocket.training.epochs` is the short sum of a data-parallel epoch (Laskar et al. 2024).
"""

from typing import TYPE_CHECKING

from hocket._moved import renamed
from hocket.training.comparison import TrainingComparison, TrainingRow, compare_training
from hocket.training.epochs import (
    AllReduce,
    Epoch,
    Iteration,
    LayerAllReduce,
    epoch,
    iteration,
    iterations,
)
from hocket.training.memory import Memory
from hocket.training.options import TrainingOptions
from hocket.training.parallel import Parallel
from hocket.training.result import Breakdown, LayerTime, MeanChoice, TrainingRun
from hocket.training.run import train
from hocket.training.search import ParallelSearch, search_parallels

__all__ = [
    "AllReduce",
    "Breakdown",
    "Epoch",
    "Iteration",
    "LayerAllReduce",
    "LayerTime",
    "MeanChoice",
    "Memory",
    "Parallel",
    "ParallelSearch",
    "TrainingComparison",
    "TrainingOptions",
    "TrainingRow",
    "TrainingRun",
    "compare_training",
    "epoch",
    "iteration",
    "iterations",
    "search_parallels",
    "train",
]


def __dir__() -> list[str]:
    return __all__


if not TYPE_CHECKING:  # which would take every name for one of the package
    __getattr__ = renamed(
        __name__,
        {
            "Chosen": "MeanChoice",
            "Search": "ParallelSearch",
            "columns": "TrainingRun.columns",
        },
    )

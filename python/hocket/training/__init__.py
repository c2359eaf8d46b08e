"""Training: how long an iteration takes, and what of it is communication.

:mod:`hocket.training.epochs` is the short sum of a data-parallel epoch (Laskar et al. 2024).
"""

from hocket.training.epochs import Epoch, Iteration, LayerAllReduce, epoch, iteration, iterations

__all__ = ["Epoch", "Iteration", "LayerAllReduce", "epoch", "iteration", "iterations"]

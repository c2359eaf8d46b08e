"""Shortest plans on a time-expanded network: an exact solver, a bound, a check.

Needs OR-Tools (``pip install 'hocket[exact]'``), but only where the bound alone does not settle it.
"""

from hocket.exact.bound import least_slots
from hocket.exact.clusters import solve_clustered
from hocket.exact.plan import SlotPlan, check
from hocket.exact.problem import SlotProblem
from hocket.exact.solve import solve

__all__ = ["SlotPlan", "SlotProblem", "check", "least_slots", "solve", "solve_clustered"]

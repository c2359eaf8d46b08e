"""Shortest plans on a time-expanded network: an exact solver, a bound, a check.

Needs OR-Tools (``pip install 'hocket[exact]'``), but only where the bound alone does not settle it.
"""

from hocket.plans.exact.bound import least_slots
from hocket.plans.exact.plan import SlotPlan, check
from hocket.plans.exact.problem import SlotProblem
from hocket.plans.exact.solve import solve
from hocket.plans.exact.windows import solve_windows

__all__ = ["SlotPlan", "SlotProblem", "check", "least_slots", "solve", "solve_windows"]

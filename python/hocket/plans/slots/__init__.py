"""Shortest plans on a time-expanded network: an exact solver, a bound, a check.

Needs OR-Tools (``pip install 'hocket[exact]'``), but only where the bound alone does not settle it.
"""

from hocket.plans.slots.bound import least_slots
from hocket.plans.slots.plan import SlotPlan, check
from hocket.plans.slots.problem import SlotProblem
from hocket.plans.slots.solve import solve
from hocket.plans.slots.windows import solve_windows

__all__ = ["SlotPlan", "SlotProblem", "check", "least_slots", "solve", "solve_windows"]

"""Plans by algorithms of one's own: asked for, checked and proved."""

from __future__ import annotations

import sys
from types import FrameType

from hocket import _core
from hocket._memory import memory_limit
from hocket.errors import Error, InfeasibleError, SpecError, VerificationError
from hocket.plans.builder import PlanBuilder
from hocket.plans.plan import Plan
from hocket.plans.registry import Own, line_of, raised
from hocket.plans.schedule import Schedule
from hocket.plans.synthesis import PlanOptions
from hocket.units import shown


def user_plan(
    own: Own, collective: _core.Collective, topology: _core.Topology, options: PlanOptions
) -> Plan:
    """Plan by an algorithm of one's own.

    Returns
    -------
    Plan
        Proved right.

    Raises
    ------
    InfeasibleError
        If it is for other kinds, or says so itself.
    SpecError
        If it raises anything else, or gives what is not a plan for this.
    VerificationError
        If its plan is wrong, with what is wrong with it.
    """
    origin = f"algorithm {own.name!r}"
    if collective.kind not in own.kinds:
        kinds = ", ".join(own.kinds)
        raise InfeasibleError(None, f"it does {kinds}, not {collective.kind}", origin=own.name)
    try:
        made = own.function(topology, collective, options)
        plan = _as_plan(made, own)
    except VerificationError as error:
        raise _wrong(own, error) from None
    except (InfeasibleError, SpecError) as error:
        raise error.within(origin) from None
    except Error as error:
        raise SpecError(None, str(error), origin=origin) from None
    except KeyboardInterrupt:
        raise  # Ctrl-C ends whatever runs
    except BaseException as error:  # SystemExit as well: only the command line ends hocket
        raise SpecError(None, f"raised {raised(error)}", origin=origin) from error
    if plan.collective != collective or plan.topology != topology:
        other = "collective" if plan.collective != collective else "topology"
        raise SpecError(None, f"gave a plan for another {other}", "use what it is given", origin)
    if topology.may_have_equal_paths and plan.routing == "single":
        plan = Plan(plan.core.routed(options.routing), plan.own_schedule)
    try:
        return plan.verify()
    except VerificationError as error:
        asked = (topology, collective, options)
        raise _wrong(own, error, _line(own, asked, error.violations[0])) from None


def _as_plan(made: object, own: Own) -> Plan:
    """Return the plan that a function's result is or makes."""
    if isinstance(made, PlanBuilder):
        made = made.build(name=own.name)
    elif isinstance(made, Schedule):
        made = Plan(_core.plan_of(made.core, memory_limit()), made)
    if not isinstance(made, Plan):
        what = "nothing" if made is None else shown(made)
        raise SpecError(None, f"gave {what}", "return a Plan, a PlanBuilder or a Schedule")
    return made


def _wrong(own: Own, error: VerificationError, line: str = "") -> VerificationError:
    return VerificationError(f"algorithm {own.name!r}: {error.why}{line}", error.violations)


def _line(
    own: Own, asked: tuple[_core.Topology, _core.Collective, PlanOptions], wrong: _core.Violation
) -> str:
    """Return the line of a function that sends a wrong transfer: call it again and watch it."""
    from traceback import walk_stack

    if wrong.transfer is None:
        return ""
    number, before = wrong.transfer, sys.getprofile()
    found: dict[int, str] = {}

    def watch(frame: FrameType, event: str, called: object) -> None:
        builder = getattr(called, "__self__", None) if event == "c_return" else None
        if isinstance(builder, PlanBuilder) and id(builder) not in found and len(builder) > number:
            found[id(builder)] = line_of([*walk_stack(frame)][::-1])

    sys.setprofile(watch)
    try:
        made = own.function(*asked)
        sys.setprofile(before)
        _as_plan(made, own).verify()
    except VerificationError as again:
        return found.get(id(made), "") if again.violations[0] == wrong else ""
    except Exception:
        pass  # it does something else each time
    finally:
        sys.setprofile(before)
    return ""

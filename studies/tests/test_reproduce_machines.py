"""Published sweeps are predicted as docs/machines-accuracy.md says, and NCCL's picks are found."""

from __future__ import annotations

import pytest

from hocket_studies.machines import MachinesResult, reproduce_machines

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def result() -> MachinesResult:
    return reproduce_machines()


def test_shipped_sets_are_predicted_as_the_documentation_says(result: MachinesResult) -> None:
    """Medians and percentiles of what was not fitted; the limits are those the project set itself."""
    checks = {(check.question, check.what): check for check in result.checks}
    below, above = checks["alone", "one node"].split(1 << 20)
    assert below.median <= 0.06
    assert above.median <= 0.04
    assert checks["alone", "one node"].spread().p90 <= 0.15
    assert checks["family", "H100, one node"].spread().median <= 0.04
    switches = checks["switches that sum", "H100, one node"].spread()
    assert switches.rows >= 6
    assert switches.p90 <= 0.04


def test_observed_picks_of_the_shipped_sets(result: MachinesResult) -> None:
    assert len(result.picks) >= 18
    assert result.right_picks >= 0.95 * len(result.picks)

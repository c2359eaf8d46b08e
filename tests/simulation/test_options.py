"""What each fidelity uses, and the words where it does not: elsewhere tests look at the parts."""

from __future__ import annotations

import pytest

from hocket import PacketOptions, SpecError
from hocket.simulation.options import FIDELITIES, KEYWORDS, fidelity_options

HEED = {
    "order": ("plan", ["link", "packet"]),
    "switching": ("cut-through", ["link", "dimension"]),
    "latency_model": ("occupying", ["link", "dimension"]),
    "flow_rate": ("1 GB/s", ["flow"]),
    "packet_size": ("4 KiB", ["packet"]),
    "flit_size": ("256 B", ["packet"]),
    "header_flits": (1, ["packet"]),
    "virtual_channels": (2, ["packet"]),
    "buffer_flits": (64, ["packet"]),
    "clock": ("1 GHz", ["packet"]),
    "reduction_rate": ("1 GB/s", ["packet"]),
}


def test_every_option_has_a_row() -> None:
    assert set(HEED) == set(KEYWORDS)


@pytest.mark.parametrize("fidelity", FIDELITIES)
@pytest.mark.parametrize("option", HEED)
def test_what_is_not_heeded_is_refused(option: str, fidelity: str) -> None:
    value, use = HEED[option]
    if fidelity in use:
        options = fidelity_options(fidelity, {option: value})
        assert options == FIDELITIES[fidelity](**{option: value})
        assert options != FIDELITIES[fidelity]()
        return
    with pytest.raises(SpecError) as caught:
        fidelity_options(fidelity, {option: value})
    assert (caught.value.field, caught.value.why, caught.value.remedy) == (
        option,
        f"{fidelity} fidelity does not use it",
        f"leave it out, or use {' or '.join(use)} fidelity",
    )


def test_words_about_a_fidelity_that_there_is_not() -> None:
    with pytest.raises(SpecError) as caught:
        fidelity_options("cell", {})
    assert str(caught.value) == (
        "fidelity: there is no 'cell'; use link, flow, packet, dimension or packet:mcm"
    )


def test_a_keyword_goes_over_a_preset() -> None:
    mcm = fidelity_options("packet:mcm", {})
    assert mcm == PacketOptions(clock="1 GHz")
    assert fidelity_options("packet:mcm", {"clock": "2 GHz"}) == PacketOptions(clock="2 GHz")
    assert fidelity_options(mcm, {"flit_size": None}) == mcm

"""``graph_file``: the variable of NCCL is set while one communicator is made, and no longer."""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

import hocket as hk

from . import dumps

VARIABLE = "NCCL_GRAPH_FILE"


class Group:
    """A process group, whose communicator is made at its first call, or with it where it has a device."""

    def __init__(self, torch: Torch, device: str | None = None, backend: str = "cuda:nccl") -> None:
        # hocket keeps the device of a group itself, or else takes the current one.
        self.bound_device_id = None if "hocket" in backend else device
        self.own, self.backend, self.read = device or "cuda:0", backend, None
        self.is_made = False
        torch.distributed.distributed_c10d._world.pg_map[self] = None
        if device is not None:
            self.call()

    def _get_backend(self, device: str) -> SimpleNamespace:
        assert device == "cuda"
        return SimpleNamespace(bound_device=self.own)

    def call(self) -> None:
        if not self.is_made:
            self.is_made, self.read = True, os.environ.get(VARIABLE)


class Torch(SimpleNamespace):
    """What is asked of PyTorch."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, Group]] = []
        self.float64, self.device = "float64", str
        world = SimpleNamespace(pg_map={})

        def all_reduce(element: SimpleNamespace, group: Group) -> None:
            self.calls.append((element.device, group))
            group.call()

        self.distributed = SimpleNamespace(
            is_available=lambda: True,
            distributed_c10d=SimpleNamespace(_world=world),
            get_backend_config=lambda group: group.backend,
            all_reduce=all_reduce,
        )

    def zeros(self, count: int, dtype: str, device: str) -> SimpleNamespace:
        assert (count, dtype) == (1, "float64")
        return SimpleNamespace(device=device, item=lambda: 0.0)


@pytest.fixture
def torch(monkeypatch: pytest.MonkeyPatch) -> Torch:
    made = Torch()
    monkeypatch.setitem(sys.modules, "torch", made)
    monkeypatch.setitem(sys.modules, "torch.distributed", made.distributed)
    monkeypatch.delenv(VARIABLE, raising=False)
    return made


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "graph.xml"
    path.write_text(dumps.rings_of(dumps.DGX_A100))
    return path


@pytest.mark.parametrize("backend", ["cuda:nccl", "cpu:gloo,cuda:hocket"])
@pytest.mark.parametrize("device", [None, "cuda:3"])
def test_one_group_reads_the_file_and_no_other_does(
    torch: Torch, file: Path, device: str | None, backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = Group(torch)
    monkeypatch.chdir(file.parent)
    with hk.nccl.graph_file("graph.xml"):
        group = Group(torch, device, backend)
        beside = Group(torch, backend="cpu:gloo")
    after = Group(torch)
    for each in (before, beside, after):
        each.call()
    assert [each.read for each in (before, group, beside, after)] == [None, str(file), None, None]
    assert torch.calls == [(device or ("cuda:0" if "hocket" in backend else "cuda"), group)]
    assert VARIABLE not in os.environ


def test_what_fails_inside_leaves_nothing_set(torch: Torch, file: Path) -> None:
    with pytest.raises(ZeroDivisionError), hk.nccl.graph_file(file):
        raise ZeroDivisionError
    with pytest.raises(hk.InfeasibleError, match="2 process groups were made"):  # noqa: SIM117
        with hk.nccl.graph_file(file):
            Group(torch), Group(torch)
    assert not torch.calls
    with hk.nccl.graph_file(file):  # a rank that is not in the group makes none
        pass
    assert VARIABLE not in os.environ


def test_communicators_of_other_libraries(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "torch.distributed", raising=False)
    with hk.nccl.graph_file(file):
        assert os.environ[VARIABLE] == str(file)
    assert VARIABLE not in os.environ


@pytest.mark.parametrize("on", ["1", "true", " YES"])
def test_it_refuses_communicators_that_are_made_later(
    torch: Torch, file: Path, on: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TORCH_NCCL_USE_COMM_NONBLOCKING", on)
    with (
        pytest.raises(hk.InfeasibleError, match=r"NONBLOCKING.*set it to 0"),
        hk.nccl.graph_file(file),
    ):
        pass
    monkeypatch.setenv("TORCH_NCCL_USE_COMM_NONBLOCKING", "0")
    with hk.nccl.graph_file(file):
        Group(torch)


def test_it_refuses_a_second_one_at_once(torch: Torch, file: Path) -> None:
    found: list[str] = []

    def other() -> None:
        try:
            with hk.nccl.graph_file(file):
                found.append("made")
        except hk.InfeasibleError as error:
            found.append(error.why)

    with hk.nccl.graph_file(file):
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        assert os.environ[VARIABLE] == str(file)
    assert found == ["a communicator is being made by a file of graphs already"]
    other()
    assert found[1] == "made"


def test_it_refuses_what_nccl_would_not_take(
    torch: Torch, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(hk.SpecError, match=r"none\.xml"), hk.nccl.graph_file(tmp_path / "none.xml"):
        pass
    (tmp_path / "no.xml").write_text("<graphs>")
    with pytest.raises(hk.SpecError, match=r"no\.xml"), hk.nccl.graph_file(tmp_path / "no.xml"):
        pass
    monkeypatch.setenv(VARIABLE, "other.xml")
    with pytest.raises(hk.SpecError, match="is set, so that every"), hk.nccl.graph_file(file):
        pass
    assert os.environ[VARIABLE] == "other.xml"
    monkeypatch.delenv(VARIABLE)
    with hk.nccl.graph_file(file):
        pass

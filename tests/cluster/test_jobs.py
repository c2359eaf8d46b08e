"""Jobs: what they exchange, how long they compute, and files of them."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from math import prod
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import hocket as hk
from hocket.cli import schema
from hocket.cluster.yaml import ComputeEntry, Defaults, JobEntry, JobsFile, from_text
from hocket.routing import COLLECTIVES, MODELS, Compute, Job, JobList, cluster, load_jobs, place

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "jobs.yml"
JARGON = ("input should", "valid ", "dictionary", "instance", "validation", "NoneType", "Tag", "<")
SECOND = 10**12
GRIDS = {"hierarchical-ring": (2, 4), "hierarchical": (2, 2, 2), "ring-2d": (4, 2)}
PLAIN = {"parameters": 10**9, "compute": "1 s"}


def ceil(numerator: int, denominator: int) -> int:
    return -(-numerator // denominator)


# Jobs.


@pytest.mark.parametrize(
    ("model", "copy", "gradients"),
    [
        ("bloom", 48, ceil(4 * 176 * 10**9, 48)),
        ("gpt3-175b", 64, 10_937_500_000),
        ("llama2-70b", 128, 2_187_500_000),
    ],
)
@pytest.mark.parametrize("data", [1, 2, 4, 8])
def test_shipped_models(model: str, copy: int, gradients: int, data: int) -> None:
    job = Job("j", model=model, data=data)
    assert (job.gpus_per_replica, job.gpus, job.gradient_bytes) == (copy, copy * data, gradients)
    assert (job.iterations, job.arrival_ps, job.rounds, job.algorithm) == (10, 0, "data", "ring")
    assert replace(job, bytes_per_parameter=2).gradient_bytes == ceil(gradients, 2)
    assert replace(job, arrival="1.5 ms").arrival_ps == 1_500_000_000


@pytest.mark.parametrize(("data", "milliseconds"), [(2, 1173), (4, 1760), (8, 2053)])
def test_a_lone_ring_takes_what_the_study_measured(data: int, milliseconds: int) -> None:
    job = Job("j", model="bloom", data=data)
    of_flow = ceil(ceil(4 * 176 * 10**9, 48), data)
    time = Fraction(2 * (data - 1) * of_flow, 12_500_000_000)
    assert round(time * 1000) == milliseconds
    plan = job.all_reduce()
    assert plan is not None
    assert hk.simulate(plan.verify()).time_ps == ceil(time.numerator * SECOND, time.denominator)


@pytest.mark.parametrize(
    ("model", "microseconds"),
    [("bloom", 1_238_769), ("gpt3-175b", 1_009_615), ("llama2-70b", 2_692_308)],
)
def test_compute_of_the_released_study(model: str, microseconds: int) -> None:
    for data in (2, 8):
        job = Job("j", model=model, data=data, compute="paper")
        assert round(job.compute_ps / 10**6) == microseconds
    known = MODELS[model]
    work = Fraction(6 * known.parameters * known.training_tokens, 312 * 10**12 * 10**9)
    assert 0 <= job.compute_ps - work * SECOND < 1
    own = {"parameters": known.parameters, "training_tokens": known.training_tokens}
    assert Job("j", **own, compute="paper").compute_ps == job.compute_ps  # type: ignore[arg-type]


def test_compute_by_operations() -> None:
    compute = Compute(tokens_per_iteration=10**6, peak="1 PFLOP/s", efficiency=0.4)
    job = Job("j", parameters="13e9", data=5, compute=compute)
    assert job.compute_ps == 6 * 13 * 10**9 * 10**6 * SECOND // (5 * 4 * 10**14)
    # 4 micro-batches for each of 4 stages: idle for 3 of 16.
    piped = replace(job, pipeline=4, tensor=2, data=5)
    assert piped.compute_ps * 8 * 16 == job.compute_ps * 19
    few = replace(piped, compute=replace(compute, micro_batches=1))
    assert few.compute_ps * 8 == job.compute_ps * 4
    # BLOOM's 384 A100 took about 100 s for an iteration (Le Scao et al. 2022: 156 TFLOP/s).
    bloom = Job("j", model="bloom", data=8)
    assert 60 * SECOND < bloom.compute_ps < 110 * SECOND
    batch = Compute(tokens_per_iteration=2048 * 2048)
    assert replace(bloom, compute=batch).compute_ps == bloom.compute_ps
    # Twice the copies share the same batch.
    assert abs(2 * replace(bloom, data=16).compute_ps - bloom.compute_ps) <= 2


def test_measured_compute() -> None:
    assert Job("j", model="bloom", compute="1.2 s").compute_ps == 12 * SECOND // 10
    assert Job("j", parameters=1, compute="0 s").compute_ps == 0


def test_a_job_may_differ_from_its_model() -> None:
    job = Job("j", model="bloom", tensor=8, pipeline=6, parameters=176_000_000_000)
    assert (job.tensor, job.pipeline, job.gpus_per_replica) == (8, 6, 48)
    assert Job("j", **PLAIN).gpus_per_replica == 1  # type: ignore[arg-type]
    assert replace(job, data=3) == Job("j", model="bloom", tensor=8, pipeline=6, data=3)


@pytest.mark.parametrize("collective", COLLECTIVES)
def test_every_collective_can_be_planned(collective: str) -> None:
    grid = GRIDS.get(collective)
    for data in (8,) if grid else (3, 5, 8):
        job = Job("j", model="gpt3-175b", data=data, collective=collective, grid=grid)
        plan = job.all_reduce()
        assert plan is not None
        plan.verify()
        assert plan.algorithm == job.algorithm
        assert plan.collective.size == job.gradient_bytes
        assert plan.topology.npu_count == data == prod(grid or [data])
    assert replace(job, data=1, collective="ring", grid=None).all_reduce() is None


def test_what_cannot_be_planned_names_its_job() -> None:
    with pytest.raises(hk.SpecError, match=r"^job 'few': the data .* of 4 B cannot be cut into 8"):
        Job("few", parameters=1, data=8, compute="1 s").all_reduce()
    with pytest.raises(hk.SpecError, match=r"^job 'many': .* of memory"):
        Job("many", **PLAIN, data=10**5).all_reduce()  # type: ignore[arg-type]


def test_grids_are_what_the_name_says() -> None:
    def kinds(collective: str) -> list[str]:
        plan = Job("j", **PLAIN, data=8, collective=collective, grid=[2, 4]).all_reduce()  # type: ignore[arg-type]
        assert plan is not None
        return [kind for kind, *_ in plan.topology.dimensions]

    assert kinds("hierarchical-ring") == ["Ring", "Ring"]
    assert kinds("hierarchical") == ["FullyConnected", "FullyConnected"]


BAD_JOBS = [
    ({}, ["model: there is none", "bloom, gpt3-175b, llama2-70b, or parameters"]),
    ({"model": "gpt3"}, ["model: there is no 'gpt3'", "did you mean 'gpt3-175b'?"]),
    ({"model": 3}, ["model: there is no 3", "models are bloom"]),
    ({"model": "bloom", "parameters": "13e9"}, ["parameters: bloom has 1.76e+11, not 1.3e+10"]),
    ({"parameters": 0, "compute": "1 s"}, ["parameters: 0 "]),
    ({"parameters": 1.5, "compute": "1 s"}, ["parameters: 1.5 "]),
    ({"parameters": 9}, ["compute", "no tokens_per_iteration, and no model"]),
    ({"parameters": 9, "compute": "paper"}, ["training_tokens: there are none"]),
    ({"model": "bloom", "compute": 2}, ["compute: 2 ", "'1.2 s'"]),
    ({"model": "bloom", "compute": "slow"}, ["compute: 'slow' "]),
    ({"model": "bloom", "data": 0}, ["data: 0 "]),
    ({"model": "bloom", "tensor": True}, ["tensor: true "]),
    ({"model": "bloom", "iterations": 0}, ["iterations: 0 "]),
    ({"model": "bloom", "arrival": "-1 s"}, ["arrival: '-1 s' "]),
    ({"model": "bloom", "arrival": True}, ["arrival: true "]),
    ({"model": "bloom", "data": 1 << 24}, ["replicas of 48 GPUs", "at most 16777216"]),
    ({"model": "bloom", "placement": "pack"}, ["no 'pack'", "did you mean 'packed'?"]),
    ({"model": "bloom", "placement": []}, ["placement: there is no []", "policies are"]),
    ({"model": "bloom", "placement": "packed", "hosts": ["host1"]}, ["leave one of them out"]),
    ({"model": "bloom", "hosts": "host1"}, ["hosts: 'host1' "]),
    ({"model": "bloom", "hosts": []}, ["hosts: [] "]),
    ({"model": "bloom", "hosts": ["a", "a"]}, ["hosts: 'a' is listed twice"]),
    ({"model": "bloom", "collective": "rings"}, ["no 'rings'", "did you mean 'ring'?"]),
    ({"model": "bloom", "collective": "ring", "grid": [2, 2]}, ["grid: ring has none"]),
    ({"model": "bloom", "collective": "bidirectional-ring", "data": 2}, ["use ring"]),
    ({"model": "bloom", "collective": "ring-2d", "data": 8}, ["grid: there is none", "2 sizes"]),
    (
        {"model": "bloom", "collective": "hierarchical", "data": 8, "grid": [2, 3]},
        ["grid: [2, 3] is 6 ranks", "whose product is data, 8"],
    ),
    (
        {"model": "bloom", "collective": "ring-2d", "data": 8, "grid": [2, 2, 2]},
        ["grid: [2, 2, 2] is not valid", "2 sizes, each 2 or more"],
    ),
    ({"model": "bloom", "collective": "ring-2d", "data": 8, "grid": [8, 1]}, ["1 is too small"]),
    ({"model": "bloom", "rounds": "lockstep"}, ["rounds", "did you mean 'lock-step'?"]),
    ({"model": "bloom", "bytes_per_parameter": 0}, ["bytes_per_parameter: 0 "]),
    ({"parameters": 2**62, "compute": Compute("9e18")}, ["takes more than 100 days"]),
]


@pytest.mark.parametrize(("keys", "parts"), BAD_JOBS)
def test_bad_job(keys: dict[str, object], parts: list[str]) -> None:
    with pytest.raises(hk.SpecError) as error:
        Job("lost", **keys)  # type: ignore[arg-type]
    message = str(error.value)
    assert message.startswith("job 'lost': ")
    assert len(message.splitlines()) == 1
    assert [part for part in parts if part not in message] == []


@pytest.mark.parametrize(
    ("keys", "parts"),
    [
        ({"tokens_per_iteration": "4M"}, ["tokens_per_iteration: '4M' "]),
        ({"peak": -312e12}, ["peak: -312000000000000.0 ", "312 TFLOP/s"]),
        ({"peak": "312 TB/s"}, ["peak", "not a unit of speed"]),
        ({"efficiency": 0}, ["efficiency: 0 "]),
        ({"efficiency": 1.1}, ["efficiency: 1.1 "]),
        ({"efficiency": 45}, ["efficiency: 45 ", "up to 1; did you mean 0.45?"]),
        ({"efficiency": "half"}, ["efficiency: 'half' "]),
        ({"micro_batches": 0}, ["micro_batches: 0 "]),
    ],
)
def test_bad_compute(keys: dict[str, object], parts: list[str]) -> None:
    with pytest.raises(hk.SpecError) as error:
        Compute(**keys)  # type: ignore[arg-type]
    assert [part for part in parts if part not in str(error.value)] == []


def test_bad_names() -> None:
    for name in ("", "a\n", 3, "a" * 201):
        with pytest.raises(hk.SpecError, match=r"^job .*name: .* is not a name"):
            Job(name, **PLAIN)  # type: ignore[arg-type]


# Files.


def test_the_example_fits_the_fabric_of_the_study() -> None:
    jobs = load_jobs(EXAMPLE)
    assert [job.name for job in jobs][:2] == ["bloom-large", "bloom-small"]
    assert {job.model for job in jobs} == set(MODELS)
    assert (len(jobs), jobs.seed) == (5, 1)
    fabric = cluster("clos:32x64")
    assert sum(job.gpus for job in jobs) <= fabric.gpu_count == 2048
    placed = place(fabric, jobs)
    used = [gpu for each in placed for gpu in each.gpus]
    assert len(set(used)) == len(used) == 384 + 192 + 512 + 256 + 512


def test_file(tmp_path: Path) -> None:
    file = tmp_path / "jobs.yml"
    file.write_text(
        "seed: 7\n"
        "defaults: {model: bloom, data: 4, placement: random, arrival: 1 s, compute: paper}\n"
        "jobs:\n"
        "  - {name: a}\n"
        "  - {name: b, parameters: 13e9, tensor: 2, data: 1, hosts: [host3], gpus: 2, arrival: 9 ms,\n"
        "     training_tokens: 2.0e+11}\n"
        "  - {name: c, model: gpt3-175b, iterations: 3, rounds: lock-step, bytes_per_parameter: 2,\n"
        "     collective: hierarchical-ring, grid: [2, 2],\n"
        "     compute: {tokens_per_iteration: 1e6, peak: 1 PFLOP/s, efficiency: 0.3, micro_batches: 9}}\n"
        "  - {name: d, compute: 3 s, placement: null}\n",
        encoding="utf-8",
    )
    jobs = load_jobs(str(file))
    common = {"model": "bloom", "data": 4, "arrival": "1 s"}
    assert jobs == JobList(
        (
            Job("a", **common, placement="random", compute="paper"),  # type: ignore[arg-type]
            Job(
                "b",
                parameters=13 * 10**9,
                tensor=2,
                hosts=("host3",),
                arrival="9 ms",
                training_tokens=2 * 10**11,
                compute="paper",
            ),
            Job(
                "c",
                model="gpt3-175b",
                data=4,
                placement="random",
                arrival="1 s",
                iterations=3,
                rounds="lock-step",
                bytes_per_parameter=2,
                collective="hierarchical-ring",
                grid=(2, 2),
                compute=Compute(10**6, "1 PFLOP/s", 0.3, 9),
            ),
            Job("d", **common, compute="3 s"),  # type: ignore[arg-type]
        ),
        7,
    )
    assert [job.origin for job in jobs] == [f"{file}, line {line}" for line in (4, 5, 7, 10)]


def test_what_a_file_cannot_know_still_has_its_line(tmp_path: Path) -> None:
    file = tmp_path / "jobs.yml"
    small = cluster("clos:16x4")
    for text, says in {
        "{name: b, parameters: 1, hosts: [host8], compute: 1 s}": "hosts: there is no host 'host8'",
        "{name: b, parameters: 1, hosts: [host1], compute: 1 s}": "hosts: host1 is taken by job 'a'",
        "{name: b, model: bloom, data: 2}": "wants 12 hosts of 8 GPUs, and 7 of 8 are free",
    }.items():
        file.write_text(
            f"jobs:\n  - {{name: a, parameters: 1, hosts: [host1], compute: 1 s}}\n  - {text}\n",
            encoding="utf-8",
        )
        with pytest.raises(hk.SpecError) as error:
            place(small, load_jobs(file))
        assert str(error.value).startswith(f"{file}, line 3: job 'b': {says}")


def jobs(*entries: str) -> str:
    return "jobs:\n" + "".join(f"  - {entry}\n" for entry in entries)


def bloom(keys: str) -> str:
    return jobs(f"{{name: big, model: bloom, {keys}}}")


def layers(keys: str) -> str:
    return jobs(f"{{name: net, workload: resnet152, {keys}}}")


ONE = jobs("{name: a, model: bloom}")
BAD = {
    "": ["is empty", "begin with jobs:"],
    "- 1\n": ["is not a mapping"],
    "x: 1\n": ["line 1", "no key 'x'", "keys are seed, defaults, jobs"],
    "seed: 1\n": ["key 'jobs' is missing"],
    "jobs:\n": ["line 1", "jobs", "has no value"],
    "jobs: []\n": ["line 1", "jobs: is empty", "at least one"],
    "jobs: 3\n": ["line 1", "jobs: 3 ", "- {name: big, model: bloom"],
    jobs("bloom"): ["line 2", "jobs[0]", "'bloom' is not a mapping"],
    jobs("{model: bloom}"): ["line 2", "jobs[0]", "'name' is missing"],
    jobs("{name: 3, model: bloom}"): ["line 2", "jobs[0].name: 3 is not text"],
    jobs("{name: a b, model: bloom}"): ["line 2", "job 'a b': name", "no spaces"],
    ONE + "  - {name: a, model: gpt3-175b}\n": ["line 3", "job 'a': name: stands twice"],
    ONE + ONE: ["line 3", "'jobs' stands twice"],
    ONE + "seed: -1\n": ["line 3", "seed: -1 "],
    ONE + "seed: x\n": ["line 3", "seed: 'x' "],
    ONE + "sed: 1\n": ["line 3", "no key 'sed'", "did you mean 'seed'?"],
    ONE + "defaults: {name: x}\n": ["line 3", "defaults: there is no key 'name'"],
    ONE + "defaults: {rounds: x}\n": ["line 3", "job 'a'", "rounds: there is no 'x'"],
    ONE + "defaults: {arrival: 1}\n": ["line 3", "defaults.arrival: 1 "],
    ONE + "defaults: 1\n": ["line 3", "defaults: 1 is not a mapping"],
    jobs("{name: a}"): ["line 2", "job 'a'", "model: there is none"],
    jobs("{name: a, model: blom}"): ["line 2", "job 'a'", "did you mean 'bloom'?"],
    jobs("{name: a, model: 3}"): ["line 2", "job 'a': model: 3 is not text"],
    jobs("{name: a, parameters: 1.5}"): ["job 'a': parameters: 1.5 "],
    jobs("{name: a, parameters: 1e}"): ["job 'a': parameters: '1e' ", "13e9"],
    jobs("{name: a, parameters: 1e9}"): ["job 'a'", "compute", "no tokens_per_iteration"],
    bloom("modle: x"): ["line 2", "job 'big': there is no key 'modle'", "did you mean 'model'?"],
    bloom("gpus: 47"): [
        "line 2",
        "job 'big': gpus: 47 is not tensor x pipeline x data, 4 x 12 x 1",
    ],
    bloom("\n    data: 3,\n    gpus: 48"): ["line 4", "job 'big': gpus: 48", "= 144"],
    bloom("\n    data: 0"): ["line 3", "job 'big': data: 0 "],
    bloom("data: 2.5"): ["job 'big': data: 2.5 "],
    bloom("data: '2'"): ["job 'big': data: '2' "],
    bloom("data: true"): ["job 'big': data: true "],
    bloom("iterations: 0"): ["line 2", "job 'big': iterations: 0 "],
    bloom("iterations: 9999999"): ["line 2", "job 'big': iterations: 9999999 "],
    bloom("arrival: -1 s"): ["line 2", "job 'big': arrival: '-1 s' "],
    bloom("arrival: 2"): ["job 'big': arrival: 2 "],
    bloom("arrival: 2 GB"): ["job 'big': arrival: '2 GB'", "not a unit of time"],
    bloom("arrival: [1]"): ["job 'big': arrival: [1] "],
    bloom("compute: 2"): ["job 'big': compute: 2 "],
    bloom("compute: papr"): ["job 'big': compute: there is no 'papr'", "use paper, a time"],
    bloom("compute: []"): ["job 'big': compute: [] "],
    bloom("compute: {peak: 3}"): ["job 'big': compute.peak: 3 ", "312 TFLOP/s"],
    bloom("compute: {peek: 3}"): ["job 'big': compute: there is no key 'peek'", "'peak'"],
    bloom("compute: {efficiency: 2}"): ["job 'big': compute.efficiency: 2 is not valid"],
    bloom("compute: {efficiency: 50}"): ["compute.efficiency: 50", "did you mean 0.5?"],
    bloom("compute: {efficiency: 0}"): ["compute.efficiency: 0 ", "above 0"],
    bloom("compute: {efficiency: .nan}"): ["compute.efficiency: nan "],
    bloom("compute: {efficiency: half}"): ["compute.efficiency: 'half' "],
    bloom("compute: {tokens_per_iteration: 0}"): ["tokens_per_iteration: 0 "],
    bloom("compute: {micro_batches: 0}"): ["compute.micro_batches: 0 "],
    bloom("placement: best"): ["job 'big': placement: there is no 'best'", "'best-fit'"],
    bloom("placement: packed, hosts: [host0]"): ["job 'big': placement: hosts are listed"],
    bloom("hosts: host0"): ["job 'big': hosts: 'host0' ", "[host0, host3]"],
    bloom("hosts: []"): ["job 'big': hosts: is empty", "[host0, host3]"],
    bloom("hosts: [0]"): ["job 'big': hosts[0]: 0 is not text"],
    bloom("\n    hosts: [a, b, a]"): ["line 3", "job 'big': hosts: 'a' is listed twice"],
    bloom("collective: treee"): ["job 'big': collective: there is no 'treee'", "'tree'"],
    bloom("data: 4, collective: ring-2d"): ["job 'big'", "grid: there is none"],
    bloom("data: 4, collective: ring-2d, grid: 4"): ["grid: 4 ", "[2, 4]"],
    bloom("data: 4, collective: ring-2d, grid: [4]"): ["job 'big': grid: [4] "],
    bloom("rounds: locked"): ["job 'big': rounds: there is no 'locked'"],
    bloom("bytes_per_parameter: 65"): ["job 'big': bytes_per_parameter: 65 "],
    bloom("data: 1" + "0" * 5000): ["line 2", "is not a number"],
    bloom("data: &a 1"): ["line 2", "anchors and aliases"],
    "jobs: " + "[" * 1000: ["line 1", "nested too deeply"],
    layers("\n    npu: a101"): ["line 3", "job 'net': npu: there is no 'a101'", "'a100'"],
    layers("npu: 3"): ["line 2", "job 'net': npu: 3 is not text"],
    layers("samples: 0"): ["line 2", "job 'net': samples: 0 "],
    layers("pipeline: 2,\n    samples: 9"): ["line 3", "job 'net': samples: 9 do not divide"],
    layers("efficiency: 0"): ["job 'net': efficiency: 0 "],
    layers("efficiency: 50"): ["job 'net': efficiency: 50 ", "did you mean 0.5?"],
    layers("precision: 0"): ["job 'net': precision: 0 "],
    layers("micro_batches: x"): ["job 'net': micro_batches: 'x' "],
    layers("compute: {efficiency: 0.4}"): ["job 'net': compute: the workload's layers say it"],
    layers("bytes_per_parameter: 2"): ["job 'net': bytes_per_parameter: of a workload"],
    layers("\n    model: bloom"): ["line 3", "job 'net': model: there is a workload"],
    bloom("samples: 3"): ["line 2", "job 'big': samples: is of a workload"],
    jobs("{name: a,\n    workload: resnet}"): [
        "line 3",
        "job 'a': workload: there is no",
        "did you mean 'resnet",
    ],
    jobs("{name: a, workload: x/nowhere.yml}"): ["line 2", "job 'a': workload: ", "cannot be read"],
    jobs("{name: a, workload: 3}"): ["line 2", "job 'a': workload: 3 is not text"],
    "jobs: [\n": ["is not YAML"],
    "seed: \x07\n": ["line 1", "U+0007"],
}


@pytest.mark.parametrize("text", BAD, ids=lambda text: repr(text[:60]))
def test_bad_file(text: str, tmp_path: Path) -> None:
    file = tmp_path / "bad.yml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(hk.SpecError) as error:
        load_jobs(file)
    message = str(error.value)
    assert message.startswith((f"{file}: ", f"{file}, line "))
    rest = message.removeprefix(str(file))
    assert len(message.splitlines()) == 1
    assert len(rest) < 320
    assert not [word for word in JARGON if word in rest]
    assert ";" in rest
    assert [part for part in BAD[text] if part not in rest] == []


def test_bad_paths(tmp_path: Path) -> None:
    with pytest.raises(hk.SpecError, match=r"nowhere\.yml: cannot be read: .*; give a jobs file"):
        load_jobs("nowhere.yml")
    with pytest.raises(hk.SpecError, match=r"^path: "):
        load_jobs("a\0.yml")
    (tmp_path / "bytes.yml").write_bytes(b"\xff\xfe\xfd")
    with pytest.raises(hk.SpecError, match=r"bytes\.yml: .*UTF-8"):
        load_jobs(tmp_path / "bytes.yml")


def refusal(text: str) -> str | None:
    """The message about a text; none if it lists jobs."""
    try:
        assert from_text(text, "j.yml").jobs
    except hk.SpecError as error:
        return str(error)
    return None


def in_a_line(message: str | None) -> bool:
    if message is None:
        return True
    plain = not [word for word in JARGON[:-1] if word in message]
    return message.startswith("j.yml") and len(message.splitlines()) == 1 and plain


KEYS = ("jobs", "name", "model", "data", "defaults", "compute", "hosts", "a", "bloom")
MARKS = ("{", "}", "[", "]", ":", ": ", ", ", "- ", "\n", "\n  ", "\n    ", "&a", "'", '"')
WORDS = st.sampled_from([*KEYS, *MARKS, "0", "3", "1e99", "true", "2 s"])
GOOD = EXAMPLE.read_text(encoding="utf-8")


@given(st.lists(WORDS, max_size=40).map("".join) | st.text(max_size=60))
def test_any_text_is_read_or_refused_in_a_line(text: str) -> None:
    assert in_a_line(refusal(text))


@given(st.data())
def test_a_good_file_with_anything_changed_is_read_or_refused_in_a_line(
    data: st.DataObject,
) -> None:
    text = GOOD
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(text)))
        gone = data.draw(st.integers(0, 12))
        text = text[:at] + data.draw(WORDS | st.text(max_size=3)) + text[at + gone :]
    assert in_a_line(refusal(text))


def within(inner: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    """Such values, lists of them and mappings to them."""
    keys = st.sampled_from([*JobEntry.model_fields, *ComputeEntry.model_fields, "x"])
    return inner | st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=9)


NUMBERS = st.integers(-3, 1 << 70) | st.integers(1, 9) | st.floats()
TEXTS = st.sampled_from(["a", "", "bloom", "2 s", "ring", "paper", "13e9", "random"])
VALUES = within(within(st.none() | st.booleans() | NUMBERS | TEXTS))
ENTRIES = st.dictionaries(st.sampled_from([*JobEntry.model_fields]), VALUES, max_size=6)


@given(
    st.dictionaries(st.sampled_from(["jobs", "seed", "defaults"]), VALUES)
    | st.fixed_dictionaries({"jobs": st.lists(ENTRIES.map(lambda e: {"name": "a", **e}))})
)
def test_any_values_are_read_or_refused_in_a_line(values: dict[str, object]) -> None:
    # JSON is YAML, but for numbers that are none.
    text = json.dumps(values, allow_nan=True).replace("NaN", ".nan").replace("Infinity", ".inf")
    assert in_a_line(refusal(text))


# The schema.


def test_schema_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    text = schema.schema_text("jobs")
    assert schema.main(["jobs"]) == 0
    assert capsys.readouterr().out == text


def test_schema_has_every_key() -> None:
    value = json.loads(schema.schema_text("jobs"))
    assert value["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert set(value["properties"]) == set(JobsFile.model_fields)
    for model in (JobEntry, Defaults, ComputeEntry):
        form = value["$defs"][model.__name__]
        assert form["additionalProperties"] is False
        assert set(form["properties"]) == set(model.model_fields)

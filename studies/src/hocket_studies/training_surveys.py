"""Reads the survey of published runs: a table of what sources print, a source in its own words.

Its columns are model, hardware, gpus, tp, pp, dp, ep, cp, zero, global_batch, micro_batch, seq_len,
precision, iteration_s, tokens_per_s_per_gpu, tflops_per_gpu, source and notes. Sizes of models, machines
and programs are found by name; a row that leaves one of them open is left out, with the reason.
"""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from hocket.errors import SpecError
from hocket.files.raw import read_bytes
from hocket.throughput.stack import STACKS
from hocket_studies.training_catalogue import PublishedRun, run_of

__all__ = ["is_survey", "read_survey"]

_SIZES = {
    "mpt-125m": "12 768 12",
    "mpt-350m": "24 1024 16",
    "mpt-760m": "24 1536 12",
    "mpt-1b": "24 2048 16",
    "mpt-3b": "32 2560 20",
    "mpt-7b": "32 4096 32",
    "mpt-13b": "40 5120 40",
    "mpt-30b": "48 7168 56",
    "mpt-70b": "80 8192 64",
    "gpt2-like 52b": "64 8192 32",
    "gpt2-like 25b": "30 8192 32",
    "gpt2-like 97b": "120 8192 32",
    "gpt 1.7b": "24 2304 24",
    "gpt 3.6b": "30 3072 32",
    "gpt 7.5b": "36 4096 32",
    "gpt 18.4b": "40 6144 48",
    "gpt 39.1b": "48 8192 64",
    "gpt 76.1b": "60 10240 80",
    "gpt 145.6b": "80 12288 96",
    "gpt 174.6b": "96 12288 96",
    "gpt-3 175b": "96 12288 96",
    "gpt3-175b": "96 12288 96",
    "gpt 310.1b": "96 16384 128",
    "gpt 529.6b": "105 20480 128",
    "gpt 1008.0b": "128 25600 160",
}
"""Layers, hidden numbers and heads of dense models, by what sources call them."""
_LLAMA = {
    "7b": "32 4096 32 32 11008",
    "8b": "32 4096 32 8 14336",
    "13b": "40 5120 40 40 13824",
    "34b": "48 8192 64 8 22016",
    "70b": "80 8192 64 8 28672",
    "405b": "126 16384 128 8 53248",
}
_LLAMA_WORDS, _LLAMA2_WORDS = 128_256, 32_000
_NEMOTRON = "96 18432 96 8 73728"
_NEMOTRON_WORDS = 256_000
"""Of Nemotron-4 340B (NVIDIA 2024, arXiv:2406.11704, table 1)."""
_HEADS = {768: 12, 1536: 16, 2304: 24, 3072: 32}
"""Of DLPerf's models, by hidden numbers (DLPerf, Megatron-LM/README.md)."""
_BLOOM_HEADS = {14400: 96}
_BLOOM_OTHERS = 64
_WORDS = {"llm-foundry": 50_368, "DLPerf": 51_200, "bigscience": 250_880, "2104.04473": 51_200}
_EARLY_WORDS = 50_304
_MIXED = ("deepseek", "gpt oss", "gpt-oss", "qwen3", "nemotron_", "mixtral", "a22b", "a3b", "moe")
_CLOSE = 0.015
_LATER = 1.03


def is_survey(path: Path) -> bool:
    """Return whether a table is the survey."""
    head = next((line for line in _lines(path) if not line.startswith("#")), "")
    return {"model", "hardware", "tflops_per_gpu", "notes"} <= set(head.strip().split(","))


def _lines(path: Path) -> Iterator[str]:
    text = read_bytes(path, "the survey").decode("utf-8", errors="replace")
    return io.StringIO(text, newline="")


def read_survey(path: Path) -> tuple[list[PublishedRun], list[str]]:
    """Read the runs, and say how many rows were left out for which reason."""
    rows = list(csv.DictReader(line for line in _lines(path) if not line.startswith("#")))
    found = []
    refused: Counter[str] = Counter()
    for row in rows:
        try:
            found.append(run_of(_normal({key: value or "" for key, value in row.items() if key})))
        except _LeftOutError as error:
            refused[str(error)] += 1
        except SpecError as error:
            refused[f"{_source(row)}: {error}"] += 1
        except ValueError:
            refused[f"{_source(row)}: numbers that are none"] += 1
    return found, [f"{reason} ({count})" for reason, count in refused.items()]


class _LeftOutError(Exception):
    """Why a row cannot be predicted."""


def _source(row: dict[str, str]) -> str:
    text = row["source"].removeprefix("https://github.com/")
    return text.split(" ")[0] if "/" in text.split(" ")[0] else text[:40]


def _normal(row: dict[str, str]) -> dict[str, str]:
    """Return a row of the survey as one of a table of runs."""
    notes = row["notes"]
    if "SUSPECT" in notes:
        raise _LeftOutError("the survey doubts the row")
    if "offload" in notes.partition("section:")[2].lower() and "Offload off" not in notes:
        raise _LeftOutError("optimizer states lie in the host's memory")
    if int(row["ep"] or 1) > 1 or any(word in row["model"].lower() for word in _MIXED):
        raise _LeftOutError("mixtures of experts: the law knows none")
    if "LoRA" in notes:
        raise _LeftOutError("fine-tuning that leaves most weights as they are")
    if "paren-alternatives" in notes:
        raise _LeftOutError("two configurations in one row")
    name, machine, stack = _place(row)
    sizes = _model(row, stack)
    found = dict.fromkeys(("cp", "tp", "pp", "dp"), "1")
    found |= {key: row[key] for key in found if row[key]}
    found["zero"] = _zero(row, stack)
    gpus = int(row["gpus"])
    known = int(found["tp"]) * int(found["pp"]) * int(found["cp"])
    if not row["dp"] and gpus % known == 0:
        found["dp"] = str(gpus // known)
    if int(found["dp"]) * known != gpus:
        raise _LeftOutError("sizes of parallelism do not make the number of GPUs")
    if not row["global_batch"]:
        raise _LeftOutError("the batch is not stated")
    found |= {
        "set": name,
        "model": row["model"],
        "machine": machine,
        "stack": stack,
        "batch": row["global_batch"],
        "micro_batch": row["micro_batch"],
        "interleave": _interleave(row, stack),
        "recompute": _recompute(row, stack),
        "sequence_parallel": "1" if STACKS[stack].cuts_sequence else "",
        "precision": _precision(row["precision"]),
        "sequence": row["seq_len"] or "2048",
        "source": row["source"],
    }
    found |= sizes
    found["iteration_s"] = row["iteration_s"] or _from_rate(found, row)
    return found


def _place(row: dict[str, str]) -> tuple[str, str, str]:
    """Return set, machine and program."""
    hardware, source = row["hardware"].lower(), row["source"]
    if "llm-foundry" in source:
        kind = "a100-40gb" if "a100_40gb" in hardware else "a100-80gb"
        kind = "h100" if "h100" in hardware else kind
        name = "mpt-h100" if kind == "h100" else "mpt-a100"
        return name + ("-fp8" if "fp8" in row["precision"] else ""), f"mosaic-{kind}", "llm-foundry"
    if "DLPerf" in source:
        stack = "oneflow-2021" if row["notes"].startswith("OneFlow") else "megatron-2020"
        return f"dlperf-{stack.partition('-')[0]}", "dlperf", stack
    if "prequel" in source:
        return "bloom-prequel", "jean-zay-a100", "megatron-deepspeed"
    if "bigscience" in source and row["zero"] == "3":
        return "jean-zay-v100-zero3", "jean-zay-v100", "deepspeed-2021"
    if "bigscience" in source:
        return "jean-zay-v100", "jean-zay-v100", "megatron-2020"
    if "2104.04473" in source:
        is_sharded = row["zero"] == "3"
        name = "narayanan-2021-zero3" if is_sharded else "narayanan-2021"
        return name, "selene", "deepspeed-2021" if is_sharded else "megatron-2021"
    if "2407.21783" in source:
        return "llama3-405b", "h100", "megatron-core"
    machine = next((each for key, each in _HOSTS.items() if key in hardware), None)
    machine = machine or next((each for each in _CHIPS if each in hardware), None)
    if machine is None:
        raise _LeftOutError(f"no constants for {row['hardware'][:30].strip()}")
    of = source + row["notes"]
    stack = next((stack for key, stack in _PROGRAMS.items() if key in of), "megatron-core")
    name = _source(row).rpartition("/")[2].lower()
    return f"{name} {machine}", machine, stack


_CHIPS = ("gb300", "gb200", "b200", "h200", "h100")
_HOSTS = {
    "a100 80gb x128": "vela-a100",
    "h100 x96": "vela-h100",
    "a3 mega": "a3-mega",
    "h100 96gb hbm2e": "h100-500w",
}
"""Machines by what their hardware is called; others are those of their accelerator."""
_PROGRAMS = {
    "fms-fsdp": "fms-fsdp",
    "MaxText": "maxtext",
    "c5c765f": "megatron-bridge",
    "Megatron-Bridge": "megatron-bridge",
    "torchtitan": "torchtitan",
    "aws-samples": "torchtitan",
}


def _model(row: dict[str, str], stack: str) -> dict[str, str]:
    """Return the sizes of the model: by its name, or as the row states them."""
    name, notes = row["model"].lower(), row["notes"]
    words = next((value for key, value in _WORDS.items() if key in row["source"]), _EARLY_WORDS)
    if stack in ("megatron-2020", "deepspeed-2021") and "bigscience" in row["source"]:
        words = _EARLY_WORDS
    llama = re.search(r"llama.*?(\d+b)\b", name.replace("_", "-"))
    if llama is not None and llama[1] in _LLAMA:
        layers, hidden, heads, keys, inner = _LLAMA[llama[1]].split()
        layers = _number(r"\((\d+) layers\)", name) or layers
        of = _LLAMA2_WORDS if "llama-2" in name else _LLAMA_WORDS
        return _sizes(layers, hidden, heads, of, keys, inner, gated=True)
    if name.startswith("nemotron4-340b"):
        layers, hidden, heads, keys, inner = _NEMOTRON.split()
        return _sizes(layers, hidden, heads, _NEMOTRON_WORDS, keys, inner)
    known = next((sizes for key, sizes in _SIZES.items() if name.startswith(key)), None)
    if known is not None:
        layers, hidden, heads = known.split()
        return _sizes(layers, hidden, heads, words)
    if stack == "megatron-deepspeed":
        return _bloom(row)
    found = {key: _number(pattern, name, notes) for key, pattern in _PATTERNS.items()}
    if found["heads"] is None and found["hidden"] is not None:
        usual = _HEADS.get(int(found["hidden"]))
        found["heads"] = None if usual is None else str(usual)
    if None in found.values():
        raise _LeftOutError(f"sizes of {row['model']} are not stated")
    return _sizes(str(found["layers"]), str(found["hidden"]), str(found["heads"]), words)


_PATTERNS = {
    "layers": r"(?:nlayers|layers|\bl)\s?=\s?(\d+)",
    "hidden": r"(?:nhidden|hidden|\bh)\s?=\s?(\d+)",
    "heads": r"(?:nheads|heads|\ba)\s?=\s?(\d+)",
}


def _number(pattern: str, *texts: str) -> str | None:
    for text in texts:
        found = re.search(pattern, text.lower())
        if found is not None:
            return found[1]
    return None


def _bloom(row: dict[str, str]) -> dict[str, str]:
    """Find the sizes that give the printed operations; the source prints few of them beside the rows.

    Later tables of the source count operations by a formula that gives 3 % more.
    """
    if not (row["iteration_s"] and row["global_batch"] and row["tflops_per_gpu"]):
        raise _LeftOutError("the batch or the time is not stated")
    printed = float(row["tflops_per_gpu"]) * 1e12 * int(row["gpus"]) * float(row["iteration_s"])
    tokens = int(row["global_batch"]) * 2048
    stages = int(row["pp"])
    words = _WORDS["bigscience"]
    fitting = [
        (abs(_operations(tokens, layers, hidden, words) / printed / later - 1), hidden, layers)
        for layers, hidden in _BLOOMS
        if layers % stages == 0 and _says(row["notes"], hidden)
        for later in (1.0, _LATER)
    ]
    best = min(fitting, default=(1.0, 0, 0))
    if best[0] > _CLOSE:
        raise _LeftOutError("sizes of BLOOM's prequel do not give the printed operations")
    _, hidden, layers = best
    heads = _BLOOM_HEADS.get(hidden, _BLOOM_OTHERS)
    return _sizes(str(layers), str(hidden), str(heads), words)


_BLOOMS = (
    *((layers, 14400) for layers in (72, 76, 77, 78, 80, 81)),
    (78, 13824),
    (80, 13824),
    (84, 13824),
    (84, 13312),
    (72, 14336),
    (70, 14336),
    (96, 12288),
)


def _says(notes: str, hidden: int) -> bool:
    stated = re.search(r"NHIDDEN=(\d+)", notes)
    return stated is None or int(stated[1]) == hidden


def _operations(tokens: int, layers: int, hidden: int, words: int) -> float:
    """Operations with full recomputation (Narayanan et al. 2021, equation 3)."""
    more = 1 + 2048 / (6 * hidden) + words / (16 * layers * hidden)
    return 96 * tokens * layers * hidden**2 * more


def _sizes(
    layers: str,
    hidden: str,
    heads: str,
    words: int,
    keys: str = "",
    inner: str = "",
    *,
    gated: bool = False,
) -> dict[str, str]:
    return {
        "layers": layers,
        "hidden": hidden,
        "heads": heads,
        "kv_heads": keys,
        "feed_forward": inner,
        "gated": "1" if gated else "",
        "vocabulary": str(words),
    }


def _zero(row: dict[str, str], stack: str) -> str:
    sharded = re.search(r"FSDP=(\d+)", row["notes"])
    if stack in ("torchtitan", "maxtext") or (sharded is not None and int(sharded[1]) > 1):
        return "3" if int(row["pp"] or 1) == 1 else "1"
    return row["zero"] or ("1" if STACKS[stack].cuts_sequence else "0")


def _interleave(row: dict[str, str], stack: str) -> str:
    stated = re.search(r"\bVP=(\d+)", row["notes"])
    if stated is not None and int(row["pp"] or 1) > 1:
        return stated[1]
    return "" if STACKS[stack].interleaves and int(row["pp"] or 1) > 1 else "1"


def _recompute(row: dict[str, str], stack: str) -> str:
    if stack == "llm-foundry":
        return "full" if "act_ckpt=True" in row["notes"] else "none"
    stated = re.search(r"recompute=(none|selective|full)", row["notes"])
    if stated is not None:
        return stated[1]
    return STACKS[stack].recompute


def _precision(text: str) -> str:
    low = text.lower()
    if "fp4" in low:
        return "4-bit"
    return "8-bit" if "fp8" in low or "float8" in low else "16-bit"


def _from_rate(found: dict[str, str], row: dict[str, str]) -> str:
    """Return the time of an iteration from tokens a second, or from operations a second."""
    tokens = int(found["batch"]) * int(found["sequence"])
    gpus = int(row["gpus"])
    rate = re.match(r"[\d.]+", row["tokens_per_s_per_gpu"].replace(",", ""))
    if rate is not None:
        return str(tokens / (float(rate[0]) * gpus))
    flops = re.match(r"[\d.]+", row["tflops_per_gpu"])
    if flops is None:
        raise _LeftOutError("no time is stated")
    job = run_of({**found, "iteration_s": "1", "micro_batch": found["micro_batch"] or "1"}).job
    done = job.flops
    if found["recompute"] == "full":
        layers, hidden = int(found["layers"]), int(found["hidden"])
        done = _operations(tokens, layers, hidden, int(found["vocabulary"]))
    if found["set"] == "llama3-405b":  # half the scores are counted
        done -= 6 * tokens * job.model.layers * job.model.hidden * job.model.sequence
    return str(done / (float(flops[0]) * 1e12 * gpus))

"""Training programs: what of their doings the law of training needs to know."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Stack:
    """A training program, of some version.

    Attributes
    ----------
    name
        What it is called.
    what
        Which program, and from when.
    constants
        Whose constants it has: the name of the program that was fitted.
    borrows
        Whether these were fitted to another version or program, not to its own runs.
    attention
        Whose fused attention it has; empty: none, scores go through memory.
    cuts_sequence
        Whether it is usually run with sequence parallelism.
    interleaves
        Whether it is usually run with interleaved pipelines.
    recompute
        What it usually computes again.
    gradient_bytes
        Of a number when gradients are summed.
    scatters
        Whether stages send each other only an NPU's part of an activation, and gather it there.
    hides_tensor
        Whether sums over tensor-parallel groups in the backward pass hide behind gradients of weights.
    hides_data
        Whether sums of gradients hide behind the backward pass where there is no tensor parallelism,
        up to the constant `exposed`.
    hides_gathers
        Whether the weights of ZeRO-3 are gathered while the layer before is computed.
    sources
        Where this is known from.
    """

    name: str
    what: str
    constants: str
    borrows: bool = False
    attention: str = ""
    gradient_bytes: int = 2
    scatters: bool = True
    hides_tensor: bool = False
    hides_data: bool = False
    hides_gathers: bool = True
    cuts_sequence: bool = False
    interleaves: bool = False
    recompute: str = "none"
    sources: tuple[str, ...] = ()

    @property
    def fused(self) -> bool:
        """Whether scores of attention stay inside the chip."""
        return bool(self.attention)


_ALL = (
    Stack(
        "llm-foundry",
        "MosaicML llm-foundry, 2023: PyTorch FSDP, FlashAttention",
        "llm-foundry",
        attention="flash-attention-1",
        sources=("llm-foundry, scripts/train/benchmarking/README.md",),
    ),
    Stack(
        "megatron-2020",
        "Megatron-LM, commit 8aa4619: whole activations between stages",
        "megatron",
        scatters=False,
        recompute="full",
        sources=("DLPerf, Megatron-LM/README.md",),
    ),
    Stack(
        "megatron-2021",
        "Megatron-LM of 2021: interleaved pipelines, scattered activations",
        "megatron",
        borrows=True,
        interleaves=True,
        recompute="full",
        sources=("Narayanan et al., SC 2021, sections 2.2 and 4.1",),
    ),
    Stack(
        "megatron-2022",
        "Megatron-LM of 2022: sequence parallelism, selective recomputation",
        "megatron",
        borrows=True,
        hides_tensor=True,
        cuts_sequence=True,
        interleaves=True,
        recompute="selective",
        sources=("Korthikanti et al. 2022, section 6",),
    ),
    Stack(
        "megatron-deepspeed",
        "Megatron-DeepSpeed of 2022 (BLOOM): sums of 32 bits",
        "megatron-deepspeed",
        gradient_bytes=4,
        scatters=False,
        recompute="full",
        sources=("BigScience, chronicles-prequel.md",),
    ),
    Stack(
        "oneflow-2021",
        "OneFlow of 2021: sums of gradients beside the backward pass",
        "oneflow",
        scatters=False,
        hides_data=True,
        recompute="full",
        sources=("DLPerf, OneFlow/LanguageModeling/GPT/README.md",),
    ),
    Stack(
        "deepspeed-2021",
        "DeepSpeed ZeRO-3 of 2021: weights are gathered before they are used",
        "megatron",
        borrows=True,
        hides_gathers=False,
        recompute="full",
        sources=("BigScience, experiments/gpt2.md",),
    ),
    Stack(
        "megatron-core",
        "Megatron Core and NeMo from 2023 on: FlashAttention, hidden sums",
        "megatron-core",
        attention="flash-attention-2",
        hides_tensor=True,
        hides_data=True,
        cuts_sequence=True,
        interleaves=True,
        sources=("NVIDIA dgxc-benchmarking, llama3.1/README_405b.md",),
    ),
    Stack(
        "torchtitan",
        "torchtitan: PyTorch FSDP2, FlashAttention",
        "fms-fsdp",
        borrows=True,
        attention="flash-attention-2",
        hides_tensor=True,
        hides_data=True,
        recompute="selective",
        sources=("constants of fms-fsdp",),
    ),
    Stack(
        "fms-fsdp",
        "fms-fsdp of 2024: PyTorch FSDP, compiled, FlashAttention",
        "fms-fsdp",
        attention="flash-attention-2",
        hides_tensor=True,
        hides_data=True,
        sources=("foundation-model-stack/fms-fsdp, README.md",),
    ),
    Stack(
        "maxtext",
        "MaxText on GPUs, 2025: JAX, weights in shards, fused attention",
        "maxtext",
        attention="flash-attention-2",
        hides_tensor=True,
        hides_data=True,
        recompute="full",
        sources=("AI-Hypercomputer/gpu-recipes, training/a4",),
    ),
    Stack(
        "megatron-bridge",
        "NVIDIA Megatron-Bridge, 2025 and 2026",
        "megatron-core",
        attention="flash-attention-2",
        hides_tensor=True,
        hides_data=True,
        cuts_sequence=True,
        interleaves=True,
        sources=("Megatron-Bridge, docs/performance-summary-archive.md",),
    ),
)
STACKS = {each.name: each for each in _ALL}
"""By name."""

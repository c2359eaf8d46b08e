"""Modules of PyTorch as workloads: closed forms, the shipped ResNet-152, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

import hocket as hk
from hocket.from_torch import from_torch

torch = pytest.importorskip("torch", reason="PyTorch is not installed: make torch installs it")
nn = torch.nn
F = torch.nn.functional

PASSES = ("forward", "input_gradient", "weight_gradient")


def total(workload: Any, kind: str = "forward", what: str = "flops") -> int:
    return sum(getattr(getattr(layer, kind), what) for layer in workload.layers)


def by_name(workload: Any) -> dict[str, Any]:
    return {layer.name: layer for layer in workload.layers}


class Bottleneck(nn.Module):
    def __init__(self, channels: int, width: int, stride: int, strided: str) -> None:
        super().__init__()
        strides = {"a": 1, "b": 1, strided: stride}
        self.a = nn.Conv2d(channels, width, 1, strides["a"], bias=False)
        self.bn_a = nn.BatchNorm2d(width)
        self.b = nn.Conv2d(width, width, 3, strides["b"], 1, bias=False)
        self.bn_b = nn.BatchNorm2d(width)
        self.c = nn.Conv2d(width, 4 * width, 1, bias=False)
        self.bn_c = nn.BatchNorm2d(4 * width)
        self.shortcut = None
        if channels != 4 * width:
            self.shortcut = nn.Conv2d(channels, 4 * width, 1, stride, bias=False)
            self.bn_shortcut = nn.BatchNorm2d(4 * width)

    def forward(self, x: Any) -> Any:
        y = F.relu(self.bn_a(self.a(x)), inplace=True)
        y = F.relu(self.bn_b(self.b(y)), inplace=True)
        y = self.bn_c(self.c(y))
        if self.shortcut is not None:
            x = self.bn_shortcut(self.shortcut(x))
        return F.relu(x + y)


def resnet152(strided: str) -> Any:
    blocks: list[Any] = []
    channels = 64
    for width, count, stride in ((64, 3, 1), (128, 8, 2), (256, 36, 2), (512, 3, 2)):
        for i in range(count):
            blocks.append(Bottleneck(channels, width, stride if i == 0 else 1, strided))
            channels = 4 * width
    return nn.Sequential(
        nn.Conv2d(3, 64, 7, 2, 3, bias=False),
        nn.BatchNorm2d(64),
        nn.ReLU(inplace=True),
        nn.MaxPool2d(3, 2, 1),
        *blocks,
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(2048, 1000),
    )


def test_resnet152_layer_by_layer() -> None:
    with torch.device("meta"):
        module = resnet152(strided="a")
    traced = from_torch(module, "3x224x224", name="resnet")
    shipped = hk.workload.load("resnet152")
    assert traced.parameters == 60_192_808
    products = [layer for layer in traced.layers if layer.forward.flops]
    costs = [(layer.forward.flops, layer.parameters) for layer in products]
    biases = [0] * 155 + [1000]
    assert costs == [
        (2 * layer.macs, layer.parameters + bias)
        for layer, bias in zip(shipped.layers, biases, strict=True)
    ]
    assert total(traced) == 2 * sum(layer.macs for layer in shipped.layers)
    assert total(traced, "weight_gradient") == total(traced)
    assert total(traced, "input_gradient") == total(traced) - products[0].forward.flops
    assert [note for note in traced.notes if "batch" not in note] == []
    norms = [layer for layer in traced.layers if not layer.forward.flops]
    assert sum(layer.parameters for layer in norms) == 60_192_808 - shipped.parameters - 1000


def test_resnet152_with_its_strides_in_the_filters_of_3_by_3() -> None:
    with torch.device("meta"):
        module = resnet152(strided="b")
    traced = from_torch(module, "3x224x224")
    assert traced.parameters == 60_192_808
    assert round(total(traced) / 2e9, 1) == 11.5


def test_costs_of_a_convolution_and_what_joins_it() -> None:
    module = nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1, bias=False),
        nn.Identity(),
        nn.ReLU(),
        nn.Dropout(0.0),
        nn.Conv2d(8, 8, 3, groups=4),
    )
    first, second = from_torch(module, "3x32x32").layers
    data, hidden, out = 3 * 32 * 32, 8 * 32 * 32, 8 * 30 * 30
    assert (first.name, second.name) == ("0", "4")
    assert first.forward.flops == 2 * hidden * 27
    # The convolution reads and writes, and so does the ReLU.
    assert first.forward.bytes >= 2 * (data + hidden) + 2 * 2 * hidden
    assert (first.input_gradient.flops, first.weight_gradient.flops) == (0, first.forward.flops)
    assert (first.inputs, first.outputs) == (data, hidden)
    for work in (second.forward, second.input_gradient, second.weight_gradient):
        assert work.flops == 2 * out * 9 * 2
        assert work.bytes >= 2 * (hidden + out)
    assert second.forward.bytes == 2 * (hidden + out)
    assert second.weight_gradient.bytes == 2 * (hidden + out) + 2 * out  # of the bias as well
    assert (second.inputs, second.outputs, second.parameters) == (hidden, out, 8 * 2 * 9 + 8)


class Block(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Any) -> Any:
        batch, tokens, width = x.shape
        parts = self.qkv(self.norm1(x)).view(batch, tokens, 3, self.heads, -1)
        q, k, v = parts.permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(batch, tokens, width))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class Gpt(nn.Module):
    def __init__(self, words: int, width: int, heads: int, depth: int, longest: int) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(longest, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(depth))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, words, bias=False)
        self.head.weight = self.words.weight

    def forward(self, tokens: Any) -> Any:
        x = self.words(tokens) + self.places(torch.arange(tokens.shape[1]))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def test_a_transformer_in_closed_form() -> None:
    words, width, heads, depth, tokens = 500, 64, 4, 3, 32
    traced = from_torch(Gpt(words, width, heads, depth, 48), f"{tokens}:int64")
    block = 12 * width * width + 13 * width
    assert traced.parameters == words * width + 48 * width + depth * block + 2 * width
    weights = depth * 12 * width * width + words * width
    scores = depth * 2 * tokens * tokens * width
    assert total(traced) == 2 * (tokens * weights + scores)
    assert total(traced, "weight_gradient") == 2 * tokens * weights
    # Attention's gradients are two products for each product, and the scores once more.
    assert total(traced, "input_gradient") == 2 * (tokens * weights + 2.5 * scores)
    layers = by_name(traced)
    assert layers["head"].parameters == 0  # the embedding has them
    assert layers["words"].parameters == words * width
    attention = layers["blocks.0"]
    assert attention.forward.flops == 2 * 2 * tokens * tokens * width
    assert layers["blocks.2.down"].outputs == tokens * width
    assert len(traced.notes) == 1

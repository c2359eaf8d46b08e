"""Modules of PyTorch as workloads: closed forms, the shipped ResNet-152, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

import hocket as hk
from hocket.errors import SpecError
from hocket.from_torch import from_torch

torch = pytest.importorskip("torch", reason="PyTorch is not installed: make torch installs it")
nn = torch.nn
F = torch.nn.functional


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
    # Normalizations are layers of their own there, and belong to the products before them here.
    normalized = [2 * layer.filters * layer.normalized for layer in shipped.layers]
    assert costs == [
        (2 * layer.macs, layer.parameters - own)
        for layer, own in zip(shipped.layers, normalized, strict=True)
    ]
    assert traced.parameters == shipped.parameters
    assert total(traced) == 2 * sum(layer.macs for layer in shipped.layers)
    assert total(traced, "weight_gradient") == total(traced)
    assert total(traced, "input_gradient") == total(traced) - products[0].forward.flops
    assert [note for note in traced.notes if "batch" not in note] == []
    norms = [layer for layer in traced.layers if not layer.forward.flops]
    assert sum(layer.parameters for layer in norms) == sum(normalized)


@pytest.mark.slow
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


def test_attention_stands_where_it_runs() -> None:
    width, heads, tokens = 64, 4, 32
    layers = from_torch(
        nn.Sequential(nn.Linear(width, width), Block(width, heads)), f"{tokens}x{width}"
    ).layers
    assert [layer.name for layer in layers] == [
        "0", "1.norm1", "1.qkv", "1", "1.out", "1.norm2", "1.up", "1.down"
    ]  # fmt: skip
    attention = layers[3]
    scores = 2 * 2 * tokens * tokens * width
    assert attention.forward.flops == scores
    assert attention.input_gradient.flops == 2.5 * scores
    assert attention.weight_gradient.flops == attention.parameters == 0
    # Queries, keys and values are read, the result and a number for each query of each head written;
    # then the result is copied with its heads side by side.
    assert attention.forward.bytes == 2 * (4 * tokens * width + tokens * heads + 2 * tokens * width)
    assert attention.inputs == 3 * tokens * width


@pytest.mark.parametrize("affine", [False, True])
def test_normalization_and_dropout_are_one_operation(affine: bool) -> None:
    numbers = 8 * 16
    parts = (nn.RMSNorm(16, elementwise_affine=affine), nn.Dropout(0.5), nn.Linear(16, 16))
    layers = from_torch(nn.Sequential(nn.Linear(16, 16), *parts), "8x16").layers
    norm = layers[1] if affine else layers[0]
    assert (len(layers), norm.parameters) == ((3, 16) if affine else (2, 16 * 17))
    # Numbers in and out, a scale for each row; dropout has as many again and a byte for each.
    assert norm.forward.bytes - (0 if affine else 4 * numbers) == 4 * numbers + 16 + 5 * numbers
    assert norm.input_gradient.bytes == 6 * numbers + 16 + 5 * numbers


def test_groups_of_heads_share_keys_and_values() -> None:
    class Grouped(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.q, self.kv = nn.Linear(32, 32), nn.Linear(32, 16)

        def forward(self, x: Any) -> Any:
            q = self.q(x).view(x.shape[0], -1, 4, 8).transpose(1, 2)
            k, v = self.kv(x).view(x.shape[0], -1, 2, 1, 8).permute(2, 0, 3, 1, 4)
            return F.scaled_dot_product_attention(q, k, v, enable_gqa=True)

    attention = from_torch(Grouped(), "16x32").layers[-1]
    assert attention.forward.flops == 2 * 2 * 16 * 16 * 32
    assert attention.inputs == 16 * 32 + 16 * 16


def test_the_encoder_layer_of_pytorch() -> None:
    width, tokens, hidden = 64, 16, 256
    module = nn.TransformerEncoderLayer(width, 4, hidden, batch_first=True)
    traced = from_torch(module, f"{tokens}x{width}")
    assert traced.parameters == sum(each.numel() for each in module.parameters())
    weights = 4 * width * width + 2 * width * hidden
    scores = 2 * 2 * tokens * tokens * width
    first = 2 * tokens * width * 3 * width
    assert total(traced) == 2 * tokens * weights + scores
    assert total(traced, "weight_gradient") == 2 * tokens * weights
    assert total(traced, "input_gradient") == 2 * tokens * weights - first + 2.5 * scores


def test_an_lstm() -> None:
    inputs, width, steps = 8, 16, 5
    module = nn.LSTM(inputs, width, num_layers=2, batch_first=True)
    (layer,) = from_torch(module, f"{steps}x{inputs}").layers
    assert layer.parameters == sum(each.numel() for each in module.parameters())
    first, second = 4 * width * (inputs + width), 4 * width * 2 * width
    assert layer.forward.flops == layer.weight_gradient.flops == 2 * steps * (first + second)
    # No gradient of the data is needed, nor of the first states.
    needed = 4 * width * (steps * width + 2 * (steps - 1) * width)
    assert layer.input_gradient.flops == 2 * needed


def test_an_lstm_cell_called_for_each_step() -> None:
    class Loop(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.cell = nn.LSTMCell(4, 8)

        def forward(self, x: Any) -> Any:
            state = (torch.zeros(x.shape[0], 8), torch.zeros(x.shape[0], 8))
            for i in range(x.shape[1]):
                state = self.cell(x[:, i], state)
            return state[0]

    layers = from_torch(Loop(), "3x4").layers
    assert [layer.name for layer in layers] == ["cell", "cell#2", "cell#3"]
    assert [layer.parameters for layer in layers] == [4 * 8 * (4 + 8 + 2), 0, 0]
    assert {layer.forward.flops for layer in layers} == {2 * 4 * 8 * (4 + 8)}


def test_shared_weights_count_once() -> None:
    shared = nn.Linear(8, 8)
    apart = nn.Linear(8, 8, bias=False)
    apart.weight = shared.weight
    layers = from_torch(nn.Sequential(shared, nn.ReLU(), shared, apart), "8").layers
    assert [layer.parameters for layer in layers] == [72, 0, 0]
    assert [layer.forward.flops for layer in layers] == [128] * 3
    assert [layer.weight_gradient.flops for layer in layers] == [128] * 3


class TwoInputs(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words, self.time, self.out = nn.Embedding(10, 6), nn.Linear(1, 6), nn.Linear(6, 2)

    def forward(self, tokens: Any, time: Any, scale: float = 1.0) -> Any:
        y = self.words(tokens) + self.time(time[:, None] * scale)[:, None]
        return {"result": self.out(y)}


@pytest.mark.parametrize(
    "inputs",
    [
        ["5:int64", "scalar"],
        ["5:int64", "time=scalar"],
        {"tokens": "5:int64", "time": "scalar"},
        [torch.zeros(3, 5, dtype=torch.int64), torch.zeros(3)],
        [torch.zeros(3, 5, dtype=torch.int64), "scalar", 2.0],
    ],
)
def test_two_inputs(inputs: Any) -> None:
    traced = from_torch(TwoInputs(), inputs)
    assert {name: layer.forward.flops for name, layer in by_name(traced).items()} == {
        "words": 0,
        "time": 2 * 6,
        "out": 2 * 5 * 6 * 2,
    }
    # An index takes as much as 4 numbers of 16 bits; the product with the scale joins the layer before.
    assert by_name(traced)["words"].inputs == 5 * 4 + 1
    assert len(traced.notes) == 1


def frozen_first() -> Any:
    module = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 8), nn.Linear(8, 3))
    module[2].requires_grad_(False)
    return module


@pytest.mark.parametrize(
    ("module", "shape"),
    [
        (frozen_first(), "5x6"),
        (nn.Sequential(nn.Conv2d(2, 4, 3, 2), nn.GELU(), nn.ConvTranspose2d(4, 3, 2)), "2x9x9"),
        (nn.Sequential(nn.GRU(6, 7, 2, batch_first=True)), "4x6"),
        (nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True), "5x16"),
        (Block(16, 4), "6x16"),
        (nn.Sequential(*[nn.Linear(6, 6)] * 3), "6"),
    ],
)
def test_totals_are_those_of_real_numbers(module: Any, shape: str) -> None:
    """PyTorch's own counter, of a run on the CPU."""
    from torch.utils.flop_counter import FlopCounterMode

    traced = from_torch(module, shape, batch=3)
    real = torch.zeros(3, *map(int, shape.split("x")))
    counter = FlopCounterMode(display=False)
    with counter:
        result = module(real)
        forward = counter.get_total_flops()
        (result[0] if isinstance(result, tuple) else result).sum().backward()
    assert 3 * total(traced) == forward
    gradients = total(traced, "input_gradient") + total(traced, "weight_gradient")
    assert 3 * gradients == counter.get_total_flops() - forward


def test_costs_are_those_of_a_sample_at_any_batch() -> None:
    with torch.device("meta"):
        module = Gpt(50, 16, 2, 2, 8)
    assert from_torch(module, "8:int64").layers == from_torch(module, "8:int64", batch=7).layers
    convolutions = nn.Sequential(
        nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.Linear(288, 4)
    )
    assert (
        from_torch(convolutions, "3x8x8").layers
        == from_torch(convolutions, "3x8x8", batch=5).layers
    )


def test_what_does_not_grow_with_the_batch_is_said() -> None:
    class Pairs(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a = nn.Linear(4, 4)

        def forward(self, x: Any) -> Any:
            y = self.a(x)
            return y @ y.t()

    traced = from_torch(Pairs(), "4")
    assert "1 of 2 layers do not grow with the batch, first of Pairs" in traced.notes[1]


def test_frozen_and_unused_numbers_are_left_out() -> None:
    class Operations(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b, self.c = nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 5)
            self.a.requires_grad_(False)

        def forward(self, x: Any) -> Any:
            return self.b(self.a(x))

    traced = from_torch(Operations(), "4")
    assert traced.parameters == 20
    assert traced.notes[1:] == (
        "20 numbers are frozen and no parameters here.",
        "25 parameters are used by nothing and left out.",
    )
    frozen, trained = traced.layers
    assert (frozen.weight_gradient.flops, trained.input_gradient.flops) == (0, 0)


def test_recomputed_layers_keep_less_and_compute_more() -> None:
    from torch.utils.checkpoint import checkpoint

    class Operations(nn.Module):
        def __init__(self, again: bool) -> None:
            super().__init__()
            self.again = again
            self.a = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 4))

        def forward(self, x: Any) -> Any:
            return checkpoint(self.a, x, use_reentrant=False) if self.again else self.a(x)

    plain, again = (from_torch(Operations(each), "4") for each in (False, True))
    assert total(plain) == total(again) == 2 * 2 * 64
    backward = [
        total(each, "input_gradient") + total(each, "weight_gradient") for each in (plain, again)
    ]
    assert backward[1] == backward[0] + 2 * 64  # the last product is not needed again
    assert sum(layer.kept for layer in again.layers) < sum(layer.kept for layer in plain.layers)


def test_seventy_billion_parameters() -> None:
    width, depth = 32768, 6
    with torch.device("meta"):
        module = nn.Sequential(*(Block(width, 64) for _ in range(depth)))
    traced = from_torch(module, f"2048x{width}")
    assert traced.parameters == depth * (12 * width * width + 13 * width) > 70e9
    assert total(traced) == 2 * 2048 * depth * (12 * width * width + 2 * 2048 * width)


def test_names_that_a_file_can_hold() -> None:
    class Named(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.parts = nn.ModuleDict({"a b, c": nn.Linear(4, 4)})

        def forward(self, x: Any) -> Any:
            return self.parts["a b, c"](x)

    assert [layer.name for layer in from_torch(Named(), "4").layers] == ["parts.a_b__c"]
    with pytest.raises(SpecError, match=r"name: 'a b' .* leave spaces and commas out"):
        from_torch(nn.Linear(4, 4), "4", name="a b")


def test_the_module_stays_as_it_is() -> None:
    module = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4))
    before = {name: each.clone() for name, each in module.state_dict().items()}
    from_torch(module, "4")
    assert all(torch.equal(each, before[name]) for name, each in module.state_dict().items())
    assert all(each.grad is None for each in module.parameters())
    assert not module[0]._forward_hooks
    assert not module[0]._forward_pre_hooks

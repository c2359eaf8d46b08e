"""Transformers by their sizes: what each part of a layer costs for one sequence.

With s tokens, h numbers for a token, f inside the feed-forward part, v words, and k of keys or of values:

=============  ======================  ======================================
part           parameters              operations, forward
=============  ======================  ======================================
embedding      v h                     0
qkv            h (h + 2 k)             2 s h (h + 2 k)
attention      0                       4 s s h; causal: 2 s (s + 1) h
projection     h h                     2 s h h
up             h f; gated: 2 h f       2 s h f; gated: 4 s h f
down           f h                     2 s f h
head           v h; tied: 0            2 s h v
=============  ======================  ======================================

The gradient of a weight costs as much, and so does that of an input. A layer of f = 4 h and k = h takes
24 s h h + 4 s s h operations forward and twice that backward (Narayanan et al. 2021, appendix).

What is not counted: activation functions, dropout, sums with what passes by, and the scores of attention in
memory: they are taken to be fused with what stands beside them, as in FlashAttention (Dao et al. 2022).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

from hocket._checks import one_of, truth, whole
from hocket.errors import SpecError
from hocket.workload.costs import Block, Work
from hocket.workload.limits import LARGEST

NORMS = ("layernorm", "rmsnorm")
_CHOICES = (
    "gated",
    "tied_embeddings",
    "embedding_norm",
    "final_norm",
    "head",
    "causal",
    "biases",
)
_MAX_LAYERS = 10_000
_NORM_FLOPS = {"layernorm": 7, "rmsnorm": 4}
"""For each number: of the mean, the difference, the square and its sum, the factor, the gain and the
shift; without mean and shift."""


@dataclass(frozen=True)
class Transformer:
    """Sizes of a transformer: a stack of layers of attention and feed-forward parts.

    Attributes
    ----------
    layers
        How many.
    hidden
        Numbers for a token.
    heads
        Of attention, among which ``hidden`` is divided.
    sequence
        Tokens of a sample.
    vocabulary
        Words; 0: the stack alone, without embedding and head.
    kv_heads
        Heads of keys and values; None: as many as ``heads``.
    feed_forward
        Numbers inside the feed-forward part; None: four times ``hidden``.
    gated
        Whether that has three matrices, two of them up, as SwiGLU.
    tied_embeddings
        Whether the head's weights are those of the embedding.
    positions
        How many have a vector of their own that is trained; 0: none.
    token_types
        Kinds of tokens that have one.
    embedding_norm, final_norm
        Whether a normalization follows the embedding, and the last layer.
    head
        Whether scores of all words are computed at the end.
    causal
        Whether only those scores of attention are computed that a decoder needs; otherwise all are, as
        published counts do.
    biases
        Whether every matrix of the layers has them.
    norm
        ``layernorm``, with a gain and a shift, or ``rmsnorm``, with a gain.
    experts
        Of each feed-forward part; 0: it is one.
    top_k
        Experts that each token is sent to.

    References
    ----------
    Vaswani et al., Attention Is All You Need, 2017. Shoeybi et al., Megatron-LM, 2019, section 3: how
    tensor parallelism splits it. Ainslie et al., GQA, 2023: fewer heads of keys and values. Shazeer, GLU
    Variants Improve Transformer, 2020. Shazeer et al., Outrageously Large Neural Networks, 2017: experts.
    """

    layers: int
    hidden: int
    heads: int
    sequence: int
    vocabulary: int = 0
    kv_heads: int | None = None
    feed_forward: int | None = None
    gated: bool = False
    tied_embeddings: bool = True
    positions: int = 0
    token_types: int = 0
    embedding_norm: bool = False
    final_norm: bool = True
    head: bool = True
    causal: bool = False
    biases: bool = True
    norm: Literal["layernorm", "rmsnorm"] = "layernorm"
    experts: int = 0
    top_k: int = 2

    def __post_init__(self) -> None:
        whole("transformer: layers", self.layers, 1, _MAX_LAYERS)
        for name in ("hidden", "heads", "sequence", "kv_heads", "feed_forward", "top_k"):
            if getattr(self, name) is not None or name in ("hidden", "heads", "sequence", "top_k"):
                whole(f"transformer: {name}", getattr(self, name), 1, LARGEST - 1)
        for name in ("vocabulary", "positions", "token_types", "experts"):
            whole(f"transformer: {name}", getattr(self, name), 0, LARGEST - 1)
        for name in _CHOICES:
            truth(f"transformer: {name}", getattr(self, name))
        one_of("transformer: norm", self.norm, NORMS)
        if self.hidden % self.heads:
            raise SpecError(
                "transformer",
                f"hidden: {self.hidden} does not divide among {self.heads} heads",
                "make it a multiple of heads",
            )
        if self.kv_heads is not None and self.heads % self.kv_heads:
            raise SpecError(
                "transformer",
                f"kv_heads: {self.heads} heads do not share {self.kv_heads} of keys and "
                "values evenly",
                "give a divisor of heads",
            )
        if self.experts and self.top_k > self.experts:
            raise SpecError(
                "transformer",
                f"top_k: a token goes to {self.top_k} of {self.experts} experts",
                "make it at most experts",
            )

    @property
    def count(self) -> int:
        """The number of blocks."""
        each = 8 if self.experts else 7
        ends = 1 + self.head if self.vocabulary else 0
        return self.layers * each + ends + (self.embedding_norm and ends > 0) + self.final_norm

    def blocks(self) -> list[Block]:
        """Return its layers by their costs, in the order of the forward pass; a sample is one sequence.

        # Complexity

        O(layers).
        """
        found = []
        if self.vocabulary:
            found.append(self._embedding())
            if self.embedding_norm:
                found.append(self._norm("embedding_norm"))
        one = list(self._layer())
        for i in range(1, self.layers + 1):
            found += [replace(each, name=f"layer.{i}/{each.name}") for each in one]
        if self.final_norm:
            found.append(self._norm("norm"))
        if self.vocabulary and self.head:
            found.append(self._head())
        return found

    @property
    def _tokens(self) -> int:
        """Numbers that pass from layer to layer."""
        return self.sequence * self.hidden

    def _layer(self) -> Iterator[Block]:
        keys = self.hidden // self.heads * (self.kv_heads or self.heads)
        wide = self.hidden + 2 * keys
        yield self._norm("norm1")
        yield self._product("qkv", self.hidden, wide, "columns")
        yield self._attention(self.sequence * wide)
        yield self._product("projection", self.hidden, self.hidden, "rows")
        yield self._norm("norm2")
        yield from self._feed_forward()

    def _embedding(self) -> Block:
        """Return what finds a row for each token, one for its position and one for its kind.

        Rows are dealt out, so that what NPUs find is summed (Shoeybi et al. 2019).
        """
        tables = 1 + (self.positions > 0) + (self.token_types > 0)
        sums = (tables - 1) * self._tokens
        moved = 2 * (tables + 1) * self._tokens
        return Block(
            "embedding",
            forward=Work(sums, moved),
            weight_gradient=Work(tables * self._tokens, moved + 2 * tables * self._tokens),
            parameters=(self.vocabulary + self.positions + self.token_types) * self.hidden,
            inputs=self.sequence,
            outputs=self._tokens,
            split="rows",
        )

    def _norm(self, name: str) -> Block:
        """Return what reads and writes each number; the backward pass reads two and writes one."""
        flops = _NORM_FLOPS[self.norm] * self._tokens
        return Block(
            name,
            forward=Work(flops, 4 * self._tokens),
            input_gradient=Work(2 * flops, 6 * self._tokens),
            weight_gradient=Work(2 * self._tokens, 4 * self._tokens),
            parameters=self.hidden * (2 if self.norm == "layernorm" else 1),
            inputs=self._tokens,
            outputs=self._tokens,
        )

    def _product(
        self, name: str, rows: int, columns: int, split: Literal["columns", "rows"]
    ) -> Block:
        """Return the product of a matrix with every token."""
        inputs, outputs = self.sequence * rows, self.sequence * columns
        work = Work(2 * inputs * columns, 2 * (inputs + outputs))
        return Block(
            name,
            work,
            work,
            work,
            parameters=rows * columns + self.biases * columns,
            inputs=inputs,
            outputs=outputs,
            split=split,
        )

    def _attention(self, inputs: int) -> Block:
        """Return scores of all pairs of tokens and sums of values by them: two products, four gradients."""
        pairs = self.sequence * (self.sequence + 1) // 2 if self.causal else self.sequence**2
        flops, moved = 4 * pairs * self.hidden, 2 * (inputs + self._tokens)
        return Block(
            "attention",
            forward=Work(flops, moved),
            input_gradient=Work(2 * flops, 2 * moved),
            inputs=inputs,
            outputs=self._tokens,
            split="inside",
        )

    def _feed_forward(self) -> Iterator[Block]:
        """Return up and down; with experts, each token goes through ``top_k`` of them.

        Kept are what ``up`` reads and, for the activation function, what it gives.
        """
        wide = 4 * self.hidden if self.feed_forward is None else self.feed_forward
        many = 2 if self.gated else 1
        if self.experts:
            chosen = self.sequence * self.experts
            work = Work(2 * self._tokens * self.experts, 2 * (self._tokens + chosen))
            yield Block(
                "router",
                work,
                work,
                work,
                parameters=self.hidden * self.experts,
                inputs=self._tokens,
                outputs=self._tokens,
            )
        times = self.top_k if self.experts else 1
        inside = times * self.sequence * wide
        read = times * self._tokens
        up = Work(2 * inside * many * self.hidden, 2 * (read + many * inside))
        down = Work(2 * inside * self.hidden, 2 * (inside + read))
        all_experts = self.experts or 1
        yield Block(
            "up",
            up,
            up,
            up,
            parameters=all_experts * many * wide * (self.hidden + self.biases),
            inputs=self._tokens,
            outputs=inside,
            kept=read + many * inside,
            split="columns",
            experts=self.experts,
            routed=read if self.experts else 0,
            top=times,
        )
        yield Block(
            "down",
            down,
            down,
            down,
            parameters=all_experts * self.hidden * (wide + self.biases),
            inputs=inside,
            outputs=self._tokens,
            split="rows",
            experts=self.experts,
        )

    def _head(self) -> Block:
        """Return scores of all words; kept are those too, for the gradient of the loss."""
        scores = self.sequence * self.vocabulary
        work = Work(2 * self._tokens * self.vocabulary, 2 * (self._tokens + scores))
        return Block(
            "head",
            work,
            work,
            work,
            parameters=0 if self.tied_embeddings else self.vocabulary * self.hidden,
            inputs=self._tokens,
            outputs=scores,
            kept=self._tokens + scores,
            split="columns",
        )

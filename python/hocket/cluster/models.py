"""Large models by name: how many parameters, how they are cut up, on how much they are trained."""

from __future__ import annotations

from dataclasses import dataclass

from hocket._checks import did_you_mean
from hocket.errors import SpecError
from hocket.units import shown


@dataclass(frozen=True)
class Model:
    """A model that jobs train.

    Attributes
    ----------
    name
        What jobs call it.
    parameters
        In all.
    tensor, pipeline
        Into how many parts each layer, and the layers, are cut; a replica takes their product of GPUs.
    training_tokens
        Of its whole training.
    batch_tokens
        Of one iteration, over all replicas.
    """

    name: str
    parameters: int
    tensor: int
    pipeline: int
    training_tokens: int
    batch_tokens: int


# Of Cohen et al., Routing for large ML models: tensor and pipeline (table 2), parameters (table 1;
# BLOOM's as in its released code) and training tokens (released code). Batches:
# BLOOM: Le Scao et al. 2022, table 3: 2048 sequences of 2048 tokens.
# GPT-3: Brown et al. 2020, table 2.1: 3.2 million tokens.
# LLaMA2-70B: Touvron et al. 2023 (Llama 2), section 2.2: 4 million tokens.
_ALL = (
    Model("bloom", 176 * 10**9, 4, 12, 366 * 10**9, 2048 * 2048),
    Model("gpt3-175b", 175 * 10**9, 8, 8, 300 * 10**9, 3_200_000),
    Model("llama2-70b", 70 * 10**9, 8, 16, 2 * 10**12, 4_000_000),
)
MODELS: dict[str, Model] = {each.name: each for each in _ALL}
"""Models by name."""


def model(name: object) -> Model:
    """Return the model of that name.

    Raises
    ------
    SpecError
        If there is none.
    """
    if not isinstance(name, str) or name not in MODELS:
        known = f"models are {', '.join(MODELS)}, or give parameters instead"
        hint = did_you_mean(str(name), MODELS, known) if isinstance(name, str) else known
        raise SpecError("model", f"there is no {shown(name)}", hint)
    return MODELS[name]

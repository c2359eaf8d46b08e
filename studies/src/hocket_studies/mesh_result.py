"""The results of ``reproduce mesh``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from hocket_studies import mesh, mesh_training
from hocket_studies.mesh import Curve, OnCase, Sizes, Study
from hocket_studies.mesh_choices import Choice, choices
from hocket_studies.mesh_training import Epochs, Example, Overlapped

NAMES = (
    "table 1",
    *(f"figure {number}" for number in range(8, 15)),
    "example",
    "choices",
)
"""``example`` is section VIII-B; ``choices`` says which modelling choice moves which figure."""


@dataclass
class MeshResult:
    """The results; a part that was not asked for is ``None``."""

    study: Study = field(default_factory=Study)
    used_links: dict[int, dict[str, float]] | None = None
    """Table I, by side and method."""
    sizes: Sizes | None = None
    """Figure 8."""
    is_scaled: bool = False
    """Whether figure 9 is there: :func:`hocket_studies.mesh.scaling_speedup` of the study."""
    epochs: list[Epochs] | None = None
    """Figure 10."""
    overlapped: list[Overlapped] | None = None
    """Figure 11."""
    curves: list[Curve] | None = None
    """Figure 12."""
    simba: list[Epochs] | None = None
    """Figure 13."""
    chunks: dict[int, float] | None = None
    """Figure 14: bandwidth [bytes/s] by chunk [bytes]."""
    example: Example | None = None
    choices: list[Choice] | None = None


def reproduce_mesh(
    names: Sequence[str] = NAMES, *, full: bool = False, on_case: OnCase | None = None
) -> MeshResult:
    """Compute what tables and figures of Laskar et al. show.

    Parameters
    ----------
    names
        Which, of :data:`NAMES`.
    full
        Whether to run sizes up to 1 GiB and all that is slow to simulate.
    on_case
        Called after each run.
    """
    result = MeshResult()
    study = result.study
    if "table 1" in names:
        result.used_links = {side: mesh.table_1(side) for side in (8, 9)}
    if "figure 8" in names:
        result.sizes = mesh.figure_8(study, full=full, on_case=on_case)
    if "figure 9" in names:
        mesh.figure_9(study, on_case)
        result.is_scaled = True
    if "figure 10" in names:
        sides = mesh_training.SIDES
        result.epochs = mesh_training.epochs(study, sides, (256,), full=full, on_case=on_case)
    if "figure 11" in names:
        result.overlapped = mesh_training.overlapped(study, on_case)
    if "figure 12" in names:
        result.curves = mesh.figure_12(on_case)
    if "figure 13" in names:
        simba, arrays = (mesh_training.SIMBA_SIDE,), mesh_training.SIMBA_ARRAYS
        result.simba = mesh_training.epochs(study, simba, arrays, full=full, on_case=on_case)
    if "figure 14" in names:
        result.chunks = mesh.figure_14(study, on_case)
    if "example" in names:
        result.example = mesh_training.example(study, on_case)
    if "choices" in names:
        result.choices = choices(study, on_case)
    return result

"""The options of judging measured times."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hocket._checks import truth
from hocket.errors import SpecError
from hocket.nccl.gpus import gpu_named
from hocket.profiles.profile import Profile, as_profile
from hocket.units import shown

if TYPE_CHECKING:
    from typing_extensions import TypedDict

    class MeasuredKeywords(TypedDict, total=False):
        """The fields of :class:`MeasuredOptions` as keywords of a call."""

        profile: Profile | str | None
        launch: str | None
        gpu: str | None
        in_place: bool
        tolerance: float | None
        plans: bool


@dataclass(frozen=True, kw_only=True)
class MeasuredOptions:
    """The options of judging measured times.

    Attributes
    ----------
    profile
        A shipped profile, or a topology file with one. Default: the network's own.
    launch
        How the program launched the collective: a launch kind of the profile. Default: inferred from the
        smallest sizes.
    gpu
        GPU for which picks are shown, as for ``hocket predict --nccl --gpu``.
    in_place
        Judge the in-place times instead of the out-of-place ones.
    tolerance
        Share by which times may exceed predictions, such as 0.3. Default: depends on the size.
    plans
        Search for the best plans too (slow), which show that an algorithm is slow.

    Without a profile, NCCL's own model predicts, from 64 MiB on. The network's own is known if the topology
    is given as text. `tolerance` is by default 0.2 below 64 KiB, 0.5 below 1 MiB, 0.3 up to 64 MiB, and
    0.15 above. With a profile of a box on a fabric, such as ``"h100+ib"``, it is at least how far 9 of 10
    machines are from it.

    Raises
    ------
    SpecError
        Naming the field, for a value that makes no sense.
    """

    profile: Profile | str | None = None
    launch: str | None = None
    gpu: str | None = None
    in_place: bool = False
    tolerance: float | None = None
    plans: bool = True

    def __post_init__(self) -> None:
        profile = None if self.profile is None else as_profile(self.profile)
        object.__setattr__(self, "profile", profile)
        if self.launch is not None and not isinstance(self.launch, str):
            raise SpecError("launch", f"{shown(self.launch)} is not text", "name a kind of program")
        if self.gpu is not None:
            gpu_named(self.gpu)
        truth("in_place", self.in_place)
        truth("plans", self.plans)
        share = self.tolerance
        is_share = (
            isinstance(share, int | float) and not isinstance(share, bool) and 0 <= share <= 10
        )
        if share is not None and not is_share:
            raise SpecError("tolerance", f"{shown(share)} is no share", "give one such as 0.3")

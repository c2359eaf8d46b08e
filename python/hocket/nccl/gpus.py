"""GPUs by their names: architectures, compute capabilities as dumps of NCCL state them, and RCCL's."""

from __future__ import annotations

import re
from dataclasses import replace

from hocket._checks import instance_of, one_of
from hocket.errors import InfeasibleError, SpecError
from hocket.nccl.constants import GENERATIONS, Generation
from hocket.nccl.rccl import MACHINES, Tuning
from hocket.topology.spec import TopologySpec

_BY_CAPABILITY = ((100, "blackwell"), (90, "hopper"), (80, "ampere"), (0, "volta"))
_OTHER_LINKS = {range(60, 70): (20.0, 18.0), range(86, 87): (14.0625, 12.0)}
"""NVLinks unlike those of the architecture: as their maker states them, and as NCCL counts them."""
_BY_ARCHITECTURE = {"gfx942": "mi300x", "gfx90a": "mi250", "gfx910": "mi250"}
_BY_MODEL = {
    "v100": "volta",
    **dict.fromkeys(("a100", "a800"), "ampere"),
    **dict.fromkeys(("h100", "h200", "h800", "gh200"), "hopper"),
    **dict.fromkeys(("b200", "gb200", "b300", "gb300"), "blackwell"),
    "mi250": "mi250",
    "mi300x": "mi300x",
}
"""GPUs by their makers' names, which begin the names of shipped profiles."""
_MODEL = re.compile(rf"(?<![a-z0-9])({'|'.join(_BY_MODEL)})(?![0-9])")
_XGMI = "xgmi"
"""How kinds of links between GPUs of AMD begin; it also stands for such a GPU that nothing names."""


def generation_by_capability(capability: int) -> Generation:
    """Return the constants by which NCCL counts GPUs of a compute capability, such as 86."""
    name = next(name for least, name in _BY_CAPABILITY if capability >= least)
    for known, (nominal, link) in _OTHER_LINKS.items():
        if capability in known:
            return replace(GENERATIONS[name], nominal=nominal, link=link)
    return GENERATIONS[name]


def gpu_named(name: str) -> Generation | Tuning:
    """Return what NCCL or RCCL knows of GPUs: ``"ampere"``, ``"sm86"``, ``"mi300x"`` or ``"gfx942"``.

    Raises
    ------
    SpecError
        If there is no such name.
    InfeasibleError
        If RCCL has no model of such GPUs.
    """
    instance_of(str, "gpu", name, "name one, such as ampere or sm86")
    if name == _XGMI:
        wrong = "links of xGMI are those of AMD's GPUs, and nothing says which these are"
        raise InfeasibleError("gpu", wrong, "RCCL's model knows mi250 and mi300x; name one")
    capability = re.fullmatch(r"sm([1-9][0-9]{1,2})", name)
    if capability is not None:
        return generation_by_capability(int(capability[1]))
    if re.fullmatch(r"gfx[0-9a-f]{3,4}", name):
        if name not in _BY_ARCHITECTURE:
            right = "those of gfx90a (mi250) and gfx942 (mi300x) are"
            raise InfeasibleError("gpu", f"RCCL's model of {name} is not known", right)
        return MACHINES[_BY_ARCHITECTURE[name]]
    one_of("gpu", name, [*GENERATIONS, *MACHINES])
    return GENERATIONS[name] if name in GENERATIONS else MACHINES[name]


def other_gpu(device: str, gpu: str) -> str | None:
    """Return a text if a device such as ``"NVIDIA H100 80GB HBM3"`` is another GPU, else ``None``."""
    found = _MODEL.search(device.lower())
    try:
        own = gpu_named(gpu).name
    except InfeasibleError:
        return None
    if found is None or _BY_MODEL[found[1]] == own:
        return None
    return f"it names {device} as its device, and the topology has GPUs of {own}"


def check_gpu(spec: TopologySpec, gpu: str | None) -> str | None:
    """Return the GPU that is meant: the one that is named, by default that of the dump or the profile.

    Raises
    ------
    SpecError
        If the topology has others, by its profile or its dump; naming both.
    """
    profile = None if spec.profile is None else spec.profile.name
    own = None if profile is None else _BY_MODEL.get(re.split("[-+,]", profile)[0])
    is_amd = any(link.kind is not None and link.kind.startswith(_XGMI) for link in spec.links)
    if gpu is None:
        return spec.gpu or own or (_XGMI if is_amd else None)
    asked, where = gpu_named(gpu), f"profile {profile!r}"
    if own is None and spec.gpu is not None:
        try:
            where = f"{'dump' if spec.dumps else 'file'} ({spec.gpu})"
            own = gpu_named(spec.gpu).name
        except InfeasibleError:
            own = None
    if own is None and is_amd and isinstance(asked, Generation):
        own, where = "AMD", "links of xGMI"
    if own not in (None, asked.name):
        wrong = f"{spec.name!r} has GPUs of {own} by its {where}, not {asked.name}"
        raise SpecError("gpu", wrong, "leave it out, or name a topology that has such GPUs")
    return gpu

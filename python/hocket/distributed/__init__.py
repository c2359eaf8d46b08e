"""The backend ``hocket`` of ``torch.distributed``: importing this module registers it.

>>> import hocket.distributed
>>> torch.distributed.init_process_group("hocket")

It needs the extra ``torch``: ``pip install hocket[torch]``. docs/pytorch.md shows what it does.
"""

from __future__ import annotations

from hocket.distributed.backend import HocketProcessGroup
from hocket.distributed.creation import deployed, register
from hocket.distributed.hook import Gradients, average_hook

__all__ = ["Gradients", "HocketProcessGroup", "average_hook", "deployed", "register"]

register()

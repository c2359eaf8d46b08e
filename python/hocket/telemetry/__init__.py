"""Recordings of real runs, whoever made them, beside what was to be expected: what is slow, and where.

``files`` finds out what recorded a file and has it read (``inspector``, ``flight``, ``kineto``;
``profiles`` reads sweeps), ``calls`` is what recordings have in common, ``judge`` sets them beside
predictions, bounds and plans, ``verdict`` is the rule, ``library_log`` reads what NCCL says of itself,
and ``causes`` names what makes it slow.
"""

"""Files of other runtimes: plans written for them, and theirs read and judged."""

from hocket.formats.chakra import ExportedTrace, export_trace
from hocket.formats.checked import CheckedFile, check_file
from hocket.formats.exported import ExportedFile, ExportOptions, export_plan
from hocket.formats.kinds import KINDS, Kind

__all__ = [
    "KINDS",
    "CheckedFile",
    "ExportOptions",
    "ExportedFile",
    "ExportedTrace",
    "Kind",
    "check_file",
    "export_plan",
    "export_trace",
]

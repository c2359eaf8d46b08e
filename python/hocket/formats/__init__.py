"""Files of other runtimes: plans written for them, and theirs read, judged and read as plans."""

from hocket.formats.chakra import ExportedTrace, export_trace
from hocket.formats.checked import CheckedFile, check_file
from hocket.formats.exported import ExportedFile, export_plan
from hocket.formats.imported import import_plan
from hocket.formats.judgement import Fault, Judgement, Written
from hocket.formats.kinds import KINDS, Kind
from hocket.formats.options import CheckOptions, ExportOptions, ImportOptions

__all__ = [
    "KINDS",
    "CheckOptions",
    "CheckedFile",
    "ExportOptions",
    "ExportedFile",
    "ExportedTrace",
    "Fault",
    "ImportOptions",
    "Judgement",
    "Kind",
    "Written",
    "check_file",
    "export_plan",
    "export_trace",
    "import_plan",
]

"""Names that left this package, and where they are."""

MOVED = {"testbed": "hocket_testbed", "reproduce": "hocket_studies"}
"""By the name that it had in :mod:`hocket`, the package that has it now, with hocket in one repository."""

REMEDY = "in a checkout of hocket, `make build` installs it"

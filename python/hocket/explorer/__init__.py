"""Pages that show a run in a browser: one file each, which needs no server and no network."""

from hocket.explorer.page import encode, write_page

__all__ = ["encode", "write_page"]

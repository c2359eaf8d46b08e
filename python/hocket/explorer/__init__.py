"""Pages that show runs in a browser: one file each, which needs no server and no network."""

from hocket.explorer.page import encode_runs, fill, write_page

__all__ = ["encode_runs", "fill", "write_page"]

"""Integer arrays as text, for the metadata of Parquet files."""

from __future__ import annotations

import base64
import binascii
import json
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hocket._memory import check_fits

_DTYPES = ("uint32", "uint64")
_LONGEST = 1 << 32


def pack(array: NDArray[Any]) -> str:
    """Return an array as JSON: its type, its length, its little-endian bytes compressed in base 64."""
    data = zlib.compress(
        np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<")).tobytes()
    )
    return json.dumps(
        {"dtype": array.dtype.name, "len": len(array), "zlib": base64.b64encode(data).decode()}
    )


def unpack(text: str, dtype: str) -> NDArray[Any]:
    """Return what :func:`pack` was given.

    Raises
    ------
    ValueError
        If the text is not such an array of ``dtype``, with the reason.
    """
    if dtype not in _DTYPES:
        raise ValueError(f"{dtype} is not one of {', '.join(_DTYPES)}")
    try:
        fields = json.loads(text)
        length = fields["len"]
        data = base64.b64decode(fields["zlib"], validate=True)
        if fields["dtype"] != dtype or type(length) is not int or not 0 <= length <= _LONGEST:
            raise ValueError(f"not an array of {dtype}")
        size = length * np.dtype(dtype).itemsize
        check_fits(2 * size, f"a column of {length:,} numbers")
        raw = zlib.decompressobj().decompress(data, size + 1)
    except (KeyError, TypeError, RecursionError, binascii.Error, zlib.error) as error:
        raise ValueError(f"not a packed array ({error})") from None
    if len(raw) != size:
        raise ValueError(f"{len(raw)} bytes where {size} were announced")
    return np.frombuffer(raw, dtype=np.dtype(dtype).newbyteorder("<")).astype(dtype)

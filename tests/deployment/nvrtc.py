"""NVIDIA's compiler of CUDA C++, a library that needs no GPU: ``pip install nvidia-cuda-nvrtc``."""

from __future__ import annotations

import ctypes
import os
import sysconfig
from pathlib import Path
from typing import Any

import pytest


def compiled(source: str, architecture: str) -> tuple[str, str]:
    """Return the PTX of a source and what the assembler says, where there is NVRTC.

    The variable ``NVRTC`` names the library if it is not in this environment.
    """
    places = Path(sysconfig.get_paths()["purelib"]).glob("nvidia/*/lib/libnvrtc.so.*")
    library = os.environ.get("NVRTC") or next((str(place) for place in places), None)
    if library is None:
        pytest.skip("no NVRTC")
    nvrtc = ctypes.CDLL(library)
    program = ctypes.c_void_p()
    text = source.encode()
    assert not nvrtc.nvrtcCreateProgram(ctypes.byref(program), text, b"a.cu", 0, None, None)
    options = [f"--gpu-architecture={architecture}".encode(), b"--ptxas-options=-v"]
    given = (ctypes.c_char_p * len(options))(*options)
    failed = nvrtc.nvrtcCompileProgram(program, len(options), given)
    log = _text(nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog, program)
    assert not failed, log
    return _text(nvrtc.nvrtcGetPTXSize, nvrtc.nvrtcGetPTX, program), log


def _text(size_of: Any, text_of: Any, program: Any) -> str:
    size = ctypes.c_size_t()
    assert not size_of(program, ctypes.byref(size))
    text = ctypes.create_string_buffer(size.value)
    assert not text_of(program, text)
    return text.value.decode()

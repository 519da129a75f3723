"""Calls through XLA's foreign function interface, which Python handles by ctypes.

XLA calls a C function with the addresses of arrays and, on a GPU, its stream. Here ctypes makes
that function from one of Python. It holds the interpreter's lock for the few microseconds that it
spends in Python, and releases it while the library runs. A handler in C would need another library
for each version of the interface, and `jax.pure_callback` copies to and from the host.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from ctypes import (
    POINTER,
    Structure,
    c_char_p,
    c_int32,
    c_int64,
    c_size_t,
    c_uint32,
    c_void_p,
    cast,
)
from typing import Any

# As in xla/ffi/api/c_api.h: structs begin with their size and extensions.
_HEAD: list[tuple[str, Any]] = [("struct_size", c_size_t), ("extension", c_void_p)]
_METADATA = 1
_EXECUTE = 3
_INTERNAL = 13


class _Version(Structure):
    _fields_ = [*_HEAD, ("major", c_int32), ("minor", c_int32)]


class _Metadata(Structure):
    _fields_ = [("struct_size", c_size_t), ("version", _Version), ("traits", c_uint32)]


class _MetadataExtension(Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("type", c_int32),
        ("next", c_void_p),
        ("metadata", POINTER(_Metadata)),
    ]


class _Api(Structure):
    _fields_ = [
        *_HEAD,
        ("version", _Version),
        ("internal", c_void_p),
        ("error_create", c_void_p),
        ("error_get_message", c_void_p),
        ("error_destroy", c_void_p),
        ("handler_register", c_void_p),
        ("stream_get", c_void_p),
        *[(f"other{n}", c_void_p) for n in range(12)],
        ("device_ordinal_get", c_void_p),
    ]


class _Array(Structure):
    _fields_ = [
        *_HEAD,
        ("dtype", c_int32),
        ("data", c_void_p),
        ("rank", c_int64),
        ("dims", POINTER(c_int64)),
    ]


class _Arrays(Structure):
    _fields_ = [
        *_HEAD,
        ("size", c_int64),
        ("types", c_void_p),
        ("items", POINTER(POINTER(_Array))),
    ]


class _Scalar(Structure):
    _fields_ = [("dtype", c_int32), ("value", POINTER(c_int64))]


class _Attributes(Structure):
    _fields_ = [
        *_HEAD,
        ("size", c_int64),
        ("types", c_void_p),
        ("names", c_void_p),
        ("items", POINTER(POINTER(_Scalar))),
    ]


class _Frame(Structure):
    _fields_ = [
        *_HEAD,
        ("api", POINTER(_Api)),
        ("context", c_void_p),
        ("stage", c_int32),
        ("arguments", _Arrays),
        ("results", _Arrays),
        ("attributes", _Attributes),
    ]


class _StreamGet(Structure):
    _fields_ = [*_HEAD, ("context", c_void_p), ("stream", c_void_p)]


class _OrdinalGet(Structure):
    _fields_ = [*_HEAD, ("context", c_void_p), ("ordinal", c_int32)]


class _ErrorCreate(Structure):
    _fields_ = [*_HEAD, ("message", c_char_p), ("code", c_int32)]


_HANDLER = ctypes.CFUNCTYPE(c_void_p, POINTER(_Frame))
_ASK = ctypes.CFUNCTYPE(c_void_p, c_void_p)


class Call:
    """One call, valid while it runs: the array, the array for its result, and a number."""

    def __init__(self, frame: Any) -> None:
        self._frame = frame
        self.number: int = frame.attributes.items[0].contents.value[0]
        self.given: _Array = frame.arguments.items[0].contents
        self.result: _Array = frame.results.items[0].contents

    def stream(self) -> int:
        """The stream of the call, on a GPU."""
        asked = _StreamGet(ctypes.sizeof(_StreamGet), None, self._frame.context, None)
        _ASK(self._frame.api.contents.stream_get)(ctypes.addressof(asked))
        return asked.stream or 0

    def device(self) -> int:
        """The number of the device in this process."""
        asked = _OrdinalGet(ctypes.sizeof(_OrdinalGet), None, self._frame.context, 0)
        _ASK(self._frame.api.contents.device_ordinal_get)(ctypes.addressof(asked))
        return asked.ordinal


def handler(run: Callable[[Call], None]) -> Any:
    """A capsule for `jax.ffi.register_ffi_target`. It lives as long as the process."""

    def answer(at: Any) -> int | None:
        frame = at.contents
        if frame.extension:
            extension = cast(frame.extension, POINTER(_MetadataExtension)).contents
            if extension.type == _METADATA:
                metadata, version = extension.metadata.contents, frame.api.contents.version
                metadata.version.major, metadata.version.minor = version.major, version.minor
                metadata.traits = 0
                return None
        if frame.stage != _EXECUTE:
            return None
        try:
            run(Call(frame))
        except BaseException as error:  # C cannot propagate an exception of any kind.
            return _error(frame.api.contents, f"{type(error).__name__}: {error}")
        return None

    function = _HANDLER(answer)
    _functions.append(function)
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = ctypes.py_object, [c_void_p, c_char_p, c_void_p]
    return new(cast(function, c_void_p), None, None)


_functions: list[Any] = []


def _error(api: _Api, text: str) -> int | None:
    message = text.encode(errors="backslashreplace")
    asked = _ErrorCreate(ctypes.sizeof(_ErrorCreate), None, message, _INTERNAL)
    return _ASK(api.error_create)(ctypes.addressof(asked))

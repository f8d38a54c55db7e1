"""The compiled kernel, called through ctypes, so that other threads run meanwhile."""

import ctypes
from pathlib import Path

import numpy as np

from ottla.spark.kernel.interface import Binary, Bytes, Columns, Cursor, Int32s, Int64s, Payload, Rows, Status
from ottla.spark.kernel.json_columns import JsonColumns

LIBRARY = Path(__file__).with_name("_kernel.so")
_ABI = 3


class StaleKernel(Exception):
    """The library was built from another version of kernel.c."""


class NativeKernel:
    name = "c"

    def __init__(self, path: Path = LIBRARY) -> None:
        """Raises OSError if there is no library, or none that this machine can load."""
        library = ctypes.CDLL(str(path))
        if library.ottla_abi() != _ABI:
            raise StaleKernel(f"{path} was built from another version of its source: run make setup, or install again")
        self._parse = library.ottla_parse
        self._parse.argtypes = [ctypes.POINTER(Cursor), ctypes.c_void_p]
        self._parse.restype = ctypes.c_int32
        self._encode = library.ottla_encode
        self._encode.argtypes = [ctypes.POINTER(Rows), ctypes.c_void_p, ctypes.c_int64, ctypes.POINTER(Payload)]
        self._encode.restype = ctypes.c_int64
        self._murmur2 = library.ottla_murmur2
        self._murmur2.argtypes = [ctypes.POINTER(Binary), ctypes.c_void_p]
        self._murmur2.restype = None
        self._json_read = library.ottla_json_read
        self._json_read.argtypes = [ctypes.POINTER(Binary), ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p]
        self._json_read.restype = ctypes.c_int64
        self._json_texts = library.ottla_json_texts
        self._json_texts.argtypes = [ctypes.POINTER(Binary), ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]
        self._json_texts.restype = None

    def parse(self, cursor: Cursor, columns: Columns) -> Status:
        return Status(self._parse(cursor, ctypes.byref(columns)))

    def encode(self, rows: Rows, selected: Int64s, payload: Payload) -> int:
        selected = np.ascontiguousarray(selected)
        fitted: int = self._encode(rows, selected.ctypes.data, len(selected), payload)
        return fitted

    def murmur2(self, column: Binary) -> Int32s:
        hashes = np.empty(column.count, np.int32)
        self._murmur2(column, hashes.ctypes.data)
        return hashes

    def read_json(self, values: Binary, into: JsonColumns) -> int:
        plain: int = self._json_read(values, ctypes.byref(into.structures), len(into.columns), into.plain.ctypes.data)
        return plain

    def json_texts(self, values: Binary, columns: JsonColumns, number: int, offsets: Int32s, data: Bytes) -> None:
        self._json_texts(values, ctypes.byref(columns.structures[number]), offsets.ctypes.data, data.ctypes.data)

"""pliant.h in ctypes, and nothing else. pliant.h documents the functions.

ctypes suffices, because the library is plain C and is called only some tens of times a step, and
one wheel then works with every Python version. Calls release the interpreter's lock.
"""

import ctypes
import os
from collections.abc import Iterable
from ctypes import (
    POINTER,
    c_char_p,
    c_double,
    c_float,
    c_int32,
    c_int64,
    c_size_t,
    c_uint64,
    c_void_p,
)
from pathlib import Path

ABI_VERSION = 1

OK, NOTHING = 0, 1
INVALID, ORDER, FAILED, INTERNAL = -1, -2, -3, -4
PARAMETER, BUFFER, STATE, HOME = 1, 2, 3, 4
DTYPES = {
    "float32": 1, "float64": 2, "float16": 3, "bfloat16": 4,
    "int64": 5, "int32": 6, "uint8": 7, "bool": 8,
    "int8": 9, "int16": 10, "float8_e4m3fn": 11, "float8_e5m2": 12,
}  # fmt: skip
CPU, CUDA = 0, 1
TRAIN, EVALUATE, COMMIT, LOADED, END, EVALUATED = 1, 2, 3, 4, 5, 6
COMPLETED, DRAINED, LEARNER_FAILED, INTERRUPTED = 1, 2, 3, 4


class _Sized(ctypes.Structure):
    """A struct that begins with its size."""

    def __init__(self, **fields: object) -> None:
        super().__init__(struct_size=ctypes.sizeof(self), **fields)


class Options(_Sized):
    _fields_ = [
        ("struct_size", c_size_t),
        ("name", c_char_p),
        ("framework", c_char_p),
        ("checkpoint_dir", c_char_p),
        ("gpu_problem", c_char_p),
        ("leave_signals", c_int32),
        ("keep_freed_memory", c_int32),
    ]


class Job(_Sized):
    _fields_ = [
        ("struct_size", c_size_t),
        ("alone", c_int32),
        ("bitwise", c_int32),
        ("max_learners", c_int32),
        ("logical_shards", c_int32),
        ("global_batch_size", c_uint64),
        ("seed", c_uint64),
        ("has_seed", c_int32),
        ("job", c_char_p),
        ("learner", c_char_p),
        ("checkpoint_dir", c_char_p),
    ]


class Training(_Sized):
    _fields_ = [
        ("struct_size", c_size_t),
        ("train_samples", c_uint64),
        ("test_samples", c_uint64),
        ("epochs", c_uint64),
        ("global_batch_size", c_uint64),
        ("logical_shards", c_int32),
        ("seed", c_uint64),
        ("has_seed", c_int32),
        ("drop_last", c_int32),
        ("in_order", c_int32),
        ("hears_evaluations", c_int32),
        ("base", c_char_p),
        ("base_name", c_char_p),
        ("max_steps", c_uint64),
        ("evaluate_every", c_uint64),
        ("checkpoint_every_steps", c_uint64),
    ]


class Plan(_Sized):
    _fields_ = [
        ("struct_size", c_size_t),
        ("global_batch_size", c_uint64),
        ("steps_per_epoch", c_uint64),
        ("total_steps", c_uint64),
        ("seed", c_uint64),
        ("logical_shards", c_int32),
    ]


class Tensor(_Sized):
    _fields_ = [
        ("struct_size", c_size_t),
        ("name", c_char_p),
        ("role", c_int32),
        ("dtype", c_int32),
        ("dimensions", c_int32),
        ("device", c_int32),
        ("shape", POINTER(c_int64)),
        ("data", c_void_p),
    ]


class Final(_Sized):
    _fields_ = [
        ("struct_size", c_size_t),
        ("stem", c_char_p),
        ("file_bytes", c_uint64),
        ("tensors", POINTER(c_char_p)),
        ("names", POINTER(c_char_p)),
        ("tensor_count", c_int32),
        ("file_count", c_int32),
        ("files", POINTER(c_char_p)),
        ("file_texts", POINTER(c_char_p)),
        ("file_sizes", POINTER(c_size_t)),
    ]


class Work(_Sized):
    _fields_ = [
        ("struct_size", c_size_t),
        ("kind", c_int32),
        ("shard", c_int32),
        ("epoch", c_uint64),
        ("step", c_uint64),
        ("samples", POINTER(c_uint64)),
        ("sample_count", c_size_t),
        ("seed", c_uint64),
        ("gradient", c_void_p),
        ("reduced", c_void_p),
        ("gradient_elements", c_size_t),
        ("samples_sum", c_double),
        ("loss_sum", c_double),
        ("correct_sum", c_double),
        ("travels_early", c_int32),
        ("last", c_int32),
        ("doublings", c_int32),
        ("device", c_int32),
        ("schedule_step", c_uint64),
        ("weight_sum", c_double),
        ("mean_factor", c_double),
        ("sum_names", POINTER(c_char_p)),
        ("sum_values", POINTER(c_double)),
        ("sum_count", c_int32),
        ("first", c_int32),
    ]


class Sums(_Sized):
    _fields_ = [
        ("struct_size", c_size_t),
        ("weighs", c_int32),
        ("count", c_int32),
        ("weight", c_double),
        ("names", POINTER(c_char_p)),
        ("values", POINTER(c_double)),
    ]


class End(_Sized):
    _fields_ = [
        ("struct_size", c_size_t),
        ("reason", c_int32),
        ("exit_code", c_int32),
        ("step", c_uint64),
        ("message", c_char_p),
        ("parameters_sha256", c_char_p),
    ]


_FUNCTIONS = {
    "pliant_last_error": (c_char_p, []),
    "pliant_abi_version": (c_int32, []),
    "pliant_version": (c_char_p, []),
    "pliant_open": (c_int32, [POINTER(Options), POINTER(c_void_p)]),
    "pliant_close": (None, [c_void_p]),
    "pliant_get_job": (c_int32, [c_void_p, POINTER(Job)]),
    "pliant_describe": (c_int32, [c_void_p, POINTER(Training)]),
    "pliant_get_plan": (c_int32, [c_void_p, POINTER(Plan)]),
    "pliant_register": (c_int32, [c_void_p, POINTER(Tensor), POINTER(c_int32)]),
    "pliant_describe_final": (c_int32, [c_void_p, POINTER(Final)]),
    "pliant_use_stream": (c_int32, [c_void_p, c_void_p]),
    "pliant_start": (c_int32, [c_void_p]),
    "pliant_next": (c_int32, [c_void_p, c_double, POINTER(Work)]),
    "pliant_gradients_ready": (c_int32, [c_void_p, c_int32, c_int32]),
    "pliant_put_gradients": (c_int32, [c_void_p, c_void_p, c_int32, c_int32, c_double]),
    "pliant_data_waited": (c_int32, [c_void_p, c_double]),
    "pliant_report_sums": (c_int32, [c_void_p, POINTER(Sums)]),
    "pliant_shard_done": (c_int32, [c_void_p, c_double, c_double, c_double]),
    "pliant_shard_done_on": (c_int32, [c_void_p, c_double, c_void_p]),
    "pliant_gradient_norm": (c_int32, [c_void_p, POINTER(c_void_p), c_int32, POINTER(c_double)]),
    "pliant_committed": (c_int32, [c_void_p, c_int32]),
    "pliant_evaluated": (c_int32, [c_void_p]),
    "pliant_stop": (c_int32, [c_void_p]),
    "pliant_save_checkpoint": (c_int32, [c_void_p]),
    "pliant_export_best": (c_int32, [c_void_p, c_char_p]),
    "pliant_loaded": (c_int32, [c_void_p]),
    "pliant_fail": (c_int32, [c_void_p, c_int32, c_char_p]),
    "pliant_leave": (c_int32, [c_void_p]),
    "pliant_request_learners": (c_int32, [c_void_p, c_int32]),
    "pliant_keep_output": (c_int32, [c_void_p, c_char_p, c_size_t]),
    "pliant_forecast": (c_int32, [c_void_p, c_uint64, POINTER(Work)]),
    "pliant_next_metrics": (c_int32, [c_void_p, POINTER(c_char_p)]),
    "pliant_get_end": (c_int32, [c_void_p, POINTER(End)]),
}

_loaded: ctypes.CDLL | None = None


def library_path() -> Path:
    """PLIANT_LIBRARY, else the library in the package."""
    named = os.environ.get("PLIANT_LIBRARY")
    return Path(named) if named else Path(__file__).with_name("lib") / "libpliant.so"


def library() -> ctypes.CDLL:
    """The library, loaded at the first call. Raises ImportError, with the reason, if it cannot
    be."""
    global _loaded
    if _loaded is None:
        path = library_path()
        try:
            # A framework may export its own OpenSSL to the whole process, as TensorFlow does with
            # BoringSSL. DEEPBIND: the library uses the OpenSSL that it was linked with.
            loaded = ctypes.CDLL(str(path), mode=os.RTLD_NOW | os.RTLD_LOCAL | os.RTLD_DEEPBIND)
        except OSError as error:
            raise ImportError(f"pliant's library cannot be loaded from {path}: {error}") from None
        # Checked first: an older library lacks some of the functions looked up below.
        if loaded.pliant_abi_version() < ABI_VERSION:
            raise ImportError(f"{path} is older than this package")
        for name, (result, arguments) in _FUNCTIONS.items():
            function = getattr(loaded, name)
            function.restype, function.argtypes = result, arguments
        _loaded = loaded
    return _loaded


def texts(strings: Iterable[str]) -> "ctypes.Array[c_char_p]":
    encoded = [string.encode() for string in strings]
    return (c_char_p * len(encoded))(*encoded)


def floats_at(address: int, count: int) -> ctypes.Array[c_float]:
    return (c_float * count).from_address(address)

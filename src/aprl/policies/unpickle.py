"""Reading a NumPy array from a pickle that nobody vouches for.

A pickle is a program: it names functions and calls them. Here every name that a pickled array needs
stands for a small stand-in that only takes notes, and every other name is refused. No NumPy or
Python function runs until the notes are complete and have been checked.
"""

import io
import pickle
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from aprl.errors import PolicyError, first_line
from aprl.files import PathLike

_NUMBER = re.compile(r"[<>=|]?[biuf](1|2|4|8)")


def read_array_pickle(path: PathLike) -> np.ndarray:
    """Read a pickle that holds one array of numbers, written by Python 2 or 3.

    Args:
        path: the file. Code in it is never run.

    Returns:
        The array, a copy, of a boolean, integer or float type.

    Raises:
        PolicyError: the file is missing, truncated, no pickle, names anything but the parts of an
            array (the message says what), or holds something else than one array of numbers.
    """
    path = Path(path)
    notes = read_notes(path)
    if not isinstance(notes, ArrayNotes):
        raise PolicyError(f"{path}: holds a {type(notes).__name__}, expected a NumPy array")
    try:
        return notes.build()
    except (TypeError, ValueError, OverflowError) as error:
        raise PolicyError(f"{path}: holds no readable array of numbers ({error})") from None


def read_notes(path: PathLike, classes: Mapping[tuple[str, str], type] | None = None) -> Any:
    """Read a pickle of Python's basic types, arrays, and objects of some classes.

    Args:
        path: the file. Code in it is never run.
        classes: stand-ins for further classes, by module and name.

    Returns:
        The content, with `ArrayNotes` for arrays.

    Raises:
        PolicyError: the file is missing, truncated, no pickle, or names anything else.
    """
    path = Path(path)
    try:
        data = path.read_bytes()
    except OSError as error:
        raise PolicyError(f"{path}: cannot be read ({error.strerror})") from None
    try:
        # latin1 maps Python 2 strings to text without loss.
        return _Unpickler(io.BytesIO(data), classes or {}).load()
    except PolicyError as error:
        raise PolicyError(f"{path}: {error}") from None
    except Exception as error:  # the pickle machine raises almost anything on a damaged file
        reason = first_line(error)
        raise PolicyError(f"{path}: truncated, damaged or no pickle ({reason})") from None


class _Dtype:
    """Notes about a dtype."""

    __slots__ = ("order", "spec")
    order: Any

    def __init__(self, spec: Any, *_: Any) -> None:
        self.spec, self.order = spec, None

    def __setstate__(self, state: Any) -> None:
        self.order = state[1]

    def build(self) -> np.dtype:
        spec = self.spec.decode("latin1") if isinstance(self.spec, bytes) else self.spec
        if not isinstance(spec, str) or not _NUMBER.fullmatch(spec):
            raise ValueError(f"type {spec!r}")
        # NumPy writes "f4" and puts the byte order into the state.
        return np.dtype(self.order + spec[-2:] if self.order in ("<", ">") else spec)


class ArrayNotes:
    """Notes about an array: enough to build it, unchecked."""

    __slots__ = ("dtype", "fortran", "raw", "shape")
    shape: Any
    dtype: Any
    fortran: Any
    raw: Any

    def __init__(self) -> None:
        self.shape, self.dtype, self.fortran, self.raw = (), None, False, b""

    def __setstate__(self, state: Any) -> None:
        _, self.shape, self.dtype, self.fortran, self.raw = state

    def build(self) -> np.ndarray:
        """The array, a copy.

        Raises:
            TypeError: it is not an array of numbers.
            ValueError: likewise, or its size is not what its shape says.
            OverflowError: its shape is absurd.
        """
        if not isinstance(self.dtype, _Dtype):
            raise TypeError("no type")
        raw = self.raw.encode("latin1") if isinstance(self.raw, str) else self.raw
        flat = np.frombuffer(raw, self.dtype.build())
        return flat.reshape(self.shape, order="F" if self.fortran else "C").copy()


def _reconstruct(*_: Any) -> ArrayNotes:
    return ArrayNotes()  # its content follows as a state


def _frombuffer(raw: Any, dtype: Any, shape: Any, order: Any, axes: Any = None) -> ArrayNotes:
    if order not in ("C", "F") or axes is not None:
        raise ValueError(f"memory order {order!r}")
    array = ArrayNotes()
    array.__setstate__((1, shape, dtype, order == "F", raw))
    return array


def _scalar(dtype: Any, raw: Any) -> ArrayNotes:
    array = ArrayNotes()
    array.__setstate__((1, (), dtype, False, raw))
    return array


def _encode(text: Any, encoding: Any = None) -> bytes:
    if not isinstance(text, str) or encoding not in ("latin1", "latin-1"):
        raise ValueError(f"encoding {encoding!r}")
    return text.encode("latin1")


class _StandIn:
    """A callable without attributes that a pickle could set."""

    __slots__ = ("_function",)
    _function: Callable[..., Any]

    def __init__(self, function: Callable[..., Any]) -> None:
        object.__setattr__(self, "_function", function)

    def __call__(self, *args: Any) -> Any:
        return self._function(*args)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"cannot set {name}")


_STAND_INS: dict[tuple[str, str], _StandIn] = {
    ("numpy", "ndarray"): _StandIn(_reconstruct),
    ("numpy", "dtype"): _StandIn(_Dtype),
    ("_codecs", "encode"): _StandIn(_encode),
}
for _core in ("numpy.core", "numpy._core"):
    _STAND_INS[f"{_core}.multiarray", "_reconstruct"] = _StandIn(_reconstruct)
    _STAND_INS[f"{_core}.multiarray", "scalar"] = _StandIn(_scalar)
    _STAND_INS[f"{_core}.numeric", "_frombuffer"] = _StandIn(_frombuffer)


class _Unpickler(pickle.Unpickler):
    """Knows the stand-ins and nothing else."""

    def __init__(self, file: io.BytesIO, classes: Mapping[tuple[str, str], type]) -> None:
        super().__init__(file, encoding="latin1")
        self._classes = classes

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) in self._classes:
            return self._classes[module, name]
        try:
            return _STAND_INS[module, name]
        except KeyError:
            raise PolicyError(
                f"refused, as it asks for {module}.{name}, which is no part of a NumPy array"
            ) from None

import os
import pickle

import numpy as np
import pytest

from aprl.errors import PolicyError
from aprl.policies.unpickle import read_array_pickle

ARRAYS = [
    np.arange(7, dtype=np.float32),
    np.arange(6.0).reshape(2, 3),
    np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    np.arange(4, dtype=">i4"),
    np.array([True, False]),
    np.float32(2.5),
    np.arange(20)[::3],
]


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("array", ARRAYS, ids=lambda a: f"{a.dtype.str}{a.shape}")
def test_arrays_come_back_whatever_the_protocol(array, protocol, tmp_path):
    path = tmp_path / "a.pkl"
    path.write_bytes(pickle.dumps(array, protocol))
    result = read_array_pickle(path)
    np.testing.assert_array_equal(result, array)
    assert result.dtype == array.dtype
    assert result.shape == array.shape
    assert result.flags.writeable


def test_python_2_pickle(tmp_path):
    """As NumPy 1.x on Python 2 wrote it: byte strings where Python 3 has bytes."""
    values = np.float32([1.5, -2.0, 200.0])
    raw = b"".join(rb"\x%02x" % byte for byte in values.tobytes())
    path = tmp_path / "a.pkl"
    path.write_bytes(
        b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(I0\ntS'b'\ntR"
        b"(I1\n(I3\ntcnumpy\ndtype\n(S'f4'\nI0\nI1\ntR(I3\nS'<'\nNNNI-1\nI-1\nI0\ntb"
        b"I00\nS'" + raw + b"'\ntb."
    )
    np.testing.assert_array_equal(read_array_pickle(path), values)


class Call:
    """Pickles as a call of a function."""

    def __init__(self, function, *args):
        self.call = function, args

    def __reduce__(self):
        return self.call


@pytest.mark.parametrize("protocol", [0, 2, 4])
@pytest.mark.parametrize("wrap", [lambda x: x, lambda x: [np.zeros(2), x]], ids=["bare", "list"])
def test_code_is_refused_by_name_and_does_not_run(protocol, wrap, tmp_path):
    canary = tmp_path / "canary"
    data = pickle.dumps(wrap(Call(os.mkdir, str(canary))), protocol)
    pickle.loads(data)
    assert canary.is_dir()  # the pickle does what it says when nobody stops it
    canary.rmdir()
    path = tmp_path / "evil.pkl"
    path.write_bytes(data)
    with pytest.raises(PolicyError, match=rf"refused, as it asks for {os.mkdir.__module__}\.mkdir"):
        read_array_pickle(path)
    assert not canary.exists()


@pytest.mark.parametrize(
    "name", ["builtins eval", "builtins getattr", "numpy load", "numpy.core.multiarray fromfile"]
)
def test_every_other_name_is_refused_even_uncalled(name, tmp_path):
    path = tmp_path / "evil.pkl"
    path.write_bytes(b"\x80\x03c" + name.replace(" ", "\n").encode() + b"\n.")
    with pytest.raises(PolicyError, match=f"asks for {name.replace(' ', '.')}, which is no part"):
        read_array_pickle(path)


@pytest.mark.parametrize(
    "data",
    [
        # a state set on the stand-in for numpy.dtype: attributes, then slots
        b"\x80\x02cnumpy\ndtype\n}(X\x01\x00\x00\x00aK\x01ub.",
        b"\x80\x02cnumpy\ndtype\nN}(X\x09\x00\x00\x00_functionK\x01u\x86b.",
        # an array whose content is a number of bytes instead of bytes
        b"\x80\x02cnumpy.core.multiarray\nscalar\ncnumpy\ndtype\nX\x02\x00\x00\x00f8\x85RK\x08\x86R.",
        # pointers dressed as an array of objects
        b"\x80\x04cnumpy.core.numeric\n_frombuffer\n(C\x08AAAAAAAAcnumpy\ndtype\nX\x01\x00\x00\x00O"
        b"\x85RK\x01\x85X\x01\x00\x00\x00CtR.",
    ],
    ids=["attributes", "slots", "size", "objects"],
)
def test_crafted_states_change_nothing(data, tmp_path):
    path = tmp_path / "evil.pkl"
    path.write_bytes(data)
    with pytest.raises(PolicyError, match=r"evil\.pkl"):
        read_array_pickle(path)
    path.write_bytes(pickle.dumps(ARRAYS[0]))
    np.testing.assert_array_equal(read_array_pickle(path), ARRAYS[0])


@pytest.mark.parametrize("keep", [0, 1, 20, 100, -1])
def test_truncated_file(keep, tmp_path):
    path = tmp_path / "a.pkl"
    path.write_bytes(pickle.dumps(np.arange(100), 3)[:keep])
    with pytest.raises(PolicyError, match=r"a\.pkl: truncated, damaged or no pickle") as error:
        read_array_pickle(path)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("content", [b"hello, world\n", b"PK\x03\x04 zip", b"\x80\x63."])
def test_no_pickle(content, tmp_path):
    path = tmp_path / "a.pkl"
    path.write_bytes(content)
    with pytest.raises(PolicyError, match="no pickle"):
        read_array_pickle(path)


def test_missing_file(tmp_path):
    with pytest.raises(PolicyError, match=r"a\.pkl: cannot be read"):
        read_array_pickle(tmp_path / "a.pkl")


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"a": 1}, "holds a dict"),
        ([np.zeros(2)], "holds a list"),
        (np.array(["a"]), "type 'U1'"),
        (np.array([{}]), "type 'O8'"),
        (np.zeros(2, [("a", "f4")]), "type 'V4'"),
    ],
)
def test_other_content_is_named(value, message, tmp_path):
    path = tmp_path / "a.pkl"
    path.write_bytes(pickle.dumps(value, 3))
    with pytest.raises(PolicyError, match=message):
        read_array_pickle(path)

"""Files of arrays whose headers claim what is not there."""

import io
import struct
import zipfile
from pathlib import Path

import numpy as np
import pytest

from umix import limits
from umix.data.arrays.array_file import read_array
from umix.errors import UserError


def npy(header: str, data: bytes = b"", version: int = 1) -> bytes:
    """A file of one array with any header."""
    text = header.encode() + b"\n"
    length = struct.pack("<H" if version == 1 else "<I", len(text))
    return np.lib.format.MAGIC_PREFIX + bytes([version, 0]) + length + text + data


def header(shape: str, kind: str = "'<f4'") -> str:
    return f"{{'descr': {kind}, 'fortran_order': False, 'shape': {shape}, }}"


def write(path: Path, content: bytes) -> Path:
    """The array at ``path``: the content itself, or the entry x of an archive."""
    if path.suffix == ".npy":
        path.write_bytes(content)
    else:
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("x.npy", content)
    return path


@pytest.mark.parametrize("suffix", [".npy", ".npz"])
@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (npy(header("(1000000000000000,)"), bytes(64)), r"header claims 4,000,000,000,000,000 bytes of shape"),
        (npy(header("(9223372036854775807, 2)"), bytes(64)), "header claims 73,786,976,294,838,206,456 bytes"),
        (npy(header("(-1, 3)"), bytes(64)), "header claims -12 bytes"),
        (npy(header("(48, 3)"), bytes(64), version=2), "header claims 576 bytes"),
        (npy(header("(2,)", "'|O'"), bytes(64)), "must hold plain numbers or texts, but it holds Python objects"),
        (npy(header("(2,)", "[('a', '<f4'), ('b', '|O')]"), bytes(64)), "Python objects"),
        (npy(header("(" * 3000)), "must be a whole"),
        (npy("[" * 9000), "must be a whole"),
        (npy("__import__('os')"), "must be a whole"),
        (npy(header("(" + "9" * 5000 + ",)")), "must be a whole"),
    ],
    ids=[
        "10^15 numbers",
        "2^64 numbers",
        "negative",
        "cut",
        "objects",
        "records",
        "brackets",
        "no end",
        "code",
        "digits",
    ],
)
def test_a_header_that_claims_what_is_not_there_is_refused_before_anything_is_allocated(
    tmp_path: Path, suffix: str, content: bytes, sentence: str
) -> None:
    with pytest.raises(UserError, match=sentence) as caught:
        read_array(write(tmp_path / f"rows{suffix}", content), "x")
    assert len(str(caught.value)) < 290


def test_an_archive_larger_than_memory_is_refused_by_its_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    np.savez_compressed(tmp_path / "rows.npz", x=np.zeros((1000, 1000), dtype=np.float32))
    assert (tmp_path / "rows.npz").stat().st_size < 100_000
    assert read_array(tmp_path / "rows.npz", "x").shape == (1000, 1000)
    monkeypatch.setattr(limits, "memory", lambda: 10**6)
    with pytest.raises(UserError, match=r"The array 'x' of rows\.npz takes 0\.0 GB of memory, .* save it as \.npy"):
        read_array(tmp_path / "rows.npz", "x")


def test_of_two_arrays_of_one_name_the_one_that_is_read_is_checked(tmp_path: Path) -> None:
    small = io.BytesIO()
    np.save(small, np.zeros(3))
    with zipfile.ZipFile(tmp_path / "x.npz", "w") as archive:
        archive.writestr("x.npy", small.getvalue())
        with pytest.warns(UserWarning, match="Duplicate name"):
            archive.writestr("x.npy", npy(header("(1000000000000000,)")))
    with pytest.raises(UserError, match="header claims"):
        read_array(tmp_path / "x.npz", "x")

"""Where exported files may be written: to new places, and over what an earlier export wrote."""

import mmap
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from umix.errors import UserError
from umix.exports.described import MARK
from umix.files import ensure_writable, sweep, temporary_name, write_whole


def check_replaceable(path: Path) -> None:
    """Raise where ``path`` is there and was not exported by umix."""
    if path.is_dir() or (path.exists() and not _is_exported(path)):
        kind = "is a folder" if path.is_dir() else "is another file"
        raise UserError(
            f"{path} must be a new file or one that was exported before, but it {kind}; choose another place."
        )


def write_all(files: Mapping[Path, bytes]) -> None:
    """Write ``files``, each atomically; none is written where one of them may not be."""
    for path in files:
        check_replaceable(path)
    for path, content in files.items():
        write_whole(path, content)


def _is_exported(path: Path) -> bool:
    if not path.stat().st_size:
        return False
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        return content.find(MARK.encode()) >= 0


@contextmanager
def whole_folder(path: Path, *, marked: str) -> Iterator[Path]:
    """A folder that does not exist yet and becomes ``path`` when the block ends; if it raises, ``path`` is not changed.

    A ``path`` that exists must be empty, or hold the file ``marked`` of an earlier export.
    """
    if path.is_file() or (path.is_dir() and any(path.iterdir()) and not _is_folder_exported(path / marked)):
        kind = "is a file" if path.is_file() else "holds something else"
        raise UserError(
            f"{path} must be a new folder or one that was exported before, but it {kind}; choose another place."
        )
    ensure_writable(path.parent)
    sweep(path.parent, name=path.name)
    aside = path.with_name(temporary_name(path.name))
    aside.mkdir()
    new, old = aside / "new", aside / "old"
    try:
        yield new
        if path.exists():
            path.rename(old)
        try:
            new.rename(path)
        except OSError:
            if old.exists():
                old.rename(path)
            raise
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def _is_folder_exported(path: Path) -> bool:
    return path.is_file() and _is_exported(path)

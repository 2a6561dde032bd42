"""The images in a folder of one's own: found by walking it, or named by a table."""

import hashlib
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, final

from umix.data.rows.role_columns import SPLIT_WORDS
from umix.data.rows.table_file import content_hash, read_table
from umix.errors import Setting, UserError, is_utf8, unknown

if TYPE_CHECKING:
    import polars

#: The suffixes of image files.
SUFFIXES = frozenset((".jpg", ".jpeg", ".png", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".ppm", ".pgm"))
#: Names of the table in a folder, and of its column of image files.
TABLES = ("metadata.csv", "metadata.parquet")
PATHS = ("path", "file", "filename", "file_name", "filepath", "image", "image_path", "img_path", "img_filename")
_PART = re.compile(r"\{([^{}]*)\}")
#: The columns that are made from the images' paths.
PATH, FOLDER, SPLIT = "path", "folder", "split"


@final
@dataclass(frozen=True)
class FolderImages:
    """The images below a folder (sorted names relative to it), and how many other files there are."""

    names: tuple[str, ...]
    others: int


def find_images(folder: Path) -> FolderImages:
    """The images below ``folder``; hidden files are ignored, links are followed, and no folder is entered twice."""
    require_folder(folder)
    names: list[str] = []
    others, entered = 0, set()
    for place, folders, files in os.walk(folder, followlinks=True):
        state = os.stat(place)
        if (state.st_dev, state.st_ino) in entered:
            folders.clear()
            continue
        entered.add((state.st_dev, state.st_ino))
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        seen = sorted(name for name in files if not name.startswith("."))
        images = [name for name in seen if os.path.splitext(name)[1].lower() in SUFFIXES]
        where = Path(place).relative_to(folder)
        names += [(where / name).as_posix() for name in images]
        for name in names[-len(images) :] if images else []:
            if not is_utf8(name):  # as unpacked from an archive of another system
                raise UserError(f"The names of images must be text in UTF-8, got {name!r}; rename it.")
        others += len(seen) - len(images) - sum(name in TABLES for name in seen)
    return FolderImages(tuple(sorted(names)), others)


def table_in(folder: Path) -> Path | None:
    """The table that lies in ``folder`` beside the images; None if there is none."""
    return next((folder / name for name in TABLES if (folder / name).is_file()), None)


def images_hash(folder: Path, table: Path | None) -> str:
    """A hash of the names and sizes of the images below ``folder`` and of their ``table``."""
    images = find_images(folder).names
    digest = hashlib.sha256(b"" if table is None else content_hash(table).encode())
    for name in images:
        digest.update(f"{name}\0{_size(folder / name)}\0".encode())
    return digest.hexdigest()[:32]


def _size(path: Path) -> int:
    """The size of an image's file, -1 where a link leads nowhere, which is refused when the image is needed."""
    try:
        return path.stat().st_size
    except OSError:
        return -1


def require_folder(folder: Path) -> None:
    """Raise where there is no such folder."""
    if not os.path.isdir(folder):
        raise UserError(f"There is no folder {folder}.")


def by_folder(folder: Path) -> tuple["polars.DataFrame", list[str]]:
    """Path and folder (the class) of every image, its split where the top folders are called train, val or test, and notes."""
    import polars

    found = find_images(folder)
    parts = [name.split("/") for name in found.names]
    first = {part[0].lower() for part in parts if len(part) > 1}
    divided = bool(first) and first <= set(SPLIT_WORDS) and all(len(part) > 2 for part in parts if len(part) > 1)
    depth = 1 if divided else 0
    inside = [part for part in parts if len(part) > depth + 1]
    if not inside:
        raise UserError(
            f"{folder} must hold images in a folder for each class, like {folder.name}/cat/1.jpg, but it has "
            f"{len(found.names)} images and none in a folder."
        )
    notes = []
    if len(inside) < len(parts):
        notes.append(f"{len(parts) - len(inside)} images lie in no class folder and are left out.")
    if found.others:
        notes.append(f"{found.others} files that are no images are left out.")
    columns = {PATH: ["/".join(part) for part in inside], FOLDER: [part[depth] for part in inside]}
    if divided:
        columns[SPLIT] = [part[0] for part in inside]
    return polars.DataFrame(columns), notes


def by_folder_and_table(folder: Path, table: Path, path: str | None) -> tuple["polars.DataFrame", list[str]]:
    """What ``by_folder`` says of every image, with the columns of ``table``, blank where it has no row, and notes.

    The table names images by their paths or, where it has no path of an image and names differ, by the names of their files.
    """
    import polars

    frame, notes = by_folder(folder)
    rows, column = by_table(folder, table, path)
    key = rows[column].str.strip_prefix(str(folder.resolve()) + os.sep).str.strip_prefix("./")
    images, names = frame[PATH], frame[PATH].str.split("/").list.last()
    if not key.is_in(images.implode()).any() and not names.is_duplicated().any():
        images = names
    if not (n_named := int(images.is_in(key.implode()).sum())):
        raise UserError(
            f"The column {column!r} of {table.name} must name images below {folder} as in {frame[PATH][0]!r}, but none of its "
            f"{len(rows)} rows does."
        )
    if n_named < len(frame):
        notes.append(f"{len(frame) - n_named} images have no row in {table.name}, so its columns are blank for them.")
    if n_named < len(rows):
        notes.append(f"{len(rows) - n_named} rows of {table.name} name no image in a class folder and are left out.")
    others = rows.drop({column, *frame.columns} & set(rows.columns))
    place = polars.DataFrame({"key": key, "row": range(len(rows))})
    row = polars.DataFrame({"key": images}).join(place, on="key", how="left", maintain_order="left")["row"]
    return frame.hstack(others[row] if len(others.columns) else others), notes


def parts_of(pattern: str) -> list[str]:
    """The names in braces in a pattern of folders; raises where it has none, or one that cannot be the name of a column.

    >>> parts_of("{split}/{kind}({place})")
    ['split', 'kind', 'place']
    """
    names = _PART.findall(pattern)
    legal = all(name.isidentifier() and name != PATH for name in names)
    if not names or len(set(names)) < len(names) or not legal or set("{}") & set(_PART.sub("", pattern)):
        raise UserError(
            Setting("folders"),
            f" must have different names of columns in braces, like {{place}}/{{kind}}, but not {PATH}, got {pattern!r}.",
        )
    return names


def by_pattern(folder: Path, pattern: str) -> tuple["polars.DataFrame", list[str]]:
    """Path of every image and a column for each name in ``pattern``, which the images' folders must fit, and notes.

    A name stands for a text without a slash, as short as it can be: ``{kind}/{kind_again}({place})`` takes the place out of
    ``cat/cat(indoor)``. Images in folders that do not fit are left out.
    """
    import polars

    names, found = parts_of(pattern), find_images(folder)
    literal = [re.escape(text) for text in _PART.split(pattern)[::2]]
    groups = [f"(?P<{name}>[^/]+?)" for name in names]
    fits = re.compile("".join(a + b for a, b in zip(literal, [*groups, ""], strict=True)).strip("/"))
    matches = [(name, fits.fullmatch(name.rpartition("/")[0])) for name in found.names]
    inside = [(name, match.groupdict()) for name, match in matches if match]
    if not inside:
        lies = f"its first of {len(matches)} lies in {matches[0][0].rpartition('/')[0]!r}" if matches else "it has none"
        raise UserError(f"{folder} must have images in folders that fit {pattern!r}, but {lies}.")
    others = len(matches) - len(inside)
    notes = [f"{others} images in folders that do not fit {pattern!r} are left out."] if others else []
    return polars.DataFrame({PATH: [name for name, _ in inside]} | {n: [p[n] for _, p in inside] for n in names}), notes


def by_table(folder: Path, table: Path, path: str | None) -> tuple["polars.DataFrame", str]:
    """The rows of ``table`` and its column of image paths, relative to ``folder``; every image must have one row."""
    import polars

    frame = read_table(table)
    name = path_column(frame.columns, path, table)
    files = frame[name]
    if files.dtype != polars.String:
        raise UserError(f"The column {name!r} of {table.name} must hold paths of images, got {files.dtype}.")
    if missing := int((files.is_null() | (files == "")).sum()):
        raise UserError(
            f"The column {name!r} of {table.name} must name an image in every row, but {missing} rows have none."
        )
    twice = frame.filter(files.is_duplicated())[name].unique().to_list()
    if twice:
        raise UserError(
            f"Every image of {table.name} must have one row, but {_listed(sorted(twice))} have several in {name!r}."
        )
    return frame, name


def path_column(columns: Sequence[str], named: str | None, table: Path) -> str:
    """The column that names the images: the one given, or the only one with a usual name (``PATHS``)."""
    if named is not None:
        if named not in columns:
            raise unknown(f"path column of {table.name}", named, columns)
        return named
    usual = [name for name in columns if name.lower() in PATHS]
    if len(usual) != 1:
        raise UserError(
            f"{table.name} needs ",
            Setting("path_column"),
            f" with the column that names the images; it has {', '.join(columns)}.",
        )
    return usual[0]


def _listed(names: Sequence[str]) -> str:
    return ", ".join(repr(name) for name in names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")

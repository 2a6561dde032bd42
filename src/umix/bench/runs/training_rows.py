"""The training examples of a run as reports need them, ``training.parquet``: label, groups, and where each one came from.

``label`` is the number of the class. Disjoint groups have one column ``group``; of groups that overlap each has a column of its
own, ``group 0``, ``group 1``, …, that says who is in it. Where some examples have a blank in some of the group columns only,
``column 1``, ``column 2``, … are the values of these columns. ``row`` is the row in the user's file, ``file`` the path of an image.
"""

import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

from umix.data.images.image_files import Images
from umix.data.task import Split, Task
from umix.files import write_whole
from umix.run_folder import TRAINING_ROWS

if TYPE_CHECKING:
    import polars


def image_files(task: Task, split: str = "train") -> list[str] | None:
    """The paths of the images of a split, before they are decoded; None where the task has other inputs."""
    x = task.splits[split].x
    return [str((x.folder / name).absolute()) for name in x.files] if isinstance(x, Images) else None


def group_columns(split: Split, *, overlap: bool) -> dict[str, Any]:
    """The groups of every example: where they do not ``overlap`` one column ``group``, -1 if not known; else one for each.

    Where some examples have values in some of the group columns and no group, the values of each are a column too.
    """
    import polars

    if split.groups.names and not overlap:
        columns: dict[str, Any] = {"group": split.groups.codes.cpu().numpy().astype("int32")}
        if split.groups.column_codes is not None:
            for place, values in list(enumerate(split.groups.column_values))[1:]:
                texts = [(*values, None)[code] for code in split.groups.column_codes[:, place].tolist()]
                columns[f"column {place}"] = polars.Series(texts, dtype=polars.String)
        return columns
    member = split.member.cpu().numpy()
    return {f"group {number}": member[:, number] for number in range(member.shape[1])}


def training_rows(train: Split, files: list[str] | None = None) -> "polars.DataFrame":
    """What is known of the examples ``train``, a row each."""
    import polars

    columns: dict[str, Any] = {"label": train.y.cpu().numpy().astype("int32")}
    columns |= group_columns(train, overlap=train.groups.overlap)
    if train.origin is not None:
        columns["row"] = train.origin.astype("int64")
    if files is not None:
        columns["file"] = files
    return polars.DataFrame(columns)


def write_training_rows(directory: Path, rows: "polars.DataFrame") -> None:
    """Write the table ``rows`` of training examples into the run's folder, whole or not at all."""
    content = io.BytesIO()
    rows.write_parquet(content)
    write_whole(directory / TRAINING_ROWS, content.getvalue())

"""The rows of a comparison, where the data of the run are no longer what they were."""

from pathlib import Path

import pytest
from torch import nn

from umix.bench.runs.record import RunRecord
from umix.data.images.image_folder import ImageReader
from umix.exports.check_rows import check_rows
from umix.exports.image_inputs import ImageInputs
from umix.nets.net import Net


@pytest.mark.parametrize("files", [[], ["notes.txt"], ["broken.png"]], ids=["empty", "no images", "no image at all"])
def test_a_folder_without_images_that_can_be_read_gives_made_up_ones(
    files: list[str], arrays: RunRecord, tmp_path: Path
) -> None:
    for name in files:
        (tmp_path / name).write_text("mine")
    moved = arrays.model_copy(update={"task": str(tmp_path)})
    reader = ImageReader(28)
    rows = check_rows(moved, reader, Net(nn.Identity(), nn.Identity()), ImageInputs(reader))
    assert rows.words == f"{len(rows.tensors[0])} made-up rows"

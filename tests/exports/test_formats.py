from pathlib import Path

import pytest

from umix.errors import UserError
from umix.exports.formats import format_of


@pytest.mark.parametrize(
    ("output", "format"),
    [("a.onnx", "onnx"), ("A.PT2", "pt2"), ("a.safetensors", "state_dict"), ("README.md", "card"), ("a", "state_dict")],
)
def test_the_suffix_decides_the_format(output: str, format: str) -> None:
    assert format_of(Path(output)) == format
    assert format_of(Path(output), format) == format


def test_an_existing_folder_is_a_folder_whatever_its_name(tmp_path: Path) -> None:
    (tmp_path / "model.v2").mkdir()
    assert format_of(tmp_path / "model.v2") == "state_dict"
    assert format_of(tmp_path / "model.v2", "mlflow") == "mlflow"


def test_unknown_suffixes_and_formats_that_do_not_fit_are_refused() -> None:
    with pytest.raises(
        UserError, match=r"must end in \.onnx, \.pt2, \.safetensors or \.md, or be a folder .* got 'a\.h5'"
    ):
        format_of(Path("a.h5"))
    with pytest.raises(UserError, match=r"must end in \.onnx for the format onnx, got 'a\.pt2'"):
        format_of(Path("a.pt2"), "onnx")
    with pytest.raises(UserError, match=r"must be a folder without a suffix for the format mlflow, got 'a\.onnx'"):
        format_of(Path("a.onnx"), "mlflow")
    with pytest.raises(UserError, match=r"Unknown format of an exported model 'onxx'; did you mean 'onnx'"):
        format_of(Path("a.onnx"), "onxx")

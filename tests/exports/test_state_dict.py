"""State dicts: the lines that come with them load them, and the net then gives what ``umix predict`` gives."""

import json
from pathlib import Path

import polars
import pytest
import torch
from safetensors import safe_open

import umix
from umix.bench.runs.record import RunRecord
from umix.errors import UserError


@pytest.mark.parametrize("run", ["record", "coded", "arrays"])
def test_the_lines_of_a_folder_load_it_and_predict_as_umix_does(
    run: str, people: polars.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    known: RunRecord = request.getfixturevalue(run)
    exported = umix.export(known, tmp_path / "model")
    assert [path.name for path in exported.files] == ["model.safetensors", "config.json", "README.md"]
    monkeypatch.chdir(tmp_path / "model")
    lines = "\n".join(json.loads(Path("config.json").read_text())["load"])
    assert ("umix" in lines) == (run == "coded")  # layers of torch.nn need no umix
    assert lines in Path("README.md").read_text()
    names: dict = {}
    exec(compile(lines, "config.json", "exec"), names)  # noqa: S102 — our own lines
    new = torch.randn(30, 3) if run == "arrays" else people.drop("income").head(30)
    labels, probabilities = names["predict"](umix.load_result(known.directory).inputs(new))
    expected = umix.predict(known, new)
    assert labels == expected["label"].to_list()
    columns = expected.select(f"p_{name}" for name in known.classes)
    assert probabilities.numpy() == pytest.approx(columns.to_numpy(), abs=1e-6)


def test_a_single_file_has_its_config_as_metadata(record: RunRecord, people: polars.DataFrame, tmp_path: Path) -> None:
    exported = umix.export(record, tmp_path / "model.safetensors")
    assert exported.not_included == (
        "preprocessing, threshold and calibration, which the metadata of the file describes",
    )
    with safe_open(tmp_path / "model.safetensors", framework="pt") as file:
        assert set(file.keys()) == {"body.0.weight", "body.0.bias", "head.weight", "head.bias"}
        config = json.loads(file.metadata()["umix"])
    columns = {one["name"]: one for one in config["preprocessing"]["columns"]}
    assert (columns["label"]["values"], columns["label"]["gaps"]) == (["chef", "clerk", "nurse"], True)
    assert columns["zip"]["mean"][0] == pytest.approx(people["zip"].mean(), rel=1e-4)
    assert config["biases"] == record.biases(record.choice()).tolist()


def test_no_file_of_a_run_is_overwritten(record: RunRecord) -> None:
    weights = next((record.directory / "weights").iterdir())
    before = weights.read_bytes()
    with pytest.raises(UserError, match="must be a new file or one that was exported before"):
        umix.export(record, weights)
    assert weights.read_bytes() == before

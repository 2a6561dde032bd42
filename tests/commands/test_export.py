"""``umix export`` as people call it, with what it refuses."""

import json
from pathlib import Path

import numpy as np
import pytest

from umix.cli import main
from umix.exports import onnx_file

FAST = ["--set", "epochs=1", "--quiet"]


def trained(capsys: pytest.CaptureFixture[str], *arguments: str) -> Path:
    assert main(["run", *arguments, *FAST, "--json"]) == 0
    return Path(json.loads(capsys.readouterr().out)["directory"])


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    x = np.random.default_rng(0).normal(size=(60, 2))
    np.savez(tmp_path / "dots.npz", x=x, y=(x[:, 0] > 0).astype(int))
    return trained(capsys, str(tmp_path / "dots.npz"), "erm", "--label", "y", "--out", str(tmp_path / "runs"))


def refused(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    """The sentence that the command prints before it exits with code 2."""
    assert main(["export", *map(str, arguments)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("umix: ")
    return " ".join(err.split())


def test_what_was_written_and_compared_is_printed(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "model.safetensors"
    assert main(["export", str(run), "-o", str(output)]) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"{output} written ({output.stat().st_size / 1e3:.0f} kB): takes x float32 [n, 2]; gives logits.",
        "The state dict agrees with umix predict exactly on 24 made-up rows.",
        "Not included: preprocessing, threshold and calibration, which the metadata of the file describes.",
    ]
    assert main(["export", str(run), "-o", str(output), "--threshold", "off", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["format"], told["files"], told["bytes"]) == ("state_dict", [str(output)], output.stat().st_size)
    assert told["check"] == {"by": "The state dict", "difference": 0.0, "rows": 24}


def test_what_cannot_be_exported_is_refused_in_a_sentence_and_nothing_is_written(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    model = tmp_path / "out" / "model.onnx"
    assert "There is no finished run in" in refused(capsys, tmp_path, "-o", model)
    assert "--output must end in .onnx, .pt2, .safetensors or .md, or be a folder" in refused(
        capsys, run, "-o", model.with_suffix(".h5")
    )
    assert "--license must be given with a model card" in refused(capsys, run, "-o", model, "--license", "mit")
    assert "Unknown selection rule 'wurst'; did you mean 'worst'?" in refused(
        capsys, run, "-o", model.with_suffix(".pt2"), "--select", "wurst"
    )
    monkeypatch.setattr(onnx_file, "installed", lambda name: name != "onnxruntime")
    assert "needs onnxruntime to be written and checked, which is not installed: pip install 'umix[onnx]'." in refused(
        capsys, run, "-o", model
    )
    assert not model.parent.exists()


def test_an_unwritable_place_is_refused(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("no folder")
    told = refused(capsys, run, "-o", tmp_path / "file" / "model.safetensors")
    assert f"Cannot use {tmp_path / 'file'}: it is a file and no folder; name another" in told


def test_a_benchmark_has_no_model_of_mlflow(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    moons = trained(capsys, "four_moons", "erm", "--set=sizes=[8,4,4,8]", "--set=eval_size=4", "--out", str(tmp_path))
    told = refused(capsys, moons, "-o", tmp_path / "model", "--format", "mlflow")
    assert "must be of a run on data of one's own (arrays, images, table, text), got a run on four_moons" in told

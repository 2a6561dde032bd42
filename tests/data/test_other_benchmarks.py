"""What docs/how-to/other-benchmarks.md says of each benchmark fits the layout of its release, on small imitations."""

import json
import re
import runpy
import shlex
import struct
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars
import pytest
from PIL import Image

from umix.cli import main

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "how-to" / "other-benchmarks.md"
BLOCK = re.compile(r"```(python|sh)\n(.*?)```", re.DOTALL)


def section(title: str) -> list[tuple[str, str]]:
    """Kind and text of the blocks below a heading of the page, in order."""
    text = PAGE.read_text(encoding="utf-8").partition(f"\n## {title}\n")[2].partition("\n## ")[0]
    return BLOCK.findall(text)


def picture(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (8, 8)).save(path)


def lines(path: Path, *rows: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")


def spuco_mnist(root: Path) -> None:
    (root / "data" / "mnist").mkdir(parents=True)
    for part, n in (("train", 25), ("t10k", 5)):
        digits = np.repeat(np.arange(10, dtype=np.uint8), n)
        images = np.zeros((len(digits), 28, 28), dtype=np.uint8)
        images[:, 8:20, 12:16] = 200
        for name, values in (("images", images), ("labels", digits)):
            header = struct.pack(f">BBBB{values.ndim}I", 0, 0, 8, values.ndim, *values.shape)
            path = root / "data" / "mnist" / f"{part}-{name}-idx{values.ndim}-ubyte"
            path.write_bytes(header + values.tobytes())


def multinli(root: Path) -> None:
    labels, rows, number = (
        ("entailment", "neutral", "contradiction", "-"),
        [",gold_label,sentence2_has_negation,split"],
        0,
    )
    for part, n in (("train", 40), ("dev_matched", 12), ("dev_mismatched", 12)):
        pairs = []
        for i in range(n):
            gold = labels[i % 4]
            negated = (i // 4) % 2
            pair = {
                "gold_label": gold,
                "sentence1": f"A cat sat {i}.",
                "sentence2": "It " + ("never " * negated) + "sat.",
            }
            pairs.append(json.dumps({"annotator_labels": [gold], "genre": "fiction", "pairID": f"{i}n", **pair}))
            if gold != "-":
                rows.append(f"{number},{i % 4},{negated},{(i // 8) % 3}")
            number += 1
        lines(root / "multinli_1.0" / f"multinli_1.0_{part}.jsonl", *pairs)
    lines(root / "metadata_random.csv", *rows)


def metashift(root: Path) -> None:
    for part, kind, place in (
        ("train", "cat", "indoor"),
        ("train", "dog", "outdoor"),
        ("test", "cat", "outdoor"),
        ("test", "dog", "indoor"),
    ):
        for i in range(10):
            picture(root / "MetaShift-Cat-Dog-indoor-outdoor" / part / kind / f"{kind}({place})" / f"{i}.jpg")


def nico(root: Path) -> None:
    for context in ("autumn", "dim", "grass", "outdoor", "rock", "water"):
        for kind in ("hot air balloon", "fox"):
            for i in range(5):
                picture(root / "public_dg_0416" / "train" / context / kind / f"{context}_{i}.jpg")


def urbancars(root: Path) -> None:
    sides = ("urban", "country")
    for shares, split in ((0.95, "train"), (0.5, "val"), (0.5, "test")):
        top = root / "urbancars" / f"bg-{shares}_co_occur_obj-{shares}" / split
        for name in (f"obj-{a}_bg-{b}_co_occur_obj-{c}" for a in sides for b in sides for c in sides):
            for i in range(2):
                picture(top / name / f"{i:03d}.jpg")


def living17(root: Path) -> None:
    rows = ["filename,y,split,a"]
    for split, folder in ((0, "train"), (1, "train"), (2, "val"), (3, "val")):
        for y in range(3):
            for i in range(4):
                image = root / "imagenet" / folder / f"n{y}{split}" / f"{i}.JPEG"
                picture(image)
                rows.append(f"{image},{y},{split},0")
    lines(root / "breeds" / "metadata_living17.csv", *rows)


def chexpert(root: Path) -> None:
    findings = "No Finding,Enlarged Cardiomediastinum,Cardiomegaly"
    for part, n in (("train", 40), ("valid", 4)):
        rows = [f"Path,Sex,Age,Frontal/Lateral,AP/PA,{findings}"]
        for i in range(n):
            image = f"CheXpert-v1.0-small/{part}/patient{i + 1:05d}/study1/view1_frontal.jpg"
            picture(root / "data" / image)
            sex = "Unknown" if i == 7 else ("Female", "Male")[i % 2]
            blank = "0.0" if part == "valid" else ""
            rows.append(f"{image},{sex},{60 + i},Frontal,AP,{'1.0' if (i // 2) % 2 else blank},,-1.0")
        lines(root / "data" / "CheXpert-v1.0-small" / f"{part}.csv", *rows)


def iwildcam(root: Path) -> None:
    rows = [",split,location_remapped,seq_id,sequence_remapped,y,datetime,filename,image_id"]
    splits = ("train", "val", "test", "id_val", "id_test")
    for number, (split, y) in enumerate((split, y) for split in splits for y in [*range(120), *range(120)]):
        name = f"{number:08d}.jpg"
        picture(root / "iwildcam_v2.0" / "train" / name)
        rows.append(f"{number},{split},{number % 9},s{number},{number},{y},2013-06-05 05:44:19.000,{name},i{number}")
    unseen = "99999,test,3,s,1,777,2013-06-05 05:44:19.000,unseen.jpg,i"
    picture(root / "iwildcam_v2.0" / "train" / "unseen.jpg")
    lines(root / "iwildcam_v2.0" / "metadata.csv", *rows, unseen)


def fmow(root: Path) -> None:
    release, rows = root / "fmow_v1.1", ["split,img_filename,category,country_code,timestamp"]
    lines(
        release / "country_code_mapping.csv",
        "name,alpha-2,alpha-3,region",
        "Chad,TD,TCD,Africa",
        "Peru,PE,PER,Americas",
    )
    for split, years in (("train", (2010, 2014)), ("val", (2011, 2014)), ("test", (2012, 2017)), ("seq", (2017, 2017))):
        for year in years:
            for code in ("TCD", "PER", "XKX"):
                for category in ("airport", "zoo"):
                    picture(release / "images" / f"rgb_img_{len(rows) - 1}.png")
                    rows.append(f"{split},x.jpg,{category},{code},{year}-05-02T10:00:00Z")
    lines(release / "rgb_metadata.csv", *rows)


def amazon(root: Path) -> None:
    rows, splits = ['"reviewerID","asin","overall","reviewText","category","reviewYear"'], ["split,clean"]
    for i in range(60):
        category = ("Books", "Video_Games")[i % 2]
        text = f'Good, ""really"" {i}\nIndeed'
        rows.append(f'"R{i}","A{i}",{1 + (i // 2) % 5}.0,"{text}","{category}",{2010 + i % 8}')
        splits.append(f"{(0, 1, 3, 2, 4, -1)[i // 10]},True")
    lines(root / "amazon_v2.1" / "reviews.csv", *rows)
    lines(root / "amazon_v2.1" / "splits" / "user.csv", *splits)


CELLS = {
    "SpuCoMNIST": (spuco_mnist, {"train": 200, "val": 50, "test": 50}, "8-9, violet"),
    "MultiNLI": (multinli, {"train": 24, "val": 18, "test": 6}, "entailment, negation=1"),
    "MetaShift": (metashift, {"train": 24, "val": 8, "test": 8}, "dog, indoor"),
    "NICO++": (nico, {"train": 36, "val": 12, "test": 12}, "hot air balloon, rock"),
    "UrbanCars": (urbancars, {"train": 16, "val": 16, "test": 16}, "country, urban, country"),
    "Living17": (living17, {"train": 12, "val": 12, "test": 12}, "2"),
    "CheXpert": (chexpert, {"train": 32, "val": 4, "test": 7}, "no finding, Male"),
    "iWildCam": (iwildcam, {"train": 240, "val": 240, "test": 240}, "species 119"),
    "FMoW": (fmow, {"train": 6, "val": 6, "test": 6}, "zoo, Other"),
    "Amazon reviews": (amazon, {"train": 10, "val": 10, "test": 10}, "5 stars, Video_Games"),
}


@pytest.mark.parametrize(
    ("title", "make", "sizes", "group"), [(title, *case) for title, case in CELLS.items()], ids=CELLS
)
def test_the_blocks_of_a_benchmark_fit_its_layout(
    title: str,
    make: Callable[[Path], None],
    sizes: dict[str, int],
    group: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    make(tmp_path)
    monkeypatch.chdir(tmp_path)
    blocks = section(title)
    assert blocks
    for kind, text in blocks:
        if kind == "python":
            exec(compile(text, f"{PAGE.name}: {title}", "exec"), {})  # noqa: S102 — our own page
            continue
        program, first, *words = shlex.split(text.replace("\\\n", " "))
        if program == "python":
            monkeypatch.setattr(sys, "argv", [first, *words])
            runpy.run_path(str(ROOT / first), run_name="__main__")
            continue
        assert (program, first) == ("umix", "run")
        assert main(["doctor", *words, "--json"]) == 0
        counts = json.loads(capsys.readouterr().out)["counts"]
        assert {name: sum(cells.values()) for name, cells in counts.items()} == sizes
        assert all(group in cells for cells in counts.values())


def test_every_benchmark_of_the_page_is_tested() -> None:
    titles = re.findall(r"^## (.+)$", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert titles == [*CELLS, "Those that do not fit"]


def test_one_of_them_is_trained_by_its_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    urbancars(tmp_path)
    monkeypatch.chdir(tmp_path)
    ((_, text),) = section("UrbanCars")
    short = ["erm", "--set", "fit.epochs=1", "--set", "task.size=8", "--set", "net.channels=[2]", "-q"]
    assert (
        main([*shlex.split(text.replace("\\\n", " "))[1:3], *short, *shlex.split(text.replace("\\\n", " "))[3:]]) == 0
    )
    assert list(Path("runs").glob("urbancars-erm-*/record.json"))


def test_a_patient_of_chexpert_is_in_one_split(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chexpert(tmp_path)
    monkeypatch.chdir(tmp_path)
    exec(section("CheXpert")[0][1], {})  # noqa: S102 — our own page
    table = polars.read_csv("data/chexpert.csv")
    patient = table["Path"].str.extract(r"(patient\d+)")
    assert (
        table.with_columns(patient=patient).group_by("patient").agg(polars.col("split").n_unique())["split"].max() == 1
    )


def test_colours_of_spuco_mnist_agree_in_training_only_and_leave_the_digit_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spuco_mnist(tmp_path)
    file = ROOT / "examples" / "benchmarks" / "spuco_mnist.py"
    monkeypatch.setattr(sys, "argv", [str(file), str(tmp_path / "data" / "mnist"), str(tmp_path / "made.npz")])
    monkeypatch.setattr(sys, "argv", [*sys.argv, "--strength", "0.9", "--label-noise", "0"])
    runpy.run_path(str(file), run_name="__main__")
    with np.load(tmp_path / "made.npz") as made:
        x, split = made["x"], made["split"]
        label, color = (np.unique(made[name], return_inverse=True)[1] for name in ("digits", "color"))
    assert (x[:, :, 8:20, 12:16] == 200).all()
    hue = {name: tuple(x[color == name][0, :, 0, 0].tolist()) for name in range(5)}
    assert len(set(hue.values())) == 5
    for name, shares in (("train", {2, 36}), ("val", {2}), ("test", {2})):
        rows = split == name
        counts = np.zeros((5, 5), dtype=int)
        np.add.at(counts, (label[rows], color[rows]), 1)
        assert set(counts.ravel().tolist()) <= {1, *shares}
        assert sorted(counts.max(axis=1)) == [max(shares)] * 5

"""Images of one's own: folders and tables as they are found in the wild, each with a decided answer."""

import os

import numpy as np
import polars
import pytest
from PIL import Image

from umix import predict
from umix.bench.runs.execute import execute
from umix.bench.runs.record import load_run
from umix.bench.spec.run_spec import RunSpec
from umix.cli import main
from umix.data.images.image_files import Images, decode
from umix.data.images.image_folder import ImageReader
from umix.data.registry import load_task, source_kind, task_source
from umix.errors import UserError

TINY = {"channels": [2], "epochs": 1, "task.size": 8, "start": 0, "length": 1}


def picture(path, color="red", size=(12, 9), mode="RGB", **options):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", size, color).convert(mode).save(path, **options)
    return path


def folders(root, n=10, classes=("cat", "dog"), prefix=""):
    for c, name in enumerate(classes):
        for i in range(n):
            picture(root / prefix / name / f"{i}.png", color=["red", "blue", "green"][c], size=(8 + i, 9))
    return root


def by_folder(root, **options):
    return load_task(f"{root}/", label_from="folder", **options)


def test_a_folder_is_a_task_of_images_and_classes_are_its_folders(tmp_path):
    assert source_kind(str(tmp_path))[0].name == source_kind("photos/")[0].name == "images"
    task = by_folder(folders(tmp_path / "photos"))
    assert (task.name, task.classes, task.groups) == ("photos", ("cat", "dog"), ())
    assert {name: len(split) for name, split in task.splits.items()} == {"train": 12, "val": 4, "test": 4}
    for split in task.splits.values():
        assert [task.classes[y] for y in split.y.tolist()] == [name.split("/")[0] for name in split.x.files]
    assert task.splits["train"].example.shape == (3, 64, 64)
    assert task.splits["train"].augment is not None
    assert by_folder(tmp_path / "photos", augment=False).splits["train"].augment is None


def test_folders_called_train_val_and_test_are_the_splits_where_they_come_first(tmp_path):
    for name, n in (("Train", 6), ("valid", 3), ("test", 4)):
        folders(tmp_path, n=n, prefix=name)
    task = by_folder(tmp_path)
    assert task.classes == ("cat", "dog")
    assert {name: len(split) for name, split in task.splits.items()} == {"train": 12, "val": 6, "test": 8}
    assert all(name.startswith("Train/") for name in task.splits["train"].x.files)


def test_without_a_val_folder_val_is_taken_out_of_train_and_said(tmp_path):
    for name in ("train", "test"):
        folders(tmp_path, prefix=name)
    task = by_folder(tmp_path)
    assert {name: len(split) for name, split in task.splits.items()} == {"train": 16, "val": 4, "test": 20}
    assert any("names no val" in note for note in task.notes)


def test_a_class_may_be_called_train_where_others_are_not_splits(tmp_path):
    assert by_folder(folders(tmp_path, classes=("bus", "train"))).classes == ("bus", "train")


def test_what_is_no_image_is_left_out_and_said(tmp_path):
    folders(tmp_path)
    (tmp_path / "empty").mkdir()
    (tmp_path / "dog" / "notes.txt").write_text("x")
    (tmp_path / "dog" / ".hidden.png").write_text("x")
    (tmp_path / ".git").mkdir()
    picture(tmp_path / ".git" / "a.png")
    picture(tmp_path / "loose.png")
    task = by_folder(tmp_path)
    assert task.classes == ("cat", "dog")
    assert sum(len(split) for split in task.splits.values()) == 20
    assert "1 files that are no images are left out." in task.notes
    assert "1 images lie in no class folder and are left out." in task.notes


def test_links_are_followed_and_a_loop_ends(tmp_path):
    folders(tmp_path / "photos", classes=("cat",))
    folders(tmp_path / "elsewhere", classes=("dog",))
    os.symlink(tmp_path / "elsewhere" / "dog", tmp_path / "photos" / "dog")
    os.symlink(tmp_path / "photos", tmp_path / "photos" / "cat" / "again")
    task = by_folder(tmp_path / "photos")
    assert (task.classes, sum(len(split) for split in task.splits.values())) == (("cat", "dog"), 20)


@pytest.mark.parametrize("target", ["nowhere.png", "gone.png"], ids=["nowhere", "itself"])
def test_a_link_that_leads_to_no_image_is_missing_and_the_doctor_lists_it(tmp_path, capsys, target):
    folders(tmp_path)
    (tmp_path / "cat" / "gone.png").symlink_to(target)
    with pytest.raises(
        UserError, match=r"must hold all 1\d images that are listed, but 1 are missing \(first: cat/gone.png"
    ):
        by_folder(tmp_path, test_share=0.05, val_share=0.05)
    assert main(["doctor", str(tmp_path), "--label-from", "folder"]) == 2
    assert "cat/gone.png" in capsys.readouterr().out


def test_a_pipe_called_as_an_image_is_refused_without_waiting_for_a_writer(tmp_path, capsys):
    folders(tmp_path)
    os.mkfifo(tmp_path / "cat" / "pipe.png")
    with pytest.raises(
        UserError, match=r"pipe\.png must be an image that can be decoded, but it cannot \(it is no file\)"
    ):
        Images(tmp_path, ["cat/pipe.png"], height=8, width=8).pixels(0)
    assert main(["doctor", str(tmp_path), "--label-from", "folder"]) == 2
    assert "cat/pipe.png (it is no file)" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize("name", [b"cat/\xff.png", b"caf\xe9/1.png"], ids=["image", "class"])
def test_names_that_are_no_text_are_refused(tmp_path, name):
    folders(tmp_path)
    picture(tmp_path / os.fsdecode(name))
    with pytest.raises(UserError, match=r"^The names of images must be text in UTF-8, got '.*\\udc.*'; rename it\.$"):
        by_folder(tmp_path)


def test_deeper_folders_belong_to_their_class_and_equal_names_do_not_collide(tmp_path):
    folders(tmp_path)
    picture(tmp_path / "cat" / "2020" / "0.png")
    task = by_folder(tmp_path)
    files = [name for split in task.splits.values() for name in split.x.files]
    assert task.classes == ("cat", "dog")
    assert len(files) == len(set(files)) == 21


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda root: root, r"needs label_from=folder .* or a table"),
        (lambda root: root / "absent", r"There is no folder"),
    ],
)
def test_what_is_missing_is_asked_for(tmp_path, make, message):
    folders(tmp_path)
    with pytest.raises(UserError, match=message):
        task_source(f"{make(tmp_path)}/").check_files()


def test_one_class_no_class_folder_and_two_sources_of_the_class_are_refused(tmp_path):
    with pytest.raises(UserError, match="at least two classes, but every row says 'cat'"):
        by_folder(folders(tmp_path / "a", classes=("cat",)))
    picture(tmp_path / "b" / "1.png")
    with pytest.raises(UserError, match="must hold images in a folder for each class"):
        by_folder(tmp_path / "b")
    with pytest.raises(UserError, match="from one place"):
        by_folder(folders(tmp_path / "c"), label="y")
    with pytest.raises(UserError, match="label_from= must be folder, got 'name'"):
        load_task(str(tmp_path / "c"), label_from="name")


@pytest.fixture
def listed(tmp_path):
    """A folder with a table of its images."""

    def make(path="file_name", **changes):
        rows = [(f"all/{i}.png", ["no", "yes"][i % 2], ["land", "sea"][i // 2 % 2], i) for i in range(40)]
        for name, *_ in rows:
            picture(tmp_path / name)
        table = {path: [r[0] for r in rows], "y": [r[1] for r in rows], "place": [r[2] for r in rows]}
        polars.DataFrame({**table, "n": [r[3] for r in rows], **changes}).write_csv(tmp_path / "metadata.csv")
        return tmp_path

    return make


def test_a_table_says_what_is_known_of_the_images(listed):
    split = ["train"] * 24 + ["val"] * 8 + ["test"] * 8
    root = listed(split=split)
    task = load_task(str(root), label="y", groups="place", split="split")
    assert task.groups == ("no, land", "no, sea", "yes, land", "yes, sea")
    assert task.splits["train"].x.files == [f"all/{i}.png" for i in range(24)]
    moved = root / "metadata.csv"
    moved.rename(root.parent / "table.csv")
    again = load_task(str(root), label="y", groups="place", split="split", metadata=root.parent / "table.csv")
    assert again.fingerprint == task.fingerprint


@pytest.mark.parametrize(
    ("options", "changes", "message"),
    [
        ({}, {}, r"needs label= .* metadata.csv has file_name, y, place, n"),
        ({"label": "yy"}, {}, "did you mean 'y'"),
        ({"label": "y", "path_column": "nam"}, {}, "path column of metadata.csv"),
        ({"label": "y", "path_column": "n"}, {}, "must hold paths of images, got Int64"),
        ({"label": "y"}, {"path": "x"}, "needs path_column= with the column"),
        ({"label": "y"}, {"file_name": ["all/0.png"] * 40}, "must have one row, but 'all/0.png'"),
        ({"label": "y"}, {"file_name": [None] + ["all/0.png"] * 39}, "1 rows have none"),
        ({"label": "y"}, {"file_name": [f"{i}.png" for i in range(40)]}, "are missing"),
    ],
)
def test_a_table_that_does_not_fit_is_refused_in_one_sentence(listed, options, changes, message):
    with pytest.raises(UserError, match=message):
        load_task(str(listed(**changes)), **options)


def test_images_that_the_table_does_not_name_are_left_out_and_said(listed):
    root = listed()
    picture(root / "all" / "more.png")
    assert load_task(str(root), label="y").notes[0] == "1 images that metadata.csv does not name are left out."


def test_transparent_images_lie_on_white_and_sixteen_bits_become_eight(tmp_path):
    Image.new("RGBA", (4, 4), (0, 0, 0, 0)).save(tmp_path / "clear.png")
    assert decode(tmp_path / "clear.png").min() == 255
    Image.fromarray(np.full((4, 4), 256 * 77 + 5, dtype=np.uint16)).save(tmp_path / "deep.png")
    assert set(decode(tmp_path / "deep.png").ravel()) == {77}


def test_turned_photographs_are_set_upright(tmp_path):
    pixels = np.zeros((6, 10, 3), dtype=np.uint8)
    pixels[:, :5] = 255
    image, exif = Image.fromarray(pixels), Image.Exif()
    exif[0x0112] = 6  # to be turned by 90° clockwise
    image.save(tmp_path / "a.png", exif=exif)
    upright = decode(tmp_path / "a.png")
    assert upright.shape == (3, 10, 6)
    assert (upright[:, :5] == 255).all()
    assert not upright[:, 5:].any()


def test_of_an_animation_the_first_frame_is_taken(tmp_path):
    frames = [Image.new("RGB", (5, 5), color) for color in ("red", "blue")]
    frames[0].save(tmp_path / "a.gif", save_all=True, append_images=frames[1:])
    assert decode(tmp_path / "a.gif")[:, 0, 0].tolist() == [255, 0, 0]


@pytest.mark.parametrize("content", [b"no image", b""])
def test_a_file_that_is_no_image_is_named(tmp_path, content):
    (tmp_path / "a.jpg").write_bytes(content)
    with pytest.raises(UserError, match=r"a\.jpg must be an image that can be decoded"):
        Images(tmp_path, ["a.jpg"], height=4, width=4)[0]


def test_the_doctor_counts_and_lists_what_cannot_be_decoded(tmp_path, capsys):
    folders(tmp_path / "[bold]", classes=("[red]cat", "dog"))
    assert main(["doctor", str(tmp_path / "[bold]"), "--label-from", "folder"]) == 0
    assert "[red]cat" in capsys.readouterr().out
    (tmp_path / "[bold]" / "dog" / "3.png").write_bytes(b"broken")
    assert main(["doctor", str(tmp_path / "[bold]"), "--label-from", "folder"]) == 2
    assert "dog/3.png" in capsys.readouterr().out


def test_runs_train_and_predict_new_images_with_names_of_any_kind(tmp_path, capsys):
    root = folders(tmp_path / "photos", classes=("[red]cat", "dog\nx"))
    out, new = tmp_path / "runs", tmp_path / "new"
    picture(new / "sub" / "ü [b].jpg")
    picture(new / "a.PNG", mode="L")
    given = [f"--set={key}={value}" for key, value in TINY.items()]
    assert main(["run", str(root), "umix", "--label-from", "folder", "--out", str(out), "-q", *given]) == 0
    assert "[red]cat" in capsys.readouterr().out
    (run,) = out.glob("photos-umix-*")
    assert main(["predict", str(run), str(new), "-o", str(tmp_path / "p.parquet")]) == 0
    assert "p_[red]cat" in capsys.readouterr().out
    table = polars.read_parquet(tmp_path / "p.parquet")
    assert table["path"].to_list() == ["a.PNG", "sub/ü [b].jpg"]
    assert set(table["label"]) <= {"[red]cat", "dog\nx"}
    np.testing.assert_allclose(table["p_[red]cat"] + table["p_dog\nx"], 1, atol=1e-6)
    one = predict(load_run(run), new / "a.PNG")
    assert one["path"].to_list() == ["a.PNG"]
    (tmp_path / "none").mkdir()
    with pytest.raises(UserError, match="must hold images, but there are none"):
        predict(load_run(run), tmp_path / "none")


def test_predictions_are_those_of_evaluation(tmp_path):
    spec = RunSpec(task=f"{folders(tmp_path / 'p')}/", method="erm", settings={"label_from": "folder", **_erm()})
    record = execute(spec, out=tmp_path / "runs")
    test = spec.plan.source.load(None).splits["test"]
    said = {row["path"]: row["label"] for row in predict(record, tmp_path / "p").to_dicts()}
    hits = sum(said[name] == record.classes[y] for name, y in zip(test.x.files, test.y.tolist(), strict=True))
    assert hits == record.counts["test"].class_hits[record.best_epoch()].sum()


def _erm():
    return {key: value for key, value in TINY.items() if key not in ("start", "length")}


def test_the_key_follows_the_images_and_not_their_place(tmp_path):
    def key(root, **more):
        return RunSpec(task=f"{root}/", method="erm", settings={"label_from": "folder", **more}).key

    first, copy = folders(tmp_path / "a" / "photos"), folders(tmp_path / "b" / "photos")
    assert key(first) == key(copy)
    picture(copy / "dog" / "more.png")
    assert key(first) != key(copy)
    assert key(first) != key(first, size=32)


def test_nets_of_other_libraries_get_the_size_they_were_made_for(tmp_path):
    root = folders(tmp_path / "a")

    def plan(**more):
        return RunSpec(task=f"{root}/", method="erm", settings={"label_from": "folder", **more}).plan

    assert (plan().source.size, plan().fit.lr) == (64, 1e-3)
    other = plan(net="monai:DenseNet121")
    assert (other.source.size, other.fit.lr) == (224, 1e-4)
    assert plan(net="monai:DenseNet121", size=96).source.size == 96


def test_a_reader_comes_back_as_it_was_saved_and_a_foreign_file_is_refused(tmp_path):
    ImageReader(48).save(tmp_path)
    assert ImageReader.load(tmp_path).size == 48
    (tmp_path / "images.json").write_text('{"sizes": "other"}')
    with pytest.raises(UserError, match=r"images\.json is damaged \("):
        ImageReader.load(tmp_path)


def nested(root):
    """Photographs of cats and dogs whose folders also say the split and the place."""
    for split, n in (("train", 4), ("test", 2)):
        for kind in ("cat", "dog"):
            for place in ("indoor", "out-door"):
                for i in range(n):
                    picture(root / split / kind / f"{kind}({place})" / f"{i}.png", size=(8 + i, 9))
    return root


def test_folders_name_columns_by_a_pattern_and_a_part_called_split_is_the_split(tmp_path):
    pattern = "{split}/{kind}/{again}({place})"
    task = load_task(f"{nested(tmp_path)}/", folders=pattern, label="kind", groups="place", val_share=0.25)
    assert task.classes == ("cat", "dog")
    assert task.groups == ("cat, indoor", "cat, out-door", "dog, indoor", "dog, out-door")
    assert {name: split.groups.sizes.tolist() for name, split in task.splits.items()} == {
        "train": [3] * 4,
        "val": [1] * 4,
        "test": [2] * 4,
    }
    for split in task.splits.values():
        for name, group in zip(split.x.files, split.group.tolist(), strict=True):
            kind, place = task.groups[group].split(", ")
            assert f"/{kind}({place})/" in name


def test_images_in_folders_that_do_not_fit_are_left_out_and_said(tmp_path):
    picture(nested(tmp_path) / "train" / "bird" / "0.png")
    picture(tmp_path / "loose.png")
    task = load_task(f"{tmp_path}/", folders="{split}/{kind}/{subset}", label="kind")
    assert task.classes == ("cat", "dog")
    assert any("2 images in folders that do not fit" in note for note in task.notes)


def test_a_table_in_the_folder_is_not_read_where_the_folders_name_the_columns(tmp_path):
    (nested(tmp_path) / "metadata.csv").write_text("nothing,of,use\n")
    assert load_task(f"{tmp_path}/", folders="{split}/{kind}/{subset}", label="kind").classes == ("cat", "dog")


def test_split_values_say_which_folder_of_the_pattern_is_which_split(tmp_path):
    for name, n in (("fitting", 6), ("dev", 4), ("held", 3)):
        folders(tmp_path, n=n, prefix=name)
    names = "train=fitting,val=dev,test=held"
    task = load_task(f"{tmp_path}/", folders="{split}/{kind}", label="kind", split_values=names)
    assert {name: len(split) for name, split in task.splits.items()} == {"train": 12, "val": 8, "test": 6}
    with pytest.raises(UserError, match=r"^split_values= must go with split="):
        load_task(f"{tmp_path}/", folders="{part}/{kind}", label="kind", split_values=names)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (
            {"folders": "{kind}", "label": "kind"},
            r"must have images in folders that fit '\{kind\}', but its first of 24",
        ),
        ({"folders": "{split}/{kind}/{subset}"}, "needs label= with the part of its folders .*: split, kind, subset"),
        ({"folders": "{split}/{kind}/{subset}", "label": "sort"}, "Unknown label column"),
        ({"folders": "split/kind", "label": "kind"}, r"^folders= must have different names .* got 'split/kind'\.$"),
        ({"folders": "{a}/{a}", "label": "a"}, "must have different names"),
        ({"folders": "{a}/{b", "label": "a"}, "must have different names"),
        ({"folders": "{path}/{b}", "label": "b"}, "but not path"),
        ({"folders": "{a}/{}", "label": "a"}, "must have different names"),
        ({"folders": "{kind}", "label_from": "folder"}, "give folders= or label_from=, not both"),
        ({"folders": "{kind}", "label": "kind", "metadata": "rows.csv"}, "give folders= or metadata=, not both"),
    ],
)
def test_a_pattern_that_cannot_be_used_is_one_sentence(tmp_path, options, sentence):
    with pytest.raises(UserError, match=sentence):
        load_task(f"{nested(tmp_path)}/", **options)


def test_the_flag_folders_is_that_setting(tmp_path, capsys):
    words = ["doctor", f"{nested(tmp_path)}/", "--folders", "{split}/{kind}/{k}({place})", "--label", "kind"]
    assert main([*words, "--groups", "place"]) == 0
    assert "dog, out-door" in capsys.readouterr().out


def test_a_table_may_name_images_by_absolute_paths(tmp_path):
    folders(tmp_path / "photos")
    names = [(tmp_path / "photos" / kind / f"{i}.png", kind) for kind in ("cat", "dog") for i in range(9)]
    rows = "".join(f"{name},{kind}\n" for name, kind in names)
    (tmp_path / "rows.csv").write_text("file,kind\n" + rows)
    task = load_task(f"{tmp_path / 'photos'}/", metadata=tmp_path / "rows.csv", label="kind")
    assert sum(len(split) for split in task.splits.values()) == 18
    assert any(note.startswith("2 images that rows.csv does not name") for note in task.notes)


def test_images_in_folders_called_train_and_test_are_divided_otherwise_only_by_a_pattern(tmp_path):
    for name in ("train", "test"):
        folders(tmp_path, prefix=name)
    with pytest.raises(UserError, match=r"divide the images already; .* folders=\{part\}/\{kind\} and label=kind"):
        by_folder(tmp_path, folds=4, fold=1)
    task = load_task(str(tmp_path), folders="{part}/{kind}", label="kind", folds=4, fold=1)
    assert {name: len(split) for name, split in task.splits.items()} == {"train": 22, "val": 8, "test": 10}


@pytest.mark.parametrize("named_by", ["path", "absolute path", "file name"])
def test_a_table_beside_class_folders_may_name_the_groups_alone(tmp_path, named_by):
    photos = tmp_path / "photos"
    paths = [photos / kind / f"{kind}{i}.png" for kind in ("cat", "dog") for i in range(12)]
    for path in paths:
        picture(path)
    names = {"path": lambda p: p.relative_to(photos), "absolute path": str, "file name": lambda p: p.name}[named_by]
    places = {path: "indoor" if i % 2 else "outdoor" for i, path in enumerate(paths)}
    rows = "".join(f"{names(path)},{place}\n" for path, place in list(places.items())[:-2])
    (tmp_path / "groups.csv").write_text("file,place\n" + rows + "gone.png,indoor\n")
    task = load_task(f"{photos}/", label_from="folder", metadata=tmp_path / "groups.csv", groups="place")
    assert task.groups == ("cat, indoor", "cat, outdoor", "dog, indoor", "dog, outdoor")
    for split in task.splits.values():
        for name, group in zip(split.x.files, split.groups.codes.tolist(), strict=True):
            place = places[photos / name]
            known = photos / name not in paths[-2:]
            assert (group >= 0) == known
            assert not known or task.groups[group] == f"{name.split('/')[0]}, {place}"
    assert "2 images have no row in groups.csv, so its columns are blank for them." in task.notes
    assert "1 rows of groups.csv name no image in a class folder and are left out." in task.notes


def test_a_table_in_the_folder_names_the_groups_of_class_folders_where_groups_are_asked_for(tmp_path):
    folders(tmp_path, n=12)
    rows = "".join(f"{kind}/{i}.png,{'ab'[i % 2]}\n" for kind in ("cat", "dog") for i in range(12))
    (tmp_path / "metadata.csv").write_text("file,place\n" + rows)
    assert load_task(f"{tmp_path}/", label_from="folder", groups="place").groups[0] == "cat, a"
    assert load_task(f"{tmp_path}/", label_from="folder").groups == ()


def test_a_table_of_groups_that_names_no_image_is_refused(tmp_path):
    folders(tmp_path / "photos")
    (tmp_path / "groups.csv").write_text("file,place\nnowhere.png,a\n")
    with pytest.raises(
        UserError, match=r"^The column 'file' of groups.csv must name images below .*cat/0.png', but none"
    ):
        load_task(f"{tmp_path}/photos/", label_from="folder", metadata=tmp_path / "groups.csv", groups="place")

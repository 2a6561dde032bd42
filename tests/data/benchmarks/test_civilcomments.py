"""CivilComments in its real layout, small: 16 overlapping groups, declared training groups, every preset."""

import itertools

import numpy as np
import polars
import pytest
import torch

from umix.bench.runs.execute import execute
from umix.bench.runs.paths import RunPaths
from umix.bench.spec.presets import presets_of
from umix.bench.spec.run_spec import RunSpec
from umix.cli import main
from umix.data.benchmarks.civilcomments import GROUPS, IDENTITIES, evaluation_groups
from umix.data.registry import load_task
from umix.errors import UserError
from umix.methods.registry import METHODS


@pytest.fixture
def civilcomments(tmp_path):
    """Makes the archive's parent; ``changes`` replaces texts in the table."""

    def make(per_cell=3, **changes):
        rng, lines = np.random.default_rng(0), []
        kinds = itertools.product(("train", "val", "test"), (0, 1), (None, *IDENTITIES), range(per_cell))
        for i, (split, toxic, identity, _) in enumerate(kinds):
            toxicity = f"{0.5 + 0.5 * rng.random():.4f}" if toxic else f"{0.4999 * rng.random():.4f}"
            word = "bad" if toxic else "good"
            text = f'"He said ""{word}"",\r\nthe film was, {word} {i}"' if i % 2 else f"film, was {word}"
            shares = ["0.75" if name == identity else "0.0" for name in IDENTITIES]
            quoted = text if text.startswith('"') else f'"{text}"'
            lines.append(",".join([str(i), str(9000 + i), quoted, split, "2017-01-01", "21", toxicity, *shares, "1.0"]))
        head = ",".join(["", "id", "comment_text", "split", "created_date", "publication_id", "toxicity", *IDENTITIES])
        text = "\ufeff" + "\r\n".join([f"{head},identity_any", *lines]) + "\r\n"
        for old, new in changes.values():
            assert old in text
            text = text.replace(old, new, 1)
        folder = tmp_path / "civilcomments_v1.0"
        folder.mkdir(exist_ok=True)
        (folder / "all_data_with_identities.csv").write_bytes(text.encode())
        return tmp_path

    return make


def load(root, **options):
    return load_task("civilcomments", root, allow_subset=True, **options)


def test_the_sixteen_groups_are_in_one_documented_order():
    assert len(GROUPS) == 16
    assert GROUPS[:3] == ("not toxic, male", "toxic, male", "not toxic, female")
    assert GROUPS[-1] == "toxic, white"


def test_groups_overlap_and_leave_out_who_mentions_nobody():
    rng = np.random.default_rng(0)
    y, mentions = rng.integers(2, size=50), rng.random((50, 8)) < 0.3
    groups = evaluation_groups(torch.from_numpy(y), torch.from_numpy(mentions))
    for g, name in enumerate(groups.names):
        label, identity = name.split(", ")
        expected = mentions[:, IDENTITIES.index(identity)] & (y == (label == "toxic"))
        assert groups.member[:, g].tolist() == expected.tolist()
    assert not groups.disjoint


def test_the_archive_is_read_with_its_quotes_line_ends_and_byte_order_mark(civilcomments):
    task = load(civilcomments())
    assert (task.classes, task.groups) == (("not toxic", "toxic"), GROUPS)
    for split in task.splits.values():
        assert len(split) == 3 * 18
        assert split.y.sum() == 3 * 9
        assert split.groups.sizes.tolist() == [3] * 16
    train = task.splits["train"]
    assert train.training_groups.names == ("not toxic, no black", "not toxic, black", "toxic, no black", "toxic, black")
    assert train.training_groups.sizes.tolist() == [24, 3, 24, 3]
    declared = load(civilcomments(), training_groups="any_identity").splits["train"].training_groups
    assert declared.sizes.tolist() == [3, 24, 3, 24]


def test_a_toxicity_of_exactly_one_half_is_toxic(civilcomments):
    root = civilcomments()
    path = root / "civilcomments_v1.0" / "all_data_with_identities.csv"
    frame = polars.read_csv(path, infer_schema=False)
    frame.with_columns(toxicity=polars.Series(["0.5", "0.4999"] * (len(frame) // 2))).write_csv(path)
    assert load(root).splits["val"].y.tolist() == [1, 0] * 27


def test_other_counts_than_the_published_are_refused_unless_allowed(civilcomments):
    with pytest.raises(UserError, match=r"train split of civilcomments must hold 269,038 comments.*3 counts differ"):
        load_task("civilcomments", civilcomments())


def test_an_absent_folder_says_what_to_get(tmp_path):
    with pytest.raises(
        UserError, match=r"civilcomments_v1.0 with all_data_with_identities.csv .* umix downloads nothing"
    ):
        load_task("civilcomments", tmp_path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ((",train,", ",training,"), r"split must be train, val or test in every row, but 1 do not: row 1: 'training'"),
        ((",0.75,", ",much,"), r"must be a number in \[0, 1\] in every row, but 1 do not: row \d+: 'much'"),
        ((",0.75,", ",1.75,"), r"must be a number in \[0, 1\]"),
        (("LGBTQ", "lgbtq"), r"Unknown column \(wanted from .*'LGBTQ'"),
    ],
)
def test_bad_values_are_refused_and_listed_by_the_doctor(civilcomments, capsys, change, message):
    root = civilcomments(bad=change)
    with pytest.raises(UserError, match=message):
        load(root)
    assert main(["doctor", "civilcomments", "--root", str(root), "--allow-subset"]) == 2


def test_the_doctor_counts_all_comments_and_every_group(civilcomments, capsys):
    assert main(["doctor", "civilcomments", "--root", str(civilcomments()), "--allow-subset"]) == 0
    out = capsys.readouterr().out
    assert "toxic, other_religions" in out
    assert main(["doctor", "civilcomments", "--root", str(civilcomments())]) == 2


@pytest.mark.parametrize("preset", ["paper", "reference", "default"])
def test_every_preset_trains(civilcomments, tiny_bert, tmp_path, preset):
    methods = ["erm", *(part for part in presets_of("civilcomments")[preset] if part in METHODS)]
    for method in methods:
        short = {"epochs": 1, "task.allow_subset": True, "batch_size": 64}
        short |= {} if preset == "default" else {"net": f"hf:{tiny_bert}"}
        short |= {"start": 0, "length": 1, "trajectory.epochs": 1} if method == "umix" else {}
        short |= {"identification_epochs": 1} if method == "jtt" else {}
        spec = RunSpec(task="civilcomments", method=method, settings=short, preset=preset)
        if method != "umix":
            continue
        record = execute(spec, paths=RunPaths(tmp_path / "runs", root=civilcomments()))
        test, summary = record.counts["test"], record.summary("last")
        assert test.hits.shape == (1, 16)
        assert test.class_sizes.sum() == 54  # the average is over all rows, also those in no group
        assert summary.average == pytest.approx(test.class_hits[0].sum() / 54)
        rates = test.hits[0] / test.sizes
        assert summary.worst == pytest.approx(rates.min())


@pytest.mark.parametrize("preset", ["paper", "reference"])
def test_umix_has_the_settings_of_the_papers_tables(preset):
    got = RunSpec(task="civilcomments", method="umix", preset=preset).plan
    fit, stage, method = got.fit, got.stages["trajectory"], got.method
    assert (fit.optimizer, fit.lr, fit.weight_decay, fit.batch_size) == ("adamw", 5e-5, 1e-4, 128)
    assert (stage["optimizer"], stage["lr"], stage["weight_decay"]) == ("adamw", 1e-5, 1e-2)
    assert (method.eta, method.alpha, method.sigma, method.start) == (3, 0.5, 1, 0)
    assert (method.mixing, method.normalize, got.net_name) == ("features", False, "hf:distilbert-base-uncased")
    paper = (10, 5, 128, None, None)
    released = (5, 4, 16, 1.0, 10)
    found = (fit.epochs, method.length, stage["batch_size"], fit.clip_norm, stage.get("epochs"))
    assert found == (paper if preset == "paper" else released)
    assert (got.source.tokens, got.source.tokenizer) == (300, "distilbert-base-uncased")

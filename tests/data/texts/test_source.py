"""Texts of one's own, as token ids and as features of words; every odd text has a decided answer."""

import shutil
import sys

import numpy as np
import polars
import pytest
import torch

from umix import predict
from umix.bench.runs.execute import execute
from umix.bench.runs.record import load_run
from umix.bench.spec.run_spec import RunSpec
from umix.cli import main
from umix.data.registry import load_task
from umix.data.rows.known_rows import known_rows
from umix.data.texts.text_reader import TextReader, WordFeatures
from umix.data.texts.tokenizer import TokenIds, Tokenizer, tokenizer_hash
from umix.errors import UserError

ODD = ["", None, "  ", "nul \0 inside", "👍🏽 good 🎉", "good " * 5000, "[red]bad[/red]\nline", "\u202ebad"]


@pytest.fixture
def reviews(tmp_path):
    rng = np.random.default_rng(0)
    stars = ["low", "high"] * 60
    texts = [f"the film was {'bad' if s == 'low' else 'good'} {rng.integers(5)}" for s in stars]
    frame = polars.DataFrame({"review": texts, "stars": stars, "site": ["a", "a", "b"] * 40, "n": range(120)})
    frame.write_parquet(tmp_path / "reviews.parquet")
    return tmp_path / "reviews.parquet"


def encoded(tokenizer, *texts):
    ids, cut = tokenizer.encode(texts)
    return [ids[row].tolist() for row in range(len(texts))], cut


def test_ids_are_those_of_transformers_own_tokenizer(tiny_bert):
    from transformers import AutoTokenizer

    texts = ["The film was GOOD!", "bads", "", "unheard of 👍", "good \0 bad"]
    expected = AutoTokenizer.from_pretrained(tiny_bert)(texts, truncation=True, max_length=16)["input_ids"]
    assert encoded(Tokenizer.of(str(tiny_bert), length=300), *texts) == (expected, 0)


def test_long_texts_are_cut_and_counted_and_the_model_has_the_last_word_on_length(tiny_bert):
    ids, cut = encoded(Tokenizer.of(str(tiny_bert), length=5), "good " * 9, "good", "good good good")
    assert (ids, cut) == ([[2, 4, 4, 4, 3], [2, 4, 3], [2, 4, 4, 4, 3]], 1)
    assert Tokenizer.of(str(tiny_bert), length=300).length == 16


def test_a_tokenizer_is_restored_from_what_it_writes(tiny_bert):
    first = Tokenizer.of(str(tiny_bert), length=7)
    again = Tokenizer(first.written, pad=first.pad, length=first.length)
    assert encoded(again, "the film, good " * 4) == encoded(first, "the film, good " * 4)
    with pytest.raises(UserError, match="must be a whole tokenizer"):
        Tokenizer("{", pad=0, length=3)


@pytest.mark.system
def test_a_folder_without_a_tokenizer_and_an_absent_one_are_said(tmp_path):
    with pytest.raises(UserError, match=r"must hold a tokenizer that .* task.tokenizer=FOLDER"):
        Tokenizer.of(str(tmp_path), length=9)
    with pytest.raises(UserError, match="There is no folder"):
        Tokenizer.of(str(tmp_path / "absent"), length=9)


def test_a_missing_library_says_what_to_install(monkeypatch, tiny_bert):
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(UserError, match=r"pip install 'umix\[hf\]'"):
        Tokenizer.of(str(tiny_bert), length=9)


def test_the_hash_of_a_tokenizer_is_that_of_its_files(tiny_bert, tmp_path):
    copy = shutil.copytree(tiny_bert, tmp_path / "copy")
    assert tokenizer_hash(str(copy)) == tokenizer_hash(str(tiny_bert))
    (copy / "tokenizer.json").write_text((copy / "tokenizer.json").read_text() + " ")
    assert tokenizer_hash(str(copy)) != tokenizer_hash(str(tiny_bert)) != tokenizer_hash("a-name")


def test_features_of_words_are_the_projection_of_scikit_learns_tf_idf():
    from sklearn.feature_extraction.text import TfidfVectorizer

    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice(list("abcdefghijklmnopqrstuvw"), 6)) for _ in range(200)]
    fitted = WordFeatures.fit(texts, "t")
    options = {"ngram_range": (1, 2), "token_pattern": r"(?u)\w+|[^\w\s]", "sublinear_tf": True, "min_df": 2}
    counts = TfidfVectorizer(**options).fit(texts).transform(texts).toarray()
    x = fitted.transform(texts)
    np.testing.assert_allclose(x, counts @ fitted.directions.T * fitted.scale, atol=1e-5)
    assert x.shape == (200, 199)
    assert x.std() == pytest.approx(1, rel=1e-3)
    np.testing.assert_allclose(fitted.directions @ fitted.directions.T, np.eye(199), atol=1e-3)
    assert not fitted.transform(["", "unheard words only"]).any()


def test_few_words_are_features_themselves_and_none_are_refused():
    fitted = WordFeatures.fit(["good", "bad", "good good", "👍"], "t")
    assert (fitted.terms, fitted.directions) == (["good"], None)
    assert WordFeatures.fit(["a b", "c d"], "t").transform(["a"]).any()  # every word is in one text only
    with pytest.raises(UserError, match="'t' must hold words"):
        WordFeatures.fit(["", " "], "t")


def test_a_text_column_makes_a_task_of_token_ids_or_of_features(reviews, tiny_bert):
    words = load_task(str(reviews), text="review", label="stars", groups="site")
    assert words.groups == ("high, a", "high, b", "low, a", "low, b")
    assert words.splits["train"].x.is_floating_point()
    assert words.notes[0] == "Only the text is an input; not used: n."
    tokens = load_task(str(reviews), text="review", label="stars", drop="n,site", tokenizer=str(tiny_bert), tokens=4)
    assert isinstance(tokens.splits["train"].x, TokenIds)
    assert tokens.splits["train"].x[0].tolist() == [2, 6, 7, 3]
    assert tokens.notes[0] == "120 of 120 texts (100.0%) are longer than 4 tokens and were cut there."


@pytest.mark.parametrize("tokens", [False, True])
def test_odd_texts_are_texts(tmp_path, tiny_bert, tokens):
    frame = polars.DataFrame({"t": [*ODD, "good", "bad"] * 10, "y": ["a", "b"] * 50})
    frame.write_parquet(tmp_path / "odd.parquet")
    more = {"tokenizer": str(tiny_bert)} if tokens else {}
    task = load_task(str(tmp_path / "odd.parquet"), text="t", label="y", **more)
    assert "30 of 100 texts are empty or missing and count as empty." in task.notes
    for split in task.splits.values():
        x = split.x.take(torch.arange(len(split))) if tokens else split.x
        assert torch.isfinite(x.float()).all()
    if tokens:
        assert task.splits["train"].x.take(torch.arange(5)).shape[1] <= 16


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"text": "n", "label": "stars"}, "must hold texts, got Int64"),
        ({"text": "reviews", "label": "stars"}, "did you mean 'review'"),
        ({"text": "review", "label": "review"}, "must have one role"),
        ({"text": "review", "label": "stars", "groups": "review"}, "must have one role"),
        ({"text": "review"}, "needs label="),
    ],
)
def test_a_column_that_cannot_play_its_role_is_refused(reviews, options, message):
    with pytest.raises(UserError, match=message):
        load_task(str(reviews), **options)


def spec(path, method="umix", net=None, **more):
    settings = {"text": "review", "label": "stars", "epochs": 1, **({"net": net} if net else {}), **more}
    if method == "umix":
        settings |= {"start": 0, "length": 1}
    return RunSpec(task=str(path), method=method, settings=settings)


def test_a_net_of_the_hub_brings_its_tokenizer_and_gentler_settings(reviews, tiny_bert, tmp_path):
    plan = spec(reviews, net=f"hf:{tiny_bert}").plan
    assert (plan.source.tokenizer, plan.method.mixing, plan.fit.lr) == (str(tiny_bert), "features", 5e-5)
    assert spec(reviews).plan.source.tokenizer is None
    assert spec(reviews).plan.fit.lr == 1e-3
    copy = shutil.copytree(tiny_bert, tmp_path / "elsewhere" / "model")
    assert spec(reviews, net=f"hf:{copy}").key == spec(reviews, net=f"hf:{tiny_bert}").key != spec(reviews).key


def test_token_ids_cannot_be_averaged(reviews, tiny_bert, tmp_path):
    with pytest.raises(UserError, match=r"mixing=input must be given numbers to average, .*mixing=features"):
        execute(spec(reviews, net=f"hf:{tiny_bert}", mixing="input"), out=tmp_path / "runs")


@pytest.mark.parametrize("tokens", [False, True])
def test_runs_train_and_predict_texts(reviews, tiny_bert, tmp_path, capsys, tokens):
    more = ["--set", f"net=hf:{tiny_bert}"] if tokens else []
    short = ["--set", "epochs=1", "--set", "start=0", "--set", "length=1", "-q", "-o", str(tmp_path / "runs")]
    flags = ["--text", "review", "--label", "stars", "--id", "n"]
    assert main(["run", str(reviews), "umix", *flags, *more, *short]) == 0
    (run,) = (tmp_path / "runs").glob("reviews-umix-*")
    polars.DataFrame({"n": [7, 8, 9], "review": ["good film", None, "the bad\0"]}).write_csv(tmp_path / "new.csv")
    capsys.readouterr()
    assert main(["predict", str(run), str(tmp_path / "new.csv"), "-o", str(tmp_path / "p.csv")]) == 0
    assert "1 of 3 texts are empty or missing" in capsys.readouterr().err
    table = polars.read_csv(tmp_path / "p.csv")
    assert table["n"].to_list() == [7, 8, 9]
    np.testing.assert_allclose(table["p_high"] + table["p_low"], 1, atol=1e-6)
    record = load_run(run)
    known = polars.read_parquet(reviews)
    said = predict(record, known)["label"].to_numpy()
    test = known_rows(spec(reviews).plan.source, known).rows["test"]
    hits = int((said[test] == known["stars"].to_numpy()[test]).sum())
    assert hits == sum(found.hits for found in record.summary().classes.values())
    with pytest.raises(UserError, match="must have the column 'review'"):
        predict(record, known.drop("review"))
    with pytest.raises(UserError, match="must have rows"):
        predict(record, known[:0])


def test_a_reader_of_words_comes_back_as_it_was_saved(tmp_path):
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice(list("abcdefghijkl"), 5)) for _ in range(60)]
    reader = TextReader("t", None, WordFeatures.fit(texts, "t"))
    reader.save(tmp_path)
    again = TextReader.load(tmp_path)
    assert torch.equal(again.encode(texts)[0], reader.encode(texts)[0])
    (tmp_path / "texts.safetensors").write_bytes(b"x" * 40)
    with pytest.raises(UserError, match="is damaged"):
        TextReader.load(tmp_path)

"""What is said of a run in words."""

from collections.abc import Callable

import pytest

from umix.bench.runs.record import RunRecord
from umix.reports.sentences import candidate_words, data_words, selected_words, stage_words, unit_titles

Make = Callable[..., RunRecord]


def with_groups(record: Make, columns: list[str], values: list[list[str]], **changes: object) -> RunRecord:
    """A run whose groups are all combinations of two columns' values."""
    parts = [[label, value] for label in values[0] for value in values[1]]
    names = [", ".join(part) for part in parts]
    known = {"group_columns": columns, "group_parts": parts, "group_values": values}
    return record(0, [9] * len(parts), groups=names, train_sizes=[1] * len(parts), **known, **changes)


@pytest.mark.parametrize(
    ("columns", "values", "expected"),
    [
        (["income", "sex"], [["<=50K", ">50K"], ["Female", "Male"]], "<=50K, Female"),
        (["passed", "sex"], [["0", "1"], ["Female", "Male"]], "passed=0, Female"),
        (["outcome", "sex"], [["no", "yes"], ["F", "M"]], "outcome=no, sex=F"),
        (["income", "age"], [["low", "high"], ["18-40", "41-80"]], "low, age=18-40"),
        (["risk", "income"], [["low", "high"], ["low", "middle"]], "risk=low, income=low"),
    ],
    ids=["words", "numbers", "answers and letters", "ranges", "the same words twice"],
)
def test_a_value_that_says_nothing_alone_has_the_name_of_its_column(
    record: Make, columns: list[str], values: list[list[str]], expected: str
) -> None:
    assert next(iter(unit_titles(with_groups(record, columns, values)).values())) == expected


def test_a_class_that_says_nothing_alone_has_the_name_of_the_label(record: Make) -> None:
    plan = {
        "task": {"name": "table", "label": "passed", "groups": []},
        "method": {"name": "erm"},
        "net": {"name": "mlp"},
    }
    counts = {"hits": [[]], "sizes": [], "class_hits": [[7, 9]], "class_sizes": [10, 20]}
    alone = {"groups": [], "train_sizes": [], "split_counts": {"val": counts, "test": counts}}
    numbers = record(0, [1], classes=["0", "1"], plan=plan, **alone)
    assert unit_titles(numbers) == {"class 0": "passed=0", "class 1": "passed=1"}
    in_memory = {**plan, "task": {"name": "memory", "label": "table"}}
    assert list(unit_titles(record(0, [1], classes=["0", "1"], plan=in_memory, **alone)).values()) == ["0", "1"]
    words = record(0, [1], classes=["failed", "passed"], plan=plan, **alone)
    assert list(unit_titles(words).values()) == ["failed", "passed"]


def test_groups_without_columns_are_called_by_their_names(record: Make) -> None:
    assert unit_titles(record(0, [9, 5])) == {"a": "a", "b": "b", "class only": "class only"}


def test_the_first_line_says_what_the_data_are(record: Make) -> None:
    task = {"name": "table", "label": "income", "groups": ["sex", "race"]}
    plan = {"task": task, "method": {"name": "erm"}, "net": {"name": "mlp"}}
    found = record(3, [9, 5], task="data/people.csv", plan=plan, n_train=60)
    assert data_words(found) == "people.csv · 100 rows · label income · groups sex, race · split 60/20/20 · seed 3"
    assert data_words(record(0, [9, 5], n_train=160)) == "toy · 200 examples · split 80/10/10 · seed 0"


def test_trees_are_counted_as_trees_and_epochs_as_epochs(record: Make) -> None:
    plan = {"task": {"name": "toy"}, "method": {"name": "erm"}, "net": {"name": "trees", "trees": 5}}
    hits = [[5, 5], [9, 5], [5, 6]]
    trees, net = record(0, hits, plan=plan), record(0, hits)
    assert stage_words(trees, trees.summary()) == "10 of 15 trees"
    assert stage_words(net, net.summary("average")) == "epoch 2 of 3"
    single = record(0, [9, 5])
    assert stage_words(single, single.summary()) == ""


CANDIDATES = [
    {"candidate": "group_mixup power=1", "score": 0.8, "worst": 0.81, "average": 0.9, "epochs": 15},
    {"candidate": "group_mixup power=0.5", "score": 0.79, "worst": 0.8, "average": 0.9, "epochs": 15},
    {"candidate": "erm", "score": 0.6, "worst": 0.61, "average": 0.9, "epochs": 2},
    {"candidate": "umix eta=3", "score": None, "worst": 0.5, "average": 0.5, "epochs": 2},
]


def test_what_was_chosen_is_one_sentence_without_settings(record: Make) -> None:
    chosen = record(0, [[5, 5], [9, 8]], "best", choices={"method": "group_mixup", "candidates": CANDIDATES})
    assert selected_words(chosen, chosen.summary()) == (
        "Chosen of 4 candidates on validation: net mlp, group weights, epoch 2 of 2."
    )
    plain = record(0, [9, 8], "best", choices={"method": "erm", "chosen": "Trained erm, the only candidate."})
    assert selected_words(plain, plain.summary()) == "Chosen on validation: net mlp, ordinary training."


def test_settings_that_were_left_open_are_named_with_what_was_chosen(record: Make) -> None:
    auto = record(0, [[5, 5], [9, 8]], "umix", choices={"eta": 3.0, "reason": "best", "candidates": CANDIDATES[:2]})
    assert selected_words(auto, auto.summary()) == "Chosen of 2 candidates on validation: eta=3.0, epoch 2 of 2."
    nothing = record(0, [9, 8], "umix")
    assert selected_words(nothing, nothing.summary()) == ""


def test_a_choice_that_no_candidate_was_worth_is_called_that(record: Make) -> None:
    over = [{**one, "score": None} for one in CANDIDATES]
    found = record(0, [9, 8], "best", choices={"method": "erm", "candidates": over, "frontier": []})
    assert selected_words(found, found.summary()) == (
        "All 4 candidates cost too much accuracy on validation, so this was trained: net mlp, ordinary training."
    )


def test_the_best_of_every_kind_is_listed_with_the_score_that_decided(record: Make) -> None:
    chosen = record(0, [9, 8], "best", choices={"method": "group_mixup", "candidates": CANDIDATES})
    assert candidate_words(chosen) == (
        "group weights 80.0 · ordinary + threshold 60.0 · UMIX costs too much   "
        "(%, worst validation group, small groups pulled towards their class)"
    )
    assert " · ordinary 60.0 · " in candidate_words(chosen.with_threshold("off"))
    assert candidate_words(record(0, [9, 4])) == ""


def test_without_groups_the_score_is_explained(record: Make) -> None:
    chosen = record(0, [9, 8], "best", choices={"method": "group_mixup", "candidates": CANDIDATES}, use_groups="test")
    said = candidate_words(chosen)
    assert said == (
        "group weights 80.0 · ordinary + threshold 60.0 · UMIX costs too much   "
        "(%, on validation, half the mean of the classes, half the worst class)"
    )

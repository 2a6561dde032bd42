"""What is said of a run in words."""

from collections.abc import Callable

from umix.bench.runs.record import RunRecord
from umix.reports.sentences import candidate_words, data_words, selected_words, stage_words

Make = Callable[..., RunRecord]


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
    frozen = record(0, [9, 8], "best", choices={**chosen.choices, "compared": {"words": "as heads"}})
    assert candidate_words(frozen).endswith("pulled towards their class; as heads on frozen features)")


def test_without_groups_the_score_is_explained(record: Make) -> None:
    chosen = record(0, [9, 8], "best", choices={"method": "group_mixup", "candidates": CANDIDATES}, use_groups="test")
    said = candidate_words(chosen)
    assert said == (
        "group weights 80.0 · ordinary + threshold 60.0 · UMIX costs too much   "
        "(%, on validation, two fifths the worst class, three fifths the average)"
    )

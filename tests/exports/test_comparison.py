import pytest
import torch

from umix.errors import UserError
from umix.exports.comparison import Expected, compare

HOW = {"by": "torch", "output": "model.pt2"}


def expected(*rows: tuple[float, float]) -> Expected:
    probabilities = torch.tensor(rows)
    return Expected(probabilities.argmax(dim=1), probabilities, torch.zeros(2, dtype=torch.float64))


def test_the_largest_difference_is_said() -> None:
    known = expected((0.25, 0.75), (0.5 + 1e-3, 0.5 - 1e-3))
    agreement = compare(known, known.label, known.probabilities + torch.tensor([[0, 4e-6], [0, 0]]), **HOW)
    assert agreement.difference == pytest.approx(4e-6, rel=0.02)
    assert agreement.sentence == "torch agrees with umix predict to 4e-06 on 2 made-up rows."
    assert compare(known, known.label, known.probabilities, **HOW).sentence.startswith(
        "torch agrees with umix predict exactly"
    )


@pytest.mark.parametrize("wrong", [2e-5, float("nan")])
def test_a_probability_that_is_off_by_more_than_the_limit_is_refused(wrong: float) -> None:
    known = expected((0.25, 0.75), (0.4, 0.6))
    with pytest.raises(UserError, match=r"in 1 of 2 rows; model\.pt2 was not written"):
        compare(known, known.label, known.probabilities + torch.tensor([[0, wrong], [0, 0]]), **HOW)


def test_another_label_is_refused_unless_both_classes_are_level() -> None:
    known = expected((0.25, 0.75), (0.5 + 1e-6, 0.5 - 1e-6))
    compare(known, torch.tensor([1, 1]), known.probabilities, **HOW)
    with pytest.raises(UserError, match=r"differs by 0\.0e[+]00 in 1 of 2 rows"):
        compare(known, torch.tensor([0, 0]), known.probabilities, **HOW)

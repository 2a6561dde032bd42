"""Likely mislabelled or learned late: two kinds of uncertain training examples, told apart by their trajectory.

Both kinds are often wrong, so uncertainty alone does not separate them. The trajectory of the first stage says whether the net
gave in. This is a hint for people who look through examples; no method uses it. A group that the first stage never learns looks
like wrong labels, and a net that memorises wrong labels makes them look learned late.
"""

from enum import IntEnum
from typing import final

import numpy as np

from umix.core.forgetting import forgetting_events

#: Share of the window's epochs that counts as "nearly all".
NEARLY_ALL = 0.9
#: Share of the window's epochs from which on an example counts as wrong early.
OFTEN = 0.5
#: Forgetting events that a contradicted example may have: more mean that the net changed its mind.
FEW_EVENTS = 1
#: Epochs of the first stage below which there is no early and late.
FEWEST_EPOCHS = 3


@final
class Hint(IntEnum):
    """What the trajectory of a training example looks like."""

    NONE = 0
    CONTRADICTED = 1
    LEARNED_LATE = 2


#: The hints in words, for columns and captions.
WORDS = {Hint.NONE: "–", Hint.CONTRADICTED: "consistently contradicted", Hint.LEARNED_LATE: "learned late"}


def last_epochs(epochs: int) -> int:
    """How many epochs count as the end of a first stage: the last quarter, at least one.

    >>> last_epochs(4), last_epochs(20)
    (1, 5)
    """
    return max(1, epochs // 4)


def learning_hints(correct: np.ndarray, visited: np.ndarray, *, start: int, length: int) -> np.ndarray | None:
    """A ``Hint`` for every example [n], from the bits of the first stage, bool [epochs, n].

    None below three epochs, and where the whole window lies in the last quarter of the stage: then nothing is early.

    *Contradicted* (likely mislabelled): wrong in at least 90 % of the visits in the window ``start … start+length-1``, wrong at
    every visit in the last quarter of the stage, and forgotten at most once. *Learned late* (likely a minority or hard): wrong in
    at least half of the window's visits and right at every visit in the last quarter.

    >>> right = np.array([[0, 0], [0, 0], [0, 1], [0, 1]], dtype=bool)
    >>> learning_hints(right, np.ones_like(right), start=0, length=2).tolist()
    [1, 2]
    """
    epochs, n = correct.shape
    if epochs < FEWEST_EPOCHS or start >= epochs - last_epochs(epochs):
        return None
    wrong = visited & ~correct
    window = slice(start, start + length)
    visits = visited[window].sum(axis=0)
    share = wrong[window].sum(axis=0) / np.maximum(visits, 1)
    end = slice(epochs - last_epochs(epochs), epochs)
    seen_last = visited[end].any(axis=0) & (visits > 0)
    still_wrong = seen_last & ~(visited & correct)[end].any(axis=0)
    right_last = seen_last & ~wrong[end].any(axis=0)
    events = forgetting_events(zip(correct, visited, strict=True), n=n)
    hints = np.full(n, Hint.NONE, dtype=np.int8)
    hints[still_wrong & (share >= NEARLY_ALL) & (events <= FEW_EVENTS)] = Hint.CONTRADICTED
    hints[right_last & (share >= OFTEN)] = Hint.LEARNED_LATE
    return hints

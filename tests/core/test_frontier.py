import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from umix.core.rates import frontier

POINTS = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=12)


@given(POINTS)
def test_the_frontier_has_every_point_that_no_other_beats(points):
    worst, average = np.array([p[0] for p in points], float), np.array([p[1] for p in points], float)
    found = frontier(worst, average)
    for index, (low, mean) in enumerate(points):
        beaten = any((a >= low and b > mean) or (a > low and b >= mean) for a, b in points)
        first = points.index((low, mean)) == index
        assert (index in found) == (not beaten and first)
    assert (np.diff(average[found]) > 0).all()
    assert (np.diff(worst[found]) < 0).all()


def test_points_that_are_not_known_are_left_out():
    assert frontier([np.nan, 0.5], [0.9, 0.4]).tolist() == [1]
    assert frontier([], []).tolist() == []

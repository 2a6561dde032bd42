"""``umix.evaluate`` shows itself and gives frames."""

import numpy as np
import polars

from umix import evaluate, task_from_table, train


def test_the_result_shows_itself_and_has_frames() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=300)
    frame = polars.DataFrame({"x": x, "y": np.where(x > 0, "<b>yes", "no")})
    found = evaluate(train(task_from_table(frame, label="y"), "erm", epochs=1), frame, importance=True)
    assert "table on the new data" in str(found)
    assert "&lt;b&gt;yes" in found._repr_html_()
    assert polars.DataFrame(found.drift).columns[:3] == ["column", "kind", "moved"]
    assert found.importance is not None
    assert polars.DataFrame(found.importance.columns)["column"].to_list() == ["x"]
    assert (found.worst, found.worst_group) == (None, None)
    assert set(found.rates) == {"class <b>yes", "class no"}

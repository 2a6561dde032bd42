"""Overhead of umix over reading a table and making a matrix of it with polars alone.

A CSV of 1,000,000 rows and 20 columns (numbers, codes, texts of few values, dates, booleans). By hand: polars reads it,
standardises numbers and makes 0/1 columns of texts. umix: hash, read, classes, groups, stratified split, preprocessing fitted to
train and applied to val and test, standardised float32 matrices. Run: python benchmarks/table.py
"""

import tempfile
from pathlib import Path

import numpy as np
import polars
from measure import interleaved, ratio, write
from polars import selectors

from umix.data.rows.table_file import _hash
from umix.data.tables.preprocessing import one_hot
from umix.data.tables.source import TableSource

ROWS = 1_000_000


def table(n: int) -> polars.DataFrame:
    rng = np.random.default_rng(0)
    first = polars.date(2020, 1, 1)
    days = polars.date_range(first, first + polars.duration(days=999), eager=True).cast(polars.String).to_numpy()
    return polars.DataFrame(
        {
            **{f"number {i}": rng.normal(size=n).round(4) for i in range(9)},
            **{f"code {i}": rng.integers(1000, size=n) for i in range(3)},
            **{
                f"text {i}": np.array([f"v{v}" for v in range(5 + 8 * i)])[rng.integers(5 + 8 * i, size=n)]
                for i in range(4)
            },
            "day": days[rng.integers(len(days), size=n)],
            "sex": np.array(["f", "m"])[rng.integers(2, size=n)],
            "member": rng.integers(2, size=n) == 1,
            "y": np.array(["no", "yes"])[rng.integers(2, size=n)],
        }
    )


def by_hand(path: Path) -> None:
    frame = polars.read_csv(path).drop("y")
    day = polars.col("day").str.to_date()
    dates = frame.select(day.dt.epoch("d"), day.dt.month().alias("month"), day.dt.weekday().alias("weekday"))
    numbers = polars.concat([frame.select(selectors.numeric() | selectors.boolean()), dates], how="horizontal")
    numbers = numbers.cast(polars.Float32).select((polars.all() - polars.all().mean()) / polars.all().std())
    texts = frame.select(selectors.string()).drop("day").to_dummies()
    polars.concat([numbers, texts.cast(polars.Float32)], how="horizontal").to_numpy()


def by_umix(path: Path) -> None:
    _hash.cache_clear()
    one_hot(TableSource(path=path, label="y", groups="sex").load())


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "people.csv"
        table(ROWS).write_csv(path)
        seconds = interleaved({"umix": lambda: by_umix(path), "by hand": lambda: by_hand(path)}, repeats=2)
    write(
        "table",
        {
            "setting": f"CSV, {ROWS} rows, 20 columns",
            "umix / polars": ratio(seconds, "umix", "by hand"),
            "seconds": {name: round(min(times), 2) for name, times in seconds.items()},
        },
    )


if __name__ == "__main__":
    main()

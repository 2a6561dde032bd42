"""Which rows train, choose and test, where no column says so: at random, by the values of a column, by date, or by folds."""

import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from umix.core.streams import stream
from umix.core.subsets import stratified_folds, stratified_split
from umix.data.rows.column_kinds import as_kind, is_missing, is_text, kind_of, reads_as
from umix.data.rows.role_columns import Rows, texts
from umix.data.rows.row_roles import RowRoles
from umix.errors import Setting, UserError

if TYPE_CHECKING:
    import polars

_SPLITS = ("train", "val", "test")


def divide(
    roles: RowRoles, frame: "polars.DataFrame", stratum: Rows, named: Mapping[str, Rows] | None = None
) -> tuple[dict[str, Rows], list[str]]:
    """The rows of train, val and test as ``roles`` say, and notes; all but those by date are stratified.

    Where a column has ``named`` train and test, only val is drawn, out of train.
    """
    if roles.split_by_date is not None:
        return _split_by_date(
            frame[roles.split_by_date], val_share=roles.val_share, test_share=roles.test_share, name=roles.split_by_date
        )
    if roles.folds is None and roles.split_by is None:
        shares = {"val_share": roles.val_share, "test_share": roles.test_share}
        return split_at_random(stratum, **shares, seed=roles.data_seed, given=named), []
    value = None if roles.split_by is None else _values(frame[roles.split_by], at_least=roles.folds or len(_SPLITS))
    rng, test_share = stream(roles.data_seed, "data", "table/folds"), roles.test_share
    if roles.folds is None:
        test = _held_out(stratum, value, share=test_share, rng=rng)
    else:
        if roles.folds > len(stratum):
            raise UserError(
                Setting("folds"), f" must be at most the number of rows, {len(stratum)}, got {roles.folds}."
            )
        test, test_share = _folds(stratum, value, folds=roles.folds, rng=rng) + 1 == roles.fold, 1 / roles.folds
    rest = np.flatnonzero(~test)
    share = roles.val_share / (1 - test_share)
    val = _held_out(stratum[rest], None if value is None else value[rest], share=share, rng=rng)
    return {"train": rest[~val], "val": rest[val], "test": np.flatnonzero(test)}, []


def split_at_random(
    stratum: Rows, *, val_share: float, test_share: float, seed: int, given: Mapping[str, Rows] | None = None
) -> dict[str, Rows]:
    """Rows of train, val and test, stratified; with ``given`` splits only val is drawn, out of train."""
    rng = stream(seed, "data", "table/split")
    if given:
        rest, test = given["train"], given["test"]
    else:
        rest, test = stratified_split(stratum, share=1 - test_share, rng=rng)
        val_share /= 1 - test_share
    train, val = stratified_split(stratum[rest], share=1 - val_share, rng=rng)
    return {"train": rest[train], "val": rest[val], "test": test}


def _held_out(stratum: Rows, value: Rows | None, *, share: float, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Which rows are held out, [n]: a ``share`` of every group, as nearly as rows with one ``value`` stay together."""
    if value is None:
        held_out = np.ones(len(stratum), dtype=bool)
        held_out[stratified_split(stratum, share=1 - share, rng=rng)[0]] = False
        return held_out
    fold = _folds(stratum, value, folds=min(max(2, round(1 / share)), len(np.unique(value))), rng=rng)
    return np.asarray(fold == np.abs(np.bincount(fold) - share * len(fold)).argmin())


def _folds(stratum: Rows, value: Rows | None, *, folds: int, rng: np.random.Generator) -> Rows:
    """A fold of 0 … folds-1 for every row, [n], stratified; rows with one ``value`` are in one fold."""
    return stratified_folds(stratum, folds=folds, rng=rng) if value is None else value_folds(stratum, value, folds, rng)


def value_folds(stratum: Rows, value: Rows, folds: int, rng: np.random.Generator) -> Rows:
    """A fold of 0 … folds-1 for every row, [n], the same for all rows with one ``value``, stratified as far as that allows.

    scikit-learn places one value after the other, which takes a minute for 100,000 of them. Values whose rows are of the same
    groups are as good as each other, so most of these are dealt out in turn, and scikit-learn places the others.
    """
    from sklearn.model_selection import StratifiedGroupKFold

    value = np.unique(value, return_inverse=True)[1]
    kind = np.zeros(
        value.max() + 1, dtype=np.uint64
    )  # a sum of random numbers: the same for values with the same groups
    np.add.at(kind, value, rng.integers(2**63, size=stratum.max() + 1, dtype=np.uint64)[stratum])
    order = rng.permutation(len(kind))
    order = order[np.argsort(kind[order], kind="stable")]
    _, first, sizes = np.unique(kind[order], return_index=True, return_counts=True)
    turn = np.arange(len(order)) - np.repeat(first, sizes)
    dealt = turn < np.repeat((sizes // folds - 1).clip(0) * folds, sizes)  # so that each kind leaves at least so many
    of_value = np.full(len(kind), -1)
    of_value[order[dealt]] = turn[dealt] % folds
    fold: Rows = of_value[value]
    rest = np.flatnonzero(fold < 0)
    if len(rest):
        groups = stratum[rest] if np.bincount(stratum[rest]).max() >= folds else np.zeros_like(rest)
        splitter = StratifiedGroupKFold(folds, shuffle=True, random_state=int(rng.integers(2**32)))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of groups with fewer rows than folds, which umix says itself
            for k, (_, rows) in enumerate(splitter.split(groups, groups, value[rest])):
                fold[rest[rows]] = k
    return fold


def _values(column: "polars.Series", *, at_least: int) -> Rows:
    """A number for the value of every row, [n]; raises where it is blank, or where there are too few values."""
    text = texts(column)
    if blank := text.null_count():
        raise UserError(
            f"The column {column.name!r} of ",
            Setting("split_by"),
            f" must have a value in every row, but it is blank in {blank} of {len(text)}; fill it in or remove those rows.",
        )
    if (n := text.n_unique()) < at_least:
        parts = "splits" if at_least == len(_SPLITS) else "folds"
        raise UserError(
            f"The column {column.name!r} of ",
            Setting("split_by"),
            f" must have a value for each of {at_least} {parts}, but it has only {n}.",
        )
    codes: Rows = text.rank("dense").to_numpy().astype(np.int64)
    return codes


def _split_by_date(
    column: "polars.Series", *, val_share: float, test_share: float, name: str
) -> tuple[dict[str, Rows], list[str]]:
    """The oldest rows as train, the newest as test, and a note of where they are cut; rows of one date are in one split."""
    moment = _moments(column)
    order = np.argsort(moment, kind="stable")
    n, ends = len(order), np.flatnonzero(np.diff(moment[order])) + 1  # places at which a later date begins
    if len(ends) < 2:
        raise UserError(
            f"The column {name!r} of ",
            Setting("split_by_date"),
            f" must have at least three different dates, one for each split, got {len(ends) + 1}.",
        )
    test = ends[1:][np.abs(ends[1:] - (1 - test_share) * n).argmin()]
    val = ends[ends < test][np.abs(ends[ends < test] - (1 - test_share - val_share) * n).argmin()]
    rows = dict(zip(_SPLITS, map(np.sort, np.split(order, [val, test])), strict=True))
    begin = {split: column[int(order[place])] for split, place in (("val", val), ("test", test))}
    return rows, [
        f"Divided by {name!r}: val begins with {begin['val']}, test with {begin['test']}; the older rows train."
    ]


def _moments(column: "polars.Series") -> NDArray[np.float64]:
    """When each row was, [n], as numbers that rise with time; raises where that is not known of a row."""
    missing, kind = is_missing(column), kind_of(column)
    if kind == "text":
        kind = reads_as(column.filter(~missing).unique())
    if kind == "text" or missing.any():
        shown = column.filter(missing if missing.any() else as_kind(column, "moment").is_null())[0]
        raise UserError(
            f"The column {column.name!r} of ",
            Setting("split_by_date"),
            f" must have a date or a number in every row, such as 2024-02-29, got {'a blank' if shown is None else repr(shown)}.",
        )
    moments = as_kind(column, kind) if is_text(column) or kind == "number" else as_kind(column, "moment")
    numbers: NDArray[np.float64] = moments.to_physical().to_numpy().astype(np.float64)
    return numbers

"""Tables: columns of numbers, categories and dates become the matrix that the net takes, inside of the exported model."""

from collections.abc import Sequence
from typing import final

import torch
from torch import Tensor

from umix.data.tables.one_hot import OneHot
from umix.data.tables.preprocessing import TablePreprocessing
from umix.exports.preprocessing import NO_DATE, ColumnInput, Preprocessing, TensorInput

NUMBERS, CODES, DATES = "numbers", "codes", "dates"
_DAY = 86_400  # seconds
_BEFORE = 719_468  # days from the first of March of the year 0 to 1970-01-01


@final
class TableInputs(Preprocessing):
    """Takes ``numbers`` [n, columns], NaN where missing, ``codes`` and ``dates`` [n, columns]; those without columns are left out.

    It makes the matrix that ``reader`` makes of a table without long texts.
    """

    place: Tensor

    def __init__(self, reader: TablePreprocessing) -> None:
        super().__init__()
        used = [one for one in reader.input_columns if one.width]
        self.columns = tuple(
            ColumnInput(one.name, one.kind if one.kind in ("category", "date") else "number", one.values)
            for one in used
        )
        self.one_hot = OneHot(used) if reader.one_hot else None
        self.parts = tuple(one.parts for one in used if one.kind == "date")
        self.tensors = tuple(self._tensors())
        in_order = (*self.numbers, *self.categories, *self.dates)
        widths = {one.name: one.width for one in used}
        begins, begin = dict[str, int](), 0
        for column in in_order:
            begins[column.name], begin = begin, begin + widths[column.name]
        places = [begins[one.name] + offset for one in used for offset in range(one.width)]
        self.register_buffer("place", torch.tensor(places, dtype=torch.int64), persistent=False)

    def _tensors(self) -> list[TensorInput]:
        """The tensors that it takes: numbers, codes and dates, as far as there are such columns."""
        of_codes = "the place of the value among its values, -1 for any other"
        of_dates = f"whole seconds since 1970-01-01 00:00, {NO_DATE} where missing"
        kinds: list[tuple[str, tuple[ColumnInput, ...], str]] = [
            (NUMBERS, self.numbers, "NaN where missing"),
            (CODES, self.categories, of_codes),
            (DATES, self.dates, of_dates),
        ]
        return [
            TensorInput(
                name,
                "float32" if name == NUMBERS else "int64",
                ("n", len(columns)),
                f"the columns {', '.join(column.name for column in columns)}: {meaning}",
            )
            for name, columns, meaning in kinds
            if columns
        ]

    def forward(self, *tensors: Tensor) -> Tensor:
        by_name = dict(zip((tensor.name for tensor in self.tensors), tensors, strict=True))
        made = []
        if NUMBERS in by_name:
            numbers = by_name[NUMBERS]
            made.append(numbers.where(~numbers.isinf(), torch.nan))
        if CODES in by_name:
            codes = by_name[CODES]
            made.append(codes.float().where(codes >= 0, torch.nan))
        made += [date_parts(by_name[DATES][:, column : column + 1], parts) for column, parts in enumerate(self.parts)]
        matrix = torch.cat(made, dim=1).index_select(1, self.place)
        return matrix if self.one_hot is None else self.one_hot(matrix)


def date_parts(seconds: Tensor, parts: Sequence[str]) -> Tensor:
    """The ``parts`` of dates from the year 1 on, float32 [n, parts], of ``seconds`` since 1970 [n, 1]; NaN where one is missing.

    All integers are positive, so that every runtime divides them alike. Months begin in March, which puts the leap day last.
    """
    missing = seconds == NO_DATE
    known = seconds.where(~missing, 0)
    day = (known + _BEFORE * _DAY) // _DAY
    in_era = day % 146_097
    year = (in_era - in_era // 1_460 + in_era // 36_524 - in_era // 146_096) // 365
    month = (5 * (in_era - (365 * year + year // 4 - year // 100)) + 2) // 153
    values = {
        "days": known.double() / _DAY,
        "month": month + 3 - 12 * (month >= 10).long(),
        "weekday": (day + 2) % 7 + 1,
        "hour": (known + _BEFORE * _DAY) % _DAY // 3_600,
    }
    return torch.cat([values[part].float().where(~missing, torch.nan) for part in parts], dim=1)

"""Groups of label × values, from values of attributes as they are given."""

from typing import Any

import torch

from umix.adapters.attribute_columns import attribute_columns
from umix.core.words import group_name
from umix.data.groups import Groups
from umix.data.rows.known_rows import MOST_GROUPS
from umix.data.rows.role_columns import Rows, encode_attribute
from umix.errors import UserError


def cells(y: Rows, classes: tuple[str, ...], given: Any) -> Groups:
    """Groups of label × values, as tables have them; a row with a missing value has no group."""
    by = attribute_columns(given, n=len(y), name="groups")
    attribute = encode_attribute(by.get_columns())
    if not attribute.values:
        raise UserError("groups must be known in some row, but all are missing; leave groups out.")
    if len(classes) * attribute.most > MOST_GROUPS:
        raise UserError(
            f"groups must make at most {MOST_GROUPS} groups, got {len(classes)} classes × {attribute.most} values of "
            f"{', '.join(by.columns)}; give fewer columns or cut them into ranges."
        )
    return Groups.cells(
        torch.from_numpy(y),
        torch.from_numpy(attribute.codes),
        labels=classes,
        attributes=list(map(group_name, attribute.values)),
        columns=("label", *by.columns),
        values=attribute.values,
        by_column=[(torch.from_numpy(codes), values) for codes, values in attribute.by_column],
    )

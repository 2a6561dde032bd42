"""A griffe extension: the fields of a class become the table "Attributes" of its entry in the reference.

The text of a field is the description of its pydantic ``Field``, or the comment beside it.
"""

import ast
import re
from typing import Any

from griffe import Class, Extension, Visitor

_COMMENT = re.compile(r"  # (?!type:|noqa)(.+)$", re.MULTILINE)


class FieldTables(Extension):
    """Adds the section to the docstring of every class that has such fields and does not list them itself."""

    def on_class_members(self, *, node: Any, cls: Class, agent: Visitor, **_: Any) -> None:
        if cls.docstring is None or "\nAttributes:" in cls.docstring.value or not isinstance(node, ast.ClassDef):
            return
        lines = agent.code.splitlines()
        fields = [
            field for field in node.body if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
        ]
        described = {
            field.target.id: _description(field) or _comment("\n".join(lines[field.lineno - 1 : field.end_lineno]))
            for field in fields
        }
        rows = [f"    {name}: {text}" for name, text in described.items() if text and not name.startswith("_")]
        if rows:
            cls.docstring.value += "\n".join(("\n\nAttributes:", *rows))


def _description(field: ast.AnnAssign) -> str:
    """The text ``description=`` of a ``Field``."""
    if isinstance(field.value, ast.Call):
        for keyword in field.value.keywords:
            if keyword.arg == "description" and isinstance(keyword.value, ast.Constant):
                return str(keyword.value.value)
    return ""


def _comment(source: str) -> str:
    comment = _COMMENT.search(source)
    return comment[1] if comment else ""

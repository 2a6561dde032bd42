"""Named settings classes as people and programs read them: fields, legal values, defaults."""

import json
import sys
from collections.abc import Mapping
from typing import Any

from rich.table import Table

from umix.settings import Settings, legal
from umix.terminal import OUT


def print_json(content: object) -> None:
    sys.stdout.write(json.dumps(content, indent=2) + "\n")


def print_catalogue(entries: Mapping[str, tuple[type[Settings], str, dict[str, Any]]], *, as_json: bool) -> None:
    """Print each class with its facts and settings."""
    if as_json:
        print_json(
            {
                name: {"summary": text, **facts, "settings": kind.model_json_schema()}
                for name, (kind, text, facts) in entries.items()
            }
        )
        return
    for name, (kind, text, facts) in entries.items():
        OUT.print(f"[bold]{name}[/bold]  {text}", highlight=False)
        for fact, value in facts.items():
            words = {True: "yes", False: "no"}[value] if isinstance(value, bool) else value
            listed = ", ".join(words) or "none" if isinstance(words, list) else words
            OUT.print(f"  {fact.replace('_', ' ')}: {listed}", highlight=False, style="dim")
        table = Table(
            "setting", "legal", "default", "meaning", box=None, padding=(0, 2), show_header=bool(kind.model_fields)
        )
        for field_name, field in kind.model_fields.items():
            default = "must be given" if field.is_required() else str(field.default)
            table.add_row(field_name, legal(field), default, field.description or "")
        OUT.print(table)

"""Writes methods/*.md, results.md and results-real.md from docstrings, hyperparameters and benchmark results.

Run: python docs/generate.py [FOLDER], where FOLDER is docs/ unless given. `make docs` runs it before it builds the site.
The pages of methods/ are not in the repository: the docstring and the fields of a method are their only source.
"""

import json
import sys
from inspect import getmodule
from pathlib import Path

from umix.bench.search.search_space import search_space
from umix.methods.method import Method
from umix.methods.registry import METHODS
from umix.settings import Range, legal

HERE = Path(__file__).parent
RESULTS = HERE.parent / "benchmarks" / "results"
USES = {"nothing": "No groups known", "validation": "Validation groups known", "training": "Training groups known"}


def page(kind: type[Method], results: dict[str, dict]) -> str:
    """The page of one method."""
    module = getmodule(kind)
    text = (module.__doc__ or "") if module else ""
    title, _, body = text.partition("\n")
    parts = [f"# {kind.name}", "", f"*{kind.__doc__}*", "", f"**Paper:** {kind.paper}", ""]
    parts += [f"**Group labels:** {groups(kind)}", "", f"**[`--use-groups`](../groups.md):** {use_groups(kind)}", ""]
    if kind.stages:
        parts += [f"**Stages before the final fit:** {', '.join(f'`{stage}`' for stage in kind.stages)}", ""]
    parts += ["```sh", f"umix run colored_digits {kind.name}", "```", "", title, "", listed(body.strip()), ""]
    parts += hyperparameters(kind)
    parts += result_rows(kind.name, results)
    return "\n".join(parts) + "\n"


def groups(kind: type[Method]) -> str:
    if kind.needs_val_groups:
        return "needed in the validation split"
    if kind.needs_groups is True:
        return "needed in the training split"
    if "groups_from" in kind.model_fields:
        use = kind.needs_groups_if if kind.needs_groups_if.startswith("if ") else ""
        return f"needed in the training split {use}".strip() + "; with `groups_from=few` those of a few rows"
    if kind.needs_some_groups is True:
        return "needed of a few rows of the validation split, or of the training split"
    return "not needed" if kind.needs_groups is False else "needed in the training split for some settings"


def use_groups(kind: type[Method]) -> str:
    """Under which ``--use-groups`` the method can be trained, and what it knows of groups then."""
    if kind.uses_known_groups:
        return "`test`: trains without groups; `val`, `train`: with those that are known there"
    selects = "with `val` or `train` the worst validation group selects the epoch, with `test` the worst class does"
    if kind.needs_val_groups:
        return "`val` or `train`; with `test` it is refused, because it is fitted to validation groups"
    if kind.needs_some_groups is True:
        return "`val`: the known groups of validation; `train`: those of training too; with `test` it is refused"
    if kind.needs_groups is True:
        return "`train`; with `val` or `test` it is refused, because it trains with training groups"
    if "groups_from" in kind.model_fields:
        return f"`train`; `val` with `groups_from=few`{'; by class also `test`' if 'by' in kind.model_fields else ''}"
    return f"trains without groups; {selects}"


def listed(text: str) -> str:
    """The docstring ``text`` in Markdown, where a list needs a blank line before its first item."""
    lines: list[str] = []
    for line in text.splitlines():
        if line.startswith("- ") and lines and lines[-1] and not lines[-1].startswith(("- ", "  ")):
            lines.append("")
        if line.startswith("Differs from"):
            line = f"**{line}**"
        lines.append(line)
    return "\n".join(lines)


def hyperparameters(kind: type[Method]) -> list[str]:
    if not kind.model_fields:
        return ["## Hyperparameters", "", "None of its own.", ""]
    rows = ["## Hyperparameters", "", "| name | legal | default | search | meaning |", "|---|---|---|---|---|"]
    space = search_space(kind.name)
    for name, field in kind.model_fields.items():
        looked = space.get(name)
        if isinstance(looked, Range):
            search = f"{looked.low:g} … {looked.high:g}{' (log)' if looked.log else ''}"
        else:
            search = ", ".join(map(str, looked)) if looked else ""
        rows.append(f"| `{name}` | {legal(field)} | `{field.default}` | {search} | {field.description} |")
    return [*rows, ""]


def result_rows(name: str, results: dict[str, dict]) -> list[str]:
    """Worst group and average of the method on every set, beside ERM's and UMIX's, by what is known of groups."""
    tables: list[str] = []
    for use, known in USES.items():
        rows = [row for row in _rows(results, use) if row == name or row.startswith((f"{name} by", f"{name}, "))]
        if not rows:
            continue
        shown = [*rows, *(row for row in ("erm", "umix") if row not in rows)]
        tables += [f"{known}:", "", f"| | {' | '.join(results)} |", f"|---|{'--:|' * len(results)}"]
        for row in shown:
            found = [result["tables"][use].get(row) for result in results.values()]
            cells = ["–" if one is None else f"{100 * one['worst']:.1f} ({100 * one['average']:.1f})" for one in found]
            tables.append(f"| {row} | {' | '.join(cells)} |")
        tables.append("")
    if not tables:
        return []
    said = "Worst-group test accuracy (average) in percent, all methods searched with the same budget"
    return ["## Result", "", f"{said} ([all methods](../results.md)).", "", *tables]


def _rows(results: dict[str, dict], use: str) -> list[str]:
    return list(dict.fromkeys(row for result in results.values() for row in result["tables"][use]))


def index() -> str:
    rows = ["# Methods", "", "| name | what it does | group labels |", "|---|---|---|"]
    rows += [f"| [{name}]({name}.md) | {kind.__doc__} | {groups(kind)} |" for name, kind in METHODS.own_classes.items()]
    return "\n".join(rows) + "\n"


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else HERE
    source = RESULTS / "methods.json"
    results = json.loads(source.read_text(encoding="utf-8"))["sets"] if source.exists() else {}
    (folder / "methods").mkdir(parents=True, exist_ok=True)
    for old in (folder / "methods").glob("*.md"):
        old.unlink()  # else the page of a method that is gone would stay
    for name, kind in METHODS.own_classes.items():
        (folder / "methods" / f"{name}.md").write_text(page(kind, results), encoding="utf-8")
    (folder / "methods" / "index.md").write_text(index(), encoding="utf-8")
    for table, target in (("methods.md", "results.md"), ("real.md", "results-real.md")):
        if (RESULTS / table).exists():
            (folder / target).write_text((RESULTS / table).read_text(encoding="utf-8"), encoding="utf-8")


if __name__ == "__main__":
    main()

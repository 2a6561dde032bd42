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
RATES = {"average": "average", "adjusted": "adjusted average", "group_mean": "group mean", "worst": "worst group"}


def page(kind: type[Method], results: dict[str, dict]) -> str:
    """The page of one method."""
    module = getmodule(kind)
    text = (module.__doc__ or "") if module else ""
    title, _, body = text.partition("\n")
    parts = [f"# {kind.name}", "", f"*{kind.__doc__}*", "", f"**Paper:** {kind.paper}", ""]
    parts += [f"**Group labels:** {groups(kind)}", ""]
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
    tasks = {task: table[name] for task, table in results.items() if isinstance(table, dict) and name in table}
    if not tasks:
        return []
    rows = [
        "## Result",
        "",
        "Test accuracy in percent, mean ± standard deviation over 5 seeds ([all methods](../results.md)).",
        "",
    ]
    rows += [f"| task | {' | '.join(RATES.values())} |", f"|---|{'--:|' * len(RATES)}"]
    for task, table in tasks.items():
        cells = [f"{100 * table[rate]['mean']:.1f} ± {100 * table[rate]['std']:.1f}" for rate in RATES]
        rows.append(f"| {task} | {' | '.join(cells)} |")
    return [*rows, ""]


def index() -> str:
    rows = ["# Methods", "", "| name | what it does | group labels |", "|---|---|---|"]
    rows += [f"| [{name}]({name}.md) | {kind.__doc__} | {groups(kind)} |" for name, kind in METHODS.own_classes.items()]
    return "\n".join(rows) + "\n"


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else HERE
    source = RESULTS / "methods.json"
    results = json.loads(source.read_text(encoding="utf-8")) if source.exists() else {}
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

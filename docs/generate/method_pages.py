"""The pages of the methods: what their docstrings and fields say, and their results."""

from inspect import getmodule

from method_formulas import FORMULAS, PAPERS, SYMBOLS
from setting_tables import setting_rows

from umix.commands.catalogue import group_labels
from umix.methods.method import DIFFERS_EVERYWHERE, Method
from umix.methods.registry import METHODS

USES = {"nothing": "No groups known", "validation": "Validation groups known", "training": "Training groups known"}


def method_page(kind: type[Method], results: dict[str, dict]) -> str:
    """The page of one method; ``results`` are those of benchmarks/methods.py, by data set."""
    module = getmodule(kind)
    text = (module.__doc__ or "") if module else ""
    title, _, body = text.partition("\n")
    paper = f"[{kind.paper}]({PAPERS[kind.name]})" if kind.name in PAPERS else kind.paper
    parts = [f"# {kind.name}", "", f"*{kind.__doc__}*", "", f"**Paper:** {paper}", ""]
    parts += [f"**Uses group labels:** {group_labels(kind)}", ""]
    parts += [f"**[`--use-groups`](../../explanation/groups.md):** {use_groups(kind)}", ""]
    if kind.stages:
        parts += [f"**Stages before the final fit:** {', '.join(f'`{stage}`' for stage in kind.stages)}", ""]
    parts += ["```sh", f"umix run colored_digits {kind.name}", "```", "", title, ""]
    if kind.name in FORMULAS:
        parts += [line for formula in FORMULAS[kind.name] for line in ("$$", formula, "$$", "")]
        parts += [SYMBOLS, ""]
    parts += [listed(body.strip()), "", f"{DIFFERS_EVERYWHERE} ([Thresholds](../../explanation/thresholds.md))", ""]
    parts += hyperparameters(kind)
    parts += result_rows(kind.name, results)
    return "\n".join(parts) + "\n"


def use_groups(kind: type[Method]) -> str:
    """Under which ``--use-groups`` the method can be trained, and what it knows of groups then."""
    if kind.uses_known_groups:
        return "`test`: trains without groups; `val`, `train`: with those that are known there"
    selects = "with `val` or `train` the worst validation group selects the epoch, with `test` the classes do (the rule `balanced`)"
    if kind.needs_val_groups:
        return "`val` or `train`; with `test` it is refused, because it is fitted to validation groups"
    if kind.needs_some_groups is True:
        return "`val`: the known groups of validation; `train`: those of training too; with `test` it is refused"
    if kind.needs_groups is True:
        return "`train`; with `val` or `test` it is refused, because it trains with training groups"
    if "groups_from" in kind.model_fields:
        return f"`train`; `val` with `groups_from=few`{'; by class also `test`' if 'by' in kind.model_fields else ''}"
    if kind.needs_groups_if.startswith("if "):
        return f"`train` {kind.needs_groups_if.replace('by=group', '`by=group`')}; else it trains without groups; {selects}"
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
    return ["## Hyperparameters", "", *(setting_rows(kind) if kind.model_fields else ["None of its own."]), ""]


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
    return ["## Result", "", f"{said} ([all methods](../../explanation/results.md)).", "", *tables]


def _rows(results: dict[str, dict], use: str) -> list[str]:
    return list(dict.fromkeys(row for result in results.values() for row in result["tables"][use]))


def method_index() -> str:
    """The page with a line for each method."""
    rows = ["# Methods", "", "| name | what it does | uses group labels |", "|---|---|---|"]
    rows += [
        f"| [{name}]({name}.md) | {kind.__doc__} | {group_labels(kind)} |" for name, kind in METHODS.own_classes.items()
    ]
    return "\n".join(rows) + "\n"

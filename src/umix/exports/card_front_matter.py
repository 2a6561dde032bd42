"""The head of a model card: YAML that the Hugging Face hub reads."""

import json
from collections.abc import Sequence
from typing import Any

from umix.bench.runs.record import RunRecord
from umix.bench.runs.summary import Summary
from umix.exports.roles import Roles

_TASKS = {"table": "tabular-classification", "images": "image-classification", "text": "text-classification"}
_RATES = {"average": "accuracy", "worst": "worst-group accuracy", "group_mean": "mean accuracy of the groups"}


def front_matter(record: RunRecord, summary: Summary, roles: Roles, *, license: str | None) -> str:
    """The YAML between two lines of dashes: tags, the kind of task, and the test rates as a model index."""
    task = _TASKS.get(roles.kind)
    metrics = [
        {"type": "accuracy", "name": f"{name}, test", "value": round(value, 4)}
        for rate, name in _RATES.items()
        if (value := getattr(summary, rate)) is not None
    ]
    result = {
        "task": {"type": task or "other", "name": "classification"},
        "dataset": {"type": record.title, "name": record.title, "split": "test"},
        "metrics": metrics,
    }
    head: dict[str, Any] = {
        **({"license": license} if license else {}),
        "library_name": "umix",
        **({"pipeline_tag": task} if task else {}),
        "tags": list(dict.fromkeys(["umix", "subpopulation-shift", "worst-group-accuracy", record.method])),
        "metrics": ["accuracy"],
        "model-index": [{"name": f"{record.title}-{record.method}", "results": [result]}],
    }
    return "\n".join(["---", *_yaml(head, ""), "---", ""])


def _yaml(value: Any, indent: str) -> Sequence[str]:
    """Lines of YAML; texts are written as JSON writes them, which YAML reads as they are."""
    lines: list[str] = []
    if isinstance(value, dict):
        for key, inner in value.items():
            if isinstance(inner, dict | list):
                lines += [f"{indent}{key}:", *_yaml(inner, f"{indent}  ")]
            else:
                lines.append(f"{indent}{key}: {json.dumps(inner, ensure_ascii=False)}")
        return lines
    for inner in value:
        if isinstance(inner, dict):
            first, *rest = _yaml(inner, f"{indent}  ")
            lines += [f"{indent}- {first.lstrip()}", *rest]
        else:
            lines.append(f"{indent}- {json.dumps(inner, ensure_ascii=False)}")
    return lines

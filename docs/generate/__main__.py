"""Writes the pages whose only source is the code or a benchmark: methods, command line, settings, results and the figure of them.

Run: python docs/generate [FOLDER], where FOLDER is docs/ unless given. `make docs` runs it before it builds the site.
Pages of reference/ that are written here are not in the repository.
"""

import json
import sys
from pathlib import Path

from command_page import command_page
from method_pages import method_index, method_page
from setting_tables import settings_page
from uncertainty_figures import write_uncertainty_figures
from worst_groups_figure import worst_group_figures

from umix.methods.registry import METHODS

DOCS = Path(__file__).parents[1]
RESULTS = DOCS.parent / "benchmarks" / "results"
#: Pages into which results are put, and the file in benchmarks/results that has them.
WITH_RESULTS = {"reproduction.md": "finetune.md", "comparison.md": "methods-overview.md"}
BEGIN, END = "<!-- results: docs/generate puts them here -->", "<!-- end of results -->"


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else DOCS
    methods = folder / "reference" / "methods"
    methods.mkdir(parents=True, exist_ok=True)
    results = json.loads((RESULTS / "methods.json").read_text(encoding="utf-8"))["sets"]
    pages = {f"methods/{name}.md": method_page(kind, results) for name, kind in METHODS.own_classes.items()}
    pages |= {"methods/index.md": method_index(), "cli.md": command_page(), "settings.md": settings_page()}
    for old in methods.glob("*.md"):
        if f"methods/{old.name}" not in pages:
            old.unlink()  # else the page of a method that is gone would stay
    for name, text in pages.items():
        (folder / "reference" / name).write_text(text, encoding="utf-8")
    for name, figure in worst_group_figures(RESULTS / "tables.json").items():
        (folder / "figures" / name).write_bytes(figure)
    write_uncertainty_figures(RESULTS / "finetune.json", folder / "figures")
    for table, target in (("methods.md", "results.md"), ("real.md", "results-real.md")):
        (folder / "explanation" / target).write_text((RESULTS / table).read_text(encoding="utf-8"), encoding="utf-8")
    for name, results_file in WITH_RESULTS.items():
        text = (DOCS / "explanation" / name).read_text(encoding="utf-8")
        page = with_results(text, (RESULTS / results_file).read_text(encoding="utf-8"))
        (folder / "explanation" / name).write_text(page, encoding="utf-8")


def with_results(page: str, results: str) -> str:
    """``page`` with ``results`` between its two comments."""
    begin, _, rest = page.partition(f"{BEGIN}\n")
    _, _, after = rest.partition(END)
    return f"{begin}{BEGIN}\n\n{results}\n{END}{after}"


if __name__ == "__main__":
    main()

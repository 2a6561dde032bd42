"""The generated pages of the documentation are up to date with the code, also for a new method."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from threadpoolctl import threadpool_limits

from umix.bench.search.search_space import search_space
from umix.methods.registry import METHODS

ROOT = Path(__file__).parents[1]
OWN = tuple(METHODS.own)


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("docs")
    for written in (ROOT / "docs").glob("*.md"):
        shutil.copy(written, folder)
    (folder / "methods").mkdir()
    (folder / "methods" / "forgotten.md").write_text("# a method that is gone", encoding="utf-8")
    subprocess.run([sys.executable, ROOT / "docs" / "generate.py", folder], check=True)
    return folder


def page(folder: Path, name: str) -> str:
    return (folder / "methods" / f"{name}.md").read_text(encoding="utf-8")


def test_every_method_has_a_page_and_a_line_in_the_index_and_nothing_else_has(generated: Path) -> None:
    assert {file.stem for file in (generated / "methods").iterdir()} == {*OWN, "index"}
    linked = re.findall(r"^\| \[(\w+)\]\((\w+)\.md\) \|", page(generated, "index"), re.M)
    assert linked == [(name, name) for name in OWN]


@pytest.mark.parametrize("name", OWN)
def test_the_page_of_a_method_holds_what_its_class_says(generated: Path, name: str) -> None:
    text, kind = page(generated, name), METHODS[name]
    for said in (f"# {name}", kind.__doc__ or "", kind.paper, *kind.stages):
        assert said in text
    rows = re.findall(r"^\| `(\w+)` \| .* \| `(.*?)` \| (.*?) \| (.*) \|$", text, re.M)
    fields = kind.model_fields
    assert [row[:2] for row in rows] == [(field, str(fields[field].default)) for field in fields]
    assert {row[0] for row in rows if row[2].strip()} == set(search_space(name))
    assert [row[3] for row in rows] == [field.description for field in fields.values()]


@pytest.mark.parametrize("name", OWN)
def test_every_method_says_where_it_differs_from_its_paper_and_the_released_code(generated: Path, name: str) -> None:
    assert "**Differs from the paper:" in page(generated, name)
    assert "**Differs from the released code:" in page(generated, name)


def test_every_link_between_pages_leads_to_a_page(generated: Path) -> None:
    for file in generated.rglob("*.md"):
        for target in re.findall(r"\]\(([\w./-]+\.md)", file.read_text(encoding="utf-8")):
            assert (file.parent / target).exists(), f"{file.name}: {target}"


def test_what_python_md_says_of_estimators_runs_as_printed() -> None:
    text = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
    section = text.partition("## With an estimator of your own\n")[2].partition("\n## ")[0]
    blocks = re.findall(r"```python\n(.*?)```", section, flags=re.DOTALL)
    assert len(blocks) == 2
    with threadpool_limits(1):
        for block in blocks:
            exec(compile(block, "python.md", "exec"), {})  # noqa: S102 — our own file


def test_the_generated_pages_of_methods_are_not_in_the_repository() -> None:
    assert "/docs/methods/" in (ROOT / ".gitignore").read_text(encoding="utf-8").splitlines()

"""The generated pages of the documentation are up to date with the code, also for a new method."""

import json
import re
from pathlib import Path

import griffe
import pytest
from pydantic import BaseModel

import umix
from umix import run_folder
from umix.bench.search.search_space import search_space
from umix.bench.spec.evaluation_settings import EvaluationSettings
from umix.cli import app
from umix.data.tables.source import TableSource
from umix.methods.registry import METHODS
from umix.models.registry import NETS
from umix.training.fit_settings import FitSettings

pytestmark = pytest.mark.system

ROOT = Path(__file__).parents[2]
OWN = tuple(METHODS.own)
ADAPTERS = {
    "umix.adapters.lightning": ("TrainsByUMIX", "TrajectoryCallback"),
    "umix.adapters.sklearn": ("worst_group_accuracy", "worst_group_scorer"),
    "umix.adapters.transformers": ("GroupMetrics", "RecordingTrainer", "UMIXTrainer"),
}
PUBLIC = {f"umix.{name}" for name in umix.__all__ if name != "__version__"} | {
    f"{module}.{name}" for module, names in ADAPTERS.items() for name in names
}
#: What people are given and do not make themselves; the reference shows what it offers.
GIVEN = {"umix.Context", "umix.RunRecord", "umix.RunResult", "umix.StudyResult"}


@pytest.fixture
def generated(project: Path) -> Path:
    return project / "docs"


def page(folder: Path, name: str) -> str:
    return (folder / "reference" / "methods" / f"{name}.md").read_text(encoding="utf-8")


def test_every_method_has_a_page_and_a_line_in_the_index_and_nothing_else_has(generated: Path) -> None:
    assert {file.stem for file in (generated / "reference" / "methods").iterdir()} == {*OWN, "index"}
    linked = re.findall(r"^\| \[(\w+)\]\((\w+)\.md\) \|", page(generated, "index"), re.M)
    assert linked == [(name, name) for name in OWN]


@pytest.mark.parametrize("name", OWN)
def test_the_page_of_a_method_holds_what_its_class_says(generated: Path, name: str) -> None:
    text, kind = page(generated, name), METHODS[name]
    for said in (f"# {name}", kind.__doc__ or "", kind.paper, *kind.stages):
        assert said in text
    rows = [line.strip("| ").split(" | ") for line in re.findall(r"^\| `\w+` \|.*$", text, re.M)]
    fields, space = kind.model_fields, search_space(name)
    default = [f"`{field.default}`" if field.default != "" else "none" for field in fields.values()]
    assert [(row[0], row[2]) for row in rows] == list(zip((f"`{field}`" for field in fields), default, strict=True))
    if space:
        assert {row[0].strip("`") for row in rows if row[3].strip()} == set(space)
    assert [row[4 if space else 3] for row in rows] == [field.description for field in fields.values()]


@pytest.mark.parametrize("name", OWN)
def test_every_method_says_where_it_differs_from_its_paper_and_the_released_code(generated: Path, name: str) -> None:
    assert "**Differs from the paper:" in page(generated, name)
    assert "**Differs from the released code:" in page(generated, name)
    assert "threshold=off" in page(generated, name)


def test_every_link_between_pages_leads_to_a_page(generated: Path) -> None:
    for file in generated.rglob("*.md"):
        for target in re.findall(r"\]\(([\w./-]+\.md)", file.read_text(encoding="utf-8")):
            assert (file.parent / target).exists(), f"{file.name}: {target}"


@pytest.mark.parametrize("name", ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "examples/plugin/README.md"])
def test_every_link_of_a_file_beside_the_pages_leads_to_a_file(name: str) -> None:
    file = ROOT / name
    links = re.findall(r"\]\(([^)#]+)\)", file.read_text(encoding="utf-8"))
    assert [link for link in links if not (file.parent / link).exists()] == []


def test_the_generated_pages_of_the_reference_are_not_in_the_repository() -> None:
    ignored = (ROOT / ".gitignore").read_text(encoding="utf-8").splitlines()
    assert {"/docs/reference/methods/", "/docs/reference/cli.md", "/docs/reference/settings.md"} <= set(ignored)


def test_every_command_and_its_flags_are_on_the_page_of_the_command_line(generated: Path) -> None:
    text = (generated / "reference" / "cli.md").read_text(encoding="utf-8")
    commands = [name for name in app if not name.startswith("-")]
    assert re.findall(r"^## umix (\w+)$", text, re.M) == commands
    for flag in ("--label STR", "--use-groups CHOICE", "--seeds", "--out, -o PATH"):
        assert f"`{flag}" in text


def test_every_setting_of_fits_evaluation_and_nets_is_on_the_page_of_settings(generated: Path) -> None:
    text = (generated / "reference" / "settings.md").read_text(encoding="utf-8")
    for part, kind in (
        ("fit", FitSettings),
        ("evaluation", EvaluationSettings),
        ("net", NETS["mlp"]),
        ("task", TableSource),
    ):
        for name, field in kind.model_fields.items():
            assert name == "path" or (f"`{part}.{name}`" in text and (field.description or "") in text)


def reference() -> set[str]:
    """The names that have an entry in the reference."""
    pages = (ROOT / "docs" / "reference" / "api").glob("*.md")
    return {name for page in pages for name in re.findall(r"^::: (\S+)$", page.read_text(encoding="utf-8"), re.M)}


def test_every_public_name_is_in_the_reference() -> None:
    missing = {*PUBLIC, *named_for_plug_ins()} - reference()
    assert not missing, f"add `::: NAME` to a page of docs/reference/api for each of {sorted(missing)}"


def named_for_plug_ins() -> set[str]:
    """What the page on plug-ins tells people to import."""
    text = (ROOT / "docs" / "how-to" / "extending.md").read_text(encoding="utf-8")
    parts = {f"{module}.{name}" for name, module in re.findall(r"`(\w+)` of\s+`(umix[\w.]+)`", text)}
    return parts | set(re.findall(r"`(umix(?:\.[a-z_]+){2,}\.[A-Z]\w+)`", text))


@pytest.fixture(scope="module")
def package() -> griffe.Object:
    """The source as the reference reads it."""
    extensions = griffe.load_extensions(str(ROOT / "docs" / "field_tables.py"))
    loaded = griffe.load("umix", search_paths=[ROOT / "src"], extensions=extensions)
    assert isinstance(loaded, griffe.Object)
    return loaded


@pytest.mark.parametrize("name", sorted(PUBLIC - GIVEN))
def test_every_parameter_of_a_public_name_is_described(package: griffe.Object, name: str) -> None:
    target = package[name.removeprefix("umix.")]
    target = target.final_target if target.is_alias else target
    if not (target.is_class or target.is_function):
        return
    assert target.docstring, f"{name} has no docstring"
    style = "numpy" if "\nParameters\n---" in target.docstring.value else "google"
    sections = [part.value for part in target.docstring.parse(style) if part.kind.value in ("parameters", "attributes")]
    described = {one.name.lstrip("*") for section in sections for one in section}
    kind = getattr(umix, target.name, None)
    is_model = isinstance(kind, type) and issubclass(kind, BaseModel)
    wanted = set(kind.model_fields) if is_model else {parameter.name for parameter in target.parameters} - {"self"}
    if len(wanted) == 1:  # then its first sentence is about it
        described |= set(re.findall(r"``(\w+)``", target.docstring.value))
    assert wanted <= described, f"describe {sorted(wanted - described)} in the docstring of {name}"


def test_every_file_of_a_run_is_on_its_page() -> None:
    page = (ROOT / "docs" / "reference" / "files-of-a-run.md").read_text(encoding="utf-8")
    files = [value for name, value in vars(run_folder).items() if name.isupper() and not name.startswith("_")]
    assert len(files) > 10
    assert [name for name in files if f"`{name}`" not in page] == []


def test_the_page_on_the_paper_has_every_published_number() -> None:
    page = (ROOT / "docs" / "how-to" / "reproduce.md").read_text(encoding="utf-8")
    rows = {row[0].strip("`"): row[1:] for row in (line.strip("| ").split(" | ") for line in page.splitlines())}
    published = json.loads((ROOT / "src" / "umix" / "reports" / "published.json").read_text(encoding="utf-8"))
    for method, tasks in published["methods"].items():
        shown = dict(zip(("waterbirds", "celeba", "civilcomments", "camelyon17"), rows[method], strict=True))
        for task, rates in tasks.items():
            texts = {rate: _with_deviation(*numbers) for rate, numbers in rates.items()}
            expected = f"{texts['worst']} ({texts['average']})" if "worst" in texts else texts["average"]
            assert shown[task] == expected, f"{method} on {task}"


def _with_deviation(mean: float, deviation: float | None) -> str:
    return f"{mean:.1f}" if deviation is None else f"{mean:.1f} ± {deviation:.1f}"


def test_every_page_lies_in_the_folder_of_its_kind() -> None:
    docs = ROOT / "docs"
    found = {page.relative_to(docs).parts[0] for page in (*docs.rglob("*.md"), *docs.rglob("*.ipynb"))}
    assert found == {"index.md", "tutorials", "how-to", "reference", "explanation"}

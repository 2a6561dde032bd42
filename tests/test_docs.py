"""The committed pages are what the code says of itself."""

import subprocess
import sys
from pathlib import Path

import pytest

from umix.methods.registry import METHODS

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("docs")
    subprocess.run([sys.executable, ROOT / "docs" / "generate.py", folder], check=True)
    return folder


@pytest.mark.parametrize("name", [*METHODS, "index"])
def test_the_page_of_every_method_is_up_to_date(generated: Path, name: str) -> None:
    page = Path("methods", f"{name}.md")
    assert (ROOT / "docs" / page).read_text(encoding="utf-8") == (generated / page).read_text(encoding="utf-8"), (
        "run `make docs` and commit docs/methods"
    )


@pytest.mark.parametrize("name", METHODS)
def test_every_method_says_where_it_differs_from_its_paper_and_the_released_code(generated: Path, name: str) -> None:
    text = (generated / "methods" / f"{name}.md").read_text(encoding="utf-8")
    assert "**Differs from the paper:" in text
    assert "**Differs from the released code:" in text

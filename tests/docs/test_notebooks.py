"""The notebooks of the documentation run from top to bottom, and what is stored in them is what they give."""

import re
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

pytestmark = pytest.mark.system

NOTEBOOKS = sorted((Path(__file__).parents[2] / "docs").rglob("*.ipynb"))
PATHS = re.compile(r"/(tmp|home|root|work|Users)/")


def words(notebook: nbformat.NotebookNode) -> list[list[str]]:
    """What the outputs of every cell say, without numbers, which depend on the machine in their last digits, lines and pictures."""
    return [[re.sub(r"[\W\d]+", " ", said) for said in cell] for cell in texts(notebook)]


def texts(notebook: nbformat.NotebookNode) -> list[list[str]]:
    """The texts of the outputs of every cell."""
    return [
        [str(output.get("text") or output.get("data", {}).get("text/plain", "")) for output in cell.get("outputs", [])]
        for cell in notebook.cells
    ]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
@pytest.mark.enable_socket  # the kernel is another process
@pytest.mark.filterwarnings("ignore")  # of the client's own
def test_a_notebook_runs_and_says_what_is_stored_in_it(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    notebook = nbformat.read(path, as_version=4)
    stored = words(notebook)
    NotebookClient(notebook, timeout=None, resources={"metadata": {"path": str(tmp_path)}}).execute()
    assert words(notebook) == stored


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_has_its_outputs_and_pictures_and_no_path_of_a_machine(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    assert any(any(said) for said in texts(notebook))
    assert any("image/png" in output.get("data", {}) for cell in notebook.cells for output in cell.get("outputs", []))
    assert not PATHS.search(nbformat.writes(notebook))

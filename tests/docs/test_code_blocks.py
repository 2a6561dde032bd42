"""Every block of code in the README and the pages runs as printed, or says in a comment before it why it is not run.

``<!-- not run: reason -->`` right before a block is that comment. The blocks of a page run in order, in one folder and one
namespace, with the small files of ``conftest.py``, short fits, few seeds and few trials. Blocks of ``sh`` hold commands of umix,
which are run in this process, and ``mv``. A block of Python that begins with ``# FILE.py`` is written to that file.
"""

import re
import shlex
import shutil
import textwrap
import tomllib
import webbrowser
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from threadpoolctl import threadpool_limits

from umix.cli import main

pytestmark = pytest.mark.system

ROOT = Path(__file__).parents[2]
GENERATED = ("reference/methods/", "reference/cli.md", "reference/settings.md")
#: Kinds of blocks that are run; kinds that are nothing to run.
CODE, OTHER = ("python", "sh", "toml"), ("text", "bibtex")
#: Flags whose number is only that of repetitions, and what they are here.
FEWER = {"--seeds": "0:1", "--trials": "1", "--tune": "1"}
REASON = re.compile(r"<!-- not run: (.+) -->")


@dataclass(frozen=True)
class Block:
    """A block of a page: the line it begins on, its kind, its text, and why it is not run, if it is not."""

    line: int
    kind: str
    text: str
    reason: str

    @property
    def runs(self) -> bool:
        return self.kind in CODE and not self.reason


def pages() -> list[Path]:
    """The README, CONTRIBUTING.md and the pages of the site that are written by hand."""
    docs = ROOT / "docs"
    written = (page for page in docs.rglob("*.md") if not page.relative_to(docs).as_posix().startswith(GENERATED))
    return [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(written)]


def blocks(page: Path) -> Iterator[Block]:
    """The fenced blocks of ``page``, those in lists included."""
    lines, reason = iter(enumerate(page.read_text(encoding="utf-8").splitlines(), start=1)), ""
    for number, line in lines:
        fence = re.match(r" *```(\w*)", line)
        if fence:
            inside = []
            for _, text in lines:
                if text.strip() == "```":
                    break
                inside.append(text)
            yield Block(number, fence[1], textwrap.dedent("\n".join(inside)), reason)
        if line.strip():
            found = REASON.fullmatch(line.strip())
            reason = found[1] if found else ""


def name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


RUN = [page for page in pages() if any(block.runs for block in blocks(page))]


def test_blocks_are_found_with_their_reasons(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "a\n\n<!-- not run: takes an hour -->\n```sh\nmake\n```\n\n1. b\n\n   ```python\n   x = 1\n   ```\n"
    )
    assert list(blocks(page)) == [Block(4, "sh", "make", "takes an hour"), Block(10, "python", "x = 1", "")]


@pytest.mark.parametrize("page", pages(), ids=name)
def test_a_block_says_what_it_is_and_only_code_says_why_it_is_not_run(page: Path) -> None:
    for block in blocks(page):
        assert block.kind in (*CODE, *OTHER), f"{name(page)}:{block.line} is a block of kind {block.kind!r}"
        assert not block.reason or block.kind in CODE, f"{name(page)}:{block.line} is nothing to run"


@pytest.mark.parametrize("page", RUN, ids=name)
@pytest.mark.filterwarnings("ignore:.*LeafSpec:FutureWarning")  # Lightning's own
@pytest.mark.usefixtures("short_fits")
def test_the_blocks_of_a_page_run_as_printed(
    page: Path, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(data, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(webbrowser, "open", lambda address: True)
    names: dict[str, object] = {"__name__": "__main__"}
    with threadpool_limits(1):
        for block in blocks(page):
            if block.runs:
                run(block, f"{name(page)}:{block.line}", names)


def run(block: Block, where: str, names: dict[str, object]) -> None:
    if block.kind == "toml":
        tomllib.loads(block.text)
        return
    if block.kind == "python":
        file = re.match(r"# (\w+\.py)\n", block.text)
        if file:
            Path(file[1]).write_text(block.text, encoding="utf-8")
        exec(compile(block.text, where, "exec"), names)  # noqa: S102 — our own pages
        return
    for line in block.text.replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True)
        if not words:
            continue
        if words[0] == "mv":
            shutil.move(existing(words[1].removesuffix("*") + "…"), words[2])
            continue
        assert words[0] == "umix", f"{where}: {words[0]!r} is not run here; say why before the block"
        words += ["--trials", "1"] if words[1] == "tune" and "--trials" not in words else []
        words += ["--seeds", "1"] if words[1] == "demo" else []
        words += ["--seeds", "0:1"] if words[1] == "bench" and not {"--seeds", "--file"} & {*words} else []
        before = [*words[:1], *words[:-1]]
        fewer = {} if words[1] == "demo" else FEWER
        argv = [fewer.get(flag) or existing(word) for flag, word in zip(before, words, strict=True)]
        assert main(argv[1:]) == 0, f"{where}: {line}"


def existing(word: str) -> str:
    """``word``, or the newest path that it abbreviates: runs/people-umix-…"""
    if not word.endswith("…"):
        return word
    return str(max(Path().glob(word.removesuffix("…") + "*"), key=lambda path: path.stat().st_mtime))

"""What pyproject.toml promises to people who install the package."""

import re
import tomllib
from pathlib import Path

from umix.version import __version__

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def pins(name: str) -> dict[str, str]:
    """The versions that a file of constraints names, by package."""
    found = re.findall(r"^([\w.-]+)==(\S+)$", (ROOT / name).read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {package.lower().replace("_", "-"): version for package, version in found}


def release(version: str) -> list[int]:
    """The numbers of a version, without zeros at the end."""
    numbers = [int(part) for part in version.split(".")]
    while numbers[-1] == 0:
        numbers.pop()
    return numbers


def test_the_minimum_that_is_tested_is_the_lower_bound_of_every_dependency_but_torch() -> None:
    extras = PROJECT["optional-dependencies"]
    texts = [*PROJECT["dependencies"], *extras["search"], *extras["trees"]]
    bounds = dict(re.match(r"([\w.-]+)>=([\d.]+)", text).groups() for text in texts)
    minimum = pins("constraints-minimum.txt")
    assert minimum.keys() == bounds.keys()
    assert minimum["torch"] == pins("constraints.txt")["torch"]
    for name in bounds.keys() - {"torch"}:
        assert release(minimum[name]) == release(bounds[name]), name


def test_every_dependency_is_in_the_tested_set() -> None:
    assert pins("constraints-minimum.txt").keys() <= pins("constraints.txt").keys()


def test_the_version_to_cite_is_that_of_the_package() -> None:
    assert f"\nversion: {__version__}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")


def test_the_readme_lists_every_extra_for_users() -> None:
    section = (ROOT / "README.md").read_text(encoding="utf-8").split("## Install")[1].split("\n## ")[0]
    cells = re.findall(r"^\| (`.+`) \|", section, flags=re.MULTILINE)
    assert {name for cell in cells for name in re.findall(r"[a-z]+", cell)} == (
        PROJECT["optional-dependencies"].keys() - {"dev", "docs"}
    )

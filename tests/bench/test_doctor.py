"""What ``umix doctor`` says of this machine comes from the metadata of installed packages."""

from importlib import metadata

import pytest

from umix.bench.doctor import facts, requirements


def test_needed_packages_and_extras_are_those_of_the_metadata() -> None:
    needed, extras = requirements(metadata.requires("umix") or [])
    found = facts()
    assert list(found["versions"]) == ["umix", "python", *needed]
    assert all(found["versions"].values())
    assert list(found["extras"]) == sorted(extras)
    assert {"torch", "pydantic"} <= set(needed)
    assert "transformers" in extras["hf"]


@pytest.mark.parametrize(
    ("text", "needed", "extras"),
    [
        ("skops<0.17,>=0.14", ["skops"], {}),
        ("vl-convert-python (>=1.6)", ["vl-convert-python"], {}),
        ('tomli>=2; python_version < "3.11"', ["tomli"], {}),
        ('psycopg[binary]>=3.1; extra == "postgresql"', [], {"postgresql": ["psycopg"]}),
        ("ray>=2.30; python_version < '3.14' and extra == 'ray'", [], {"ray": ["ray"]}),
        ("ruff>=0.6; extra == 'dev'", [], {}),
    ],
)
def test_a_requirement_belongs_to_umix_or_to_an_extra(
    text: str, needed: list[str], extras: dict[str, list[str]]
) -> None:
    assert requirements([text]) == (needed, extras)


def test_an_extra_is_installed_when_all_its_packages_are(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = ["torch; extra == 'a'", "numpy; extra == 'a'", "torch; extra == 'b'", "no-such-package; extra == 'b'"]
    monkeypatch.setattr(metadata, "requires", lambda name: texts)
    assert facts()["extras"] == {
        "a": f"{metadata.version('torch')}, {metadata.version('numpy')}",
        "b": "not installed: pip install 'umix[b]'",
    }


def test_a_copy_of_umix_that_is_not_installed_has_no_lists(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "requires", missing)
    assert list(facts()["versions"]) == ["umix", "python"]

"""The site as a reader opens it: from disk in a real browser, without a network; search, formulas, links and accessibility."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.system

#: A page of each kind, with pictures, code, a notebook, tables, signatures and formulas.
PAGES = (
    "index.html",
    "tutorials/own-loop.html",
    "how-to/python.html",
    "reference/api/data.html",
    "explanation/statistics.html",
)
#: Rules of Axe that another scheme or width can break.
COLOURS, SIZES = ["color-contrast", "link-in-text-block"], ["scrollable-region-focusable", "target-size"]
#: Tables are put into frames that scroll after the page is loaded.
SCROLLING = "[...document.querySelectorAll('.md-typeset table:not([class])')].every(one => one.closest('.md-typeset__scrollwrap'))"
WIDE, NARROW = {"width": 1300, "height": 900}, {"width": 390, "height": 800}


@pytest.fixture(scope="module")
def site(project: Path) -> Path:
    """The folder of the site, built as ``make docs`` builds it."""
    return project / "site"


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    """An empty page; at the end it has asked for nothing but files, and nothing has failed in it."""
    context, asked, complaints = browser.new_context(viewport=WIDE), [], []
    context.set_default_timeout(0)  # a busy machine takes its time
    page = context.new_page()
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    yield page
    context.close()
    assert asked
    assert [address for address in asked if not address.startswith(("file:", "data:", "blob:"))] == []
    assert complaints == []


def test_search_finds_pages_from_disk_and_its_results_open(site: Path, page: Any) -> None:
    page.goto((site / "index.html").as_uri())
    page.locator("input.md-search__input").click()
    page.locator(".md-search-result__meta", has_text="Type to start searching").wait_for()
    page.keyboard.insert_text("trajectory")  # at once: the search complains about single letters
    page.keyboard.press("End")
    result = page.locator(".md-search-result__item a").first
    result.wait_for()
    result.click()
    page.wait_for_url("**/*.html*h=trajectory*")
    assert "trajectory" in page.locator(".md-content").inner_text().lower()


def test_the_navigation_leads_to_the_kinds_of_pages_from_disk(site: Path, page: Any) -> None:
    page.goto((site / "index.html").as_uri())
    for kind, title in (
        ("Tutorials", "A table"),
        ("How-to", "Your own data"),
        ("Reference", "The command line"),
        ("Explanation", "Trajectory"),
    ):
        page.locator(".md-tabs__link", has_text=kind).click()
        assert title in page.locator("h1").inner_text()
    page.locator(".md-nav__link", has_text="Theory").click()
    page.wait_for_selector("mjx-container svg")
    assert page.locator("mjx-container").count() > 50
    assert page.locator("[data-mml-node=merror]").count() == 0
    page.set_viewport_size(NARROW)
    formulas = page.locator("div.arithmatex svg").all()
    assert formulas
    assert min(formula.bounding_box()["width"] for formula in formulas) > 200


@pytest.mark.parametrize(
    ("scheme", "size", "rules"), [("light", WIDE, None), ("dark", WIDE, COLOURS), ("light", NARROW, SIZES)]
)
def test_axe_finds_no_serious_fault(
    site: Path, browser: Any, scheme: str, size: dict[str, int], rules: list[str] | None
) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="Axe is not installed").Axe()
    context = browser.new_context(viewport=size, color_scheme=scheme)
    context.set_default_timeout(0)
    faults = []
    for name in PAGES:
        page = context.new_page()
        page.goto((site / name).as_uri())
        page.wait_for_function(SCROLLING)
        for found in axe.run(page, options={"runOnly": rules} if rules else None).response["violations"]:
            if found["impact"] in ("serious", "critical"):
                faults.append(f"{name}: {found['id']}: {found['nodes'][0]['html']}")
        assert page.evaluate("document.documentElement.scrollWidth") <= size["width"]
    context.close()
    assert faults == []

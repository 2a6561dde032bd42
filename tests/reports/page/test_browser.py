"""The page in a real browser: from disk, without a network, without an error; its table, legends and widths."""

import shutil
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from umix import report
from umix.bench.runs.record import RunRecord

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory, study: Callable[..., list[RunRecord]]) -> str:
    folder = tmp_path_factory.mktemp("study")
    study(folder)
    report(folder, folder / "report.html")
    return (folder / "report.html").as_uri()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    api = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
    if CHROMIUM is None:
        pytest.skip("there is no Chromium: install it with apt-get install chromium")
    with api.sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield found
        found.close()


class Visit:
    """An open page, what it asked for and what it complained about."""

    def __init__(self, browser: Any, address: str, **options: Any) -> None:
        self.requests: list[str] = []
        self.complaints: list[str] = []
        self.dialogs: list[str] = []
        self._context = browser.new_context(**{"viewport": {"width": 1440, "height": 900}, **options})
        self._context.route("**/*", self._route)
        self.page = self._context.new_page()
        self.page.on("console", lambda message: self.complaints.append(f"{message.type}: {message.text}"))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("dialog", self._dialog)
        self.page.goto(address)
        self.page.wait_for_selector(".chart svg")

    def _route(self, route: Any) -> None:
        self.requests.append(route.request.url)
        if route.request.url.startswith(("file:", "data:")):
            route.continue_()
        else:
            route.abort()

    def _dialog(self, dialog: Any) -> None:
        self.dialogs.append(dialog.message)
        dialog.dismiss()

    def see_everything(self) -> None:
        """Scroll to the end, so that every chart is drawn."""
        for chart in self.page.query_selector_all(".chart"):
            chart.scroll_into_view_if_needed()
        self.page.wait_for_function(
            "document.querySelectorAll('.chart svg').length === document.querySelectorAll('.chart').length"
        )

    def close(self) -> None:
        self._context.close()


@pytest.fixture
def visit(browser: Any, address: str) -> Iterator[Callable[..., Visit]]:
    visits: list[Visit] = []

    def open_page(**options: Any) -> Visit:
        visits.append(Visit(browser, address, **options))
        return visits[-1]

    yield open_page
    for one in visits:
        one.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1440, 390])
def test_every_chart_is_drawn_within_the_window_without_a_request_or_a_complaint(
    visit: Callable[..., Visit], address: str, width: int, scheme: str
) -> None:
    seen = visit(viewport={"width": width, "height": 900}, color_scheme=scheme)
    seen.see_everything()
    assert seen.complaints == []
    assert seen.dialogs == []
    assert {request for request in seen.requests if not request.startswith("data:")} == {address}
    assert seen.page.evaluate("document.documentElement.scrollWidth") == width


def test_the_table_sorts_by_keyboard_and_filters(visit: Callable[..., Visit]) -> None:
    page = visit().page
    table = page.locator("table.examples")

    def column(number: int) -> list[float]:
        cells = table.locator(f"tbody tr td:nth-child({number})")
        return [float(value) for value in cells.evaluate_all("cells => cells.map(cell => cell.dataset.value)")]

    assert column(5) == sorted(column(5), reverse=True)
    button = table.get_by_role("button", name="uncertainty")
    button.focus()
    page.keyboard.press("Enter")
    assert column(5) == sorted(column(5))
    assert table.locator("th[aria-sort=ascending]").inner_text().startswith("uncertainty")
    table.get_by_role("button", name="weight").click()
    assert column(6) == sorted(column(6), reverse=True)
    page.get_by_label("Filter").fill("RARE &")
    shown = table.locator("tbody tr:visible")
    assert 0 < shown.count() < table.locator("tbody tr").count()
    assert all("rare & <b>" in text for text in shown.all_inner_texts())
    page.get_by_label("Filter").fill("nothing has this")
    assert shown.count() == 0
    assert page.locator("[role=status]").inner_text() == "0 of 200"


def test_a_click_in_a_legend_shows_one_group_alone(visit: Callable[..., Visit]) -> None:
    page = visit().page
    chart = page.locator("figure", has_text="Average against worst group").locator(".chart")
    chart.scroll_into_view_if_needed()
    points = chart.locator(".mark-symbol.role-mark path")
    points.first.wait_for()
    faint = "paths => paths.filter(path => +(getComputedStyle(path).opacity) < 0.2).length"
    assert points.evaluate_all(faint) == 0
    chart.locator(".role-legend-symbol path").first.click()
    page.wait_for_timeout(300)
    assert points.evaluate_all(faint) == 3  # the mean and both seeds of the other method


def test_printed_pages_hold_the_charts(browser: Any, address: str) -> None:
    seen = Visit(browser, address)
    seen.page.emulate_media(media="print")
    seen.page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    seen.page.wait_for_function(
        "document.querySelectorAll('.chart svg').length === document.querySelectorAll('.chart').length"
    )
    assert len(seen.page.pdf()) > 20_000
    seen.close()

"""The page in a real browser: from disk, without a network, without an error; its charts, tables, themes, widths and print."""

import csv
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from umix import report
from umix.bench.runs.record import RunRecord
from umix.reports.page.page import template, threshold_html
from umix.reports.page.threshold import ThresholdGroup, ThresholdView

DRAWN = "Promise.all([...views.values()].map(view => view.runAsync())).then(() => true)"  # every chart shows the last change


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory, study: Callable[..., list[RunRecord]]) -> str:
    folder = tmp_path_factory.mktemp("study")
    study(folder)
    report(folder, folder / "report.html")
    return (folder / "report.html").as_uri()


class Visit:
    """An open page, what it asked for and what it complained about."""

    def __init__(self, browser: Any, address: str, **options: Any) -> None:
        self.requests: list[str] = []
        self.complaints: list[str] = []
        self.dialogs: list[str] = []
        self._context = browser.new_context(**{"viewport": {"width": 1440, "height": 900}, **options})
        self._context.set_default_timeout(0)  # a busy machine takes its time
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


OVERLAPS = """() => [...document.querySelectorAll(".chart svg")].flatMap((svg) => {
  const texts = [...svg.querySelectorAll("text")].filter((text) => text.textContent.trim());
  const boxes = texts.map((text) => text.getBoundingClientRect());
  const edge = svg.getBoundingClientRect();
  const cut = texts.filter((_, i) => boxes[i].right > edge.right + 1 || boxes[i].left < edge.left - 1);
  const meet = (a, b) =>
    Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1 && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 3;
  const met = texts.filter((_, i) => boxes.some((box, j) => i !== j && meet(boxes[i], box)));
  return [...cut, ...met].map((text) => text.textContent);
})"""


@pytest.mark.parametrize("width", [1440, 390])
def test_no_text_of_a_chart_is_cut_or_lies_over_another(visit: Callable[..., Visit], width: int) -> None:
    seen = visit(viewport={"width": width, "height": 900})
    seen.see_everything()
    seen.page.evaluate(DRAWN)
    assert seen.page.evaluate(OVERLAPS) == []
    assert seen.page.evaluate("Math.min(...[...views.values()].map(view => view.width()))") > 150  # the rest is labels


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
    assert page.locator("#filter-0-status").inner_text() == "0 of 200"


def test_a_legend_is_used_by_keyboard_and_makes_the_others_faint(visit: Callable[..., Visit]) -> None:
    page = visit().page
    figure = page.locator("figure", has_text="Average against worst group")
    points = figure.locator(".mark-symbol.role-mark path")
    points.first.wait_for()
    faint = "paths => paths.filter(path => +(getComputedStyle(path).opacity) < 0.2).length"
    assert points.evaluate_all(faint) == 0
    button = figure.get_by_role("button", name="erm")
    assert button.get_attribute("aria-pressed") == "false"
    button.focus()
    page.keyboard.press("Enter")
    page.evaluate(DRAWN)
    assert button.get_attribute("aria-pressed") == "true"
    assert points.evaluate_all(faint) == 3  # the mean and both seeds of the other method
    page.keyboard.press("Enter")
    page.evaluate(DRAWN)
    assert points.evaluate_all(faint) == 0


def test_whiskers_go_through_the_middle_of_their_dots(visit: Callable[..., Visit]) -> None:
    page = visit().page
    chart = page.locator("#chart-0-0")
    chart.locator("svg").wait_for()
    middles = (
        "marks => marks.map(mark => { const box = mark.getBoundingClientRect(); return box.top + box.height / 2; })"
    )
    whiskers = chart.locator(".mark-rule.role-mark line").evaluate_all(middles)
    dots = chart.locator(".mark-symbol.role-mark path").evaluate_all(middles)
    assert len(dots) == 6  # three groups, two methods
    assert all(min(abs(dot - whisker) for whisker in whiskers) < 1 for dot in dots)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_tooltip_names_its_fields_in_the_colours_of_the_page(visit: Callable[..., Visit], scheme: str) -> None:
    page = visit(color_scheme=scheme).page
    dot = page.locator("#chart-0-0 .mark-symbol.role-mark path").first
    dot.scroll_into_view_if_needed()
    dot.hover()
    tooltip = page.locator("#vg-tooltip-element.visible")
    tooltip.wait_for()
    keys = tooltip.locator("td.key")
    assert keys.all_inner_texts()[:3] == ["group", "method", "accuracy, %"]
    assert keys.evaluate_all("cells => Math.min(...cells.map(cell => cell.scrollWidth - cell.clientWidth))") <= 0
    assert keys.evaluate_all("cells => Math.max(...cells.map(cell => cell.getBoundingClientRect().width))") > 60
    assert tooltip.locator("td.value").nth(2).inner_text().count(".") == 1
    colours = "element => getComputedStyle(element).backgroundColor"
    assert tooltip.evaluate(colours) == page.locator("body").evaluate(colours)


def test_the_theme_can_be_chosen_and_the_system_decides_until_then(visit: Callable[..., Visit]) -> None:
    seen = visit(color_scheme="dark")
    page = seen.page
    background = "getComputedStyle(document.body).backgroundColor"
    dark = page.evaluate(background)
    page.get_by_role("button", name="Light").click()
    assert page.evaluate(background) == "rgb(255, 255, 255)" != dark
    assert page.get_by_role("button", name="Light").get_attribute("aria-pressed") == "true"
    page.emulate_media(color_scheme="light")
    page.get_by_role("button", name="Dark").click()
    assert page.evaluate(background) == dark
    page.get_by_role("button", name="Auto").click()
    assert page.evaluate(background) == "rgb(255, 255, 255)"
    assert seen.complaints == []


def test_the_navigation_stays_in_view_and_marks_the_section(visit: Callable[..., Visit]) -> None:
    page = visit().page
    page.get_by_role("link", name="Examples").click()
    nav = page.locator("nav.contents")
    nav.locator("[aria-current=true]", has_text="Examples").wait_for()
    assert nav.bounding_box()["y"] == 0
    assert page.locator("#examples-0").bounding_box()["y"] >= nav.bounding_box()["height"]


def test_every_table_sorts_and_can_be_saved_as_csv(visit: Callable[..., Visit]) -> None:
    page = visit().page
    box = page.locator("[aria-label='Uncertainty by group']")
    table = box.locator("table")
    sizes = table.locator("tbody tr td:nth-child(2)")
    table.get_by_role("button", name="n train").click()
    assert sizes.all_inner_texts() == ["360", "20", "20"]
    table.get_by_role("button", name="n train").click()
    assert sizes.all_inner_texts() == ["20", "20", "360"]
    assert table.locator("th[aria-sort=ascending]").count() == 1
    with page.expect_download() as saved:
        page.locator("[aria-label='Uncertainty by group'] + .csv").click()
    assert saved.value.suggested_filename == "by-group.csv"
    rows = list(csv.reader(Path(saved.value.path()).read_text(encoding="utf-8-sig").splitlines()))
    assert rows[0][:4] == ["group", "n train", "mean uncertainty", "never wrong, %"]
    assert {row[0] for row in rows[1:]} == {"common", "<script>alert(1)</script>", "rare & <b>"}
    assert float(rows[1][3]) >= 0


def test_a_thumbnail_opens_large_and_escape_closes_it(visit: Callable[..., Visit]) -> None:
    page = visit().page
    thumb = page.locator(".examples .thumb").first
    thumb.focus()
    page.keyboard.press("Enter")
    dialog = page.locator("dialog[open]")
    assert dialog.locator("img").bounding_box()["width"] > 300
    page.keyboard.press("Escape")
    assert dialog.count() == 0


def test_on_a_phone_every_cell_of_the_wide_tables_is_inside_the_window(visit: Callable[..., Visit]) -> None:
    seen = visit(viewport={"width": 390, "height": 844})
    seen.see_everything()
    rights = "cells => Math.max(...cells.map(cell => cell.getBoundingClientRect().right))"
    for selector in (".slices td", ".examples td", ".faces img", "figure", ".legend button", ".chart svg"):
        assert seen.page.locator(selector).evaluate_all(rights) <= 390, selector
    assert seen.page.locator(".slices td").first.evaluate("cell => getComputedStyle(cell, '::before').content") == (
        '"training examples of which"'
    )


def test_printed_charts_are_whole_titled_and_readable(browser: Any, address: str) -> None:
    seen = Visit(browser, address)
    seen.see_everything()
    seen.page.emulate_media(media="print")
    seen.page.set_viewport_size({"width": 703, "height": 1017})  # A4 without its margins
    seen.page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    seen.page.evaluate(DRAWN)
    figures = seen.page.evaluate(
        """() => [...document.querySelectorAll("figure:has(.chart)")].map((figure) => {
          const svg = figure.querySelector("svg.marks");
          const scale = svg.getBoundingClientRect().width / svg.viewBox.baseVal.width;
          const fontSize = (element) => parseFloat(getComputedStyle(element).fontSize);
          const sizes = [...svg.querySelectorAll("text")].map(fontSize);
          const box = figure.getBoundingClientRect();
          const words = [...figure.querySelectorAll("figcaption, .legend span")];
          return {
            title: figure.querySelector("h4").innerText,
            height: box.height,
            inside: svg.getBoundingClientRect().right <= box.right + 1 && box.right <= 704,
            points: 0.75 * Math.min(...sizes.map((size) => size * scale), ...words.map(fontSize)),
            breaks: getComputedStyle(figure).breakInside,
          };
        })"""
    )
    assert len(figures) == 8
    for figure in figures:
        assert figure["title"]
        assert figure["height"] < 1000
        assert figure["inside"]
        assert figure["breaks"] == "avoid"
        assert figure["points"] >= 8.95, figure
    seen.page.evaluate("window.dispatchEvent(new Event('afterprint'))")
    assert not seen.page.evaluate("document.documentElement.classList.contains('printing')")
    assert len(seen.page.pdf()) > 20_000
    seen.close()


def test_the_threshold_slider_moves_the_rates_by_keyboard(browser: Any, tmp_path: Path) -> None:
    hostile = '<script>alert("1")</script>'
    groups = (
        ThresholdGroup("all test examples", 40, (10, 5, 0, 0, 0, 13, 2, 0, 0, 0), (0, 0, 0, 0, 2, 0, 0, 0, 4, 4)),
        ThresholdGroup(hostile, 30, (10, 5, 0, 0, 0, 3, 2, 0, 0, 0), (0, 0, 0, 0, 2, 0, 0, 0, 4, 4)),
        ThresholdGroup("b", 10, (0, 0, 0, 0, 0, 10, 0, 0, 0, 0), (0,) * 10),
    )
    view = ThresholdView(("no", "yes"), tuple(k / 10 for k in range(11)), groups)
    html = f"<!doctype html><meta charset=utf-8><style>{template('style.css')}</style>{threshold_html(view)}"
    (tmp_path / "t.html").write_text(f"{html}<script>{template('threshold.js')}</script>", encoding="utf-8")
    page = browser.new_page()
    page.set_default_timeout(0)
    complaints: list[str] = []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("dialog", lambda dialog: complaints.append(dialog.message))
    page.goto((tmp_path / "t.html").as_uri())

    def cells(row: int) -> list[str]:
        return [
            text.replace("\u00a0", " ") for text in page.locator("tbody tr").nth(row).locator("td").all_inner_texts()
        ]

    assert page.locator("tbody th").all_inner_texts() == ["all test examples", hostile, "b"]
    assert cells(0) == ["40", "57.5 %", "–", "80.0 %", "50.0 %"]
    assert cells(1) == ["30", "76.7 %", "–", "80.0 %", "25.0 %"]
    assert cells(2) == ["10", "0.0 %", "–", "–", "100.0 %"]
    slider = page.get_by_label("Threshold", exact=True)
    slider.focus()
    page.keyboard.press("ArrowRight")
    assert slider.get_attribute("aria-valuetext") == page.locator("output").inner_text() == "0.60"
    assert cells(1) == ["30", "86.7 %", "+10.0", "80.0 %", "10.0 %"]
    assert cells(2) == ["10", "100.0 %", "+100.0", "–", "0.0 %"]
    assert page.locator(".overall").inner_text().replace("\u00a0", " ") == "Overall accuracy 90.0 %"
    expected = view.rates(view.groups[1], 6)
    assert f"{100 * (expected.accuracy or 0):.1f} %" == cells(1)[1]
    page.get_by_role("button", name="Back to 0.5").click()
    assert cells(0)[1:3] == ["57.5 %", "–"]
    assert complaints == []
    page.close()

"""Pictures of real reports for the tutorials: ``python docs/generate/report_pictures.py FOLDER``.

FOLDER holds ``table``, ``texts``, ``images`` and ``adult``, each with what its tutorial leaves: ``runs`` with ``report.html``.
Needs Chromium. A folder that is missing is passed over.
"""

import io
import shutil
import sys
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page, sync_playwright

FIGURES = Path(__file__).parent.parent / "figures"
WIDTH = 1100
EVERY_GROUP = "details:has(table.groups)"
#: For each picture the tutorial, the element that it begins with, and the one before which it ends.
PICTURES = {
    "tutorial-table-results": ("table", "#title-0", EVERY_GROUP),
    "tutorial-table-tried": ("table", "#tried-0", "#epochs-0"),
    "tutorial-table-fails": ("table", "#slices-0", "#flips-0"),
    "tutorial-texts-results": ("texts", "#title-0", EVERY_GROUP),
    "tutorial-texts-uncertain": ("texts", "#clusters-0", "#examples-0"),
    "tutorial-images-results": ("images", "#title-0", EVERY_GROUP),
    "tutorial-images-uncertain": ("images", "#clusters-0", "#examples-0"),
    "tutorial-adult-results": ("adult", "#title-0", EVERY_GROUP),
}


def picture(page: Page, begin: str, end: str) -> Image.Image:
    """The part of ``page`` from the element ``begin`` to the first of ``end``, in 128 colours."""
    top, bottom = (page.locator(one).first.evaluate("it => it.getBoundingClientRect().top") for one in (begin, end))
    clip = {"x": 0, "y": top - 12, "width": WIDTH, "height": bottom - top}
    content = page.screenshot(full_page=True, clip=clip)
    return Image.open(io.BytesIO(content)).convert("RGB").quantize(128, dither=Image.Dither.NONE)


def main(folder: Path) -> None:
    """Write the pictures of the tutorials that are in ``folder``."""
    with sync_playwright() as playwright:
        chromium = shutil.which("chromium") or "/usr/bin/chromium"
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for name, (tutorial, begin, end) in PICTURES.items():
            report = folder.resolve() / tutorial / "runs" / "report.html"
            if report.exists():
                page = browser.new_page(viewport={"width": WIDTH, "height": 900})
                page.goto(report.as_uri())
                page.wait_for_selector(".chart svg, .chart canvas")
                page.wait_for_timeout(500)
                picture(page, begin, end).save(FIGURES / f"{name}.png", optimize=True)
                page.close()
        browser.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]))

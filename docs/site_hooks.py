"""What mkdocs.yml cannot say: the pages of all methods in the navigation, and MathJax from an installed package."""

import re
from importlib.metadata import files
from pathlib import Path
from shutil import copyfile
from typing import Any

METHODS = "reference/methods/"
MATHJAX = "javascripts/mathjax.js"
#: What mkdocs-jupyter puts into the page of a notebook for an old MathJax, which is asked of a server unless its address is empty.
_OLD_MATHJAX = re.compile(
    r'<script src=""> </script>\n<!-- MathJax configuration -->.*?<!-- End of mathjax configuration -->', re.DOTALL
)


def on_config(config: Any) -> Any:
    """The configuration with the pages of the methods in the place of their folder."""
    pages = sorted(Path(config["docs_dir"], METHODS).glob("*.md"), key=lambda page: (page.stem != "index", page.stem))
    names = {page.stem: f"{METHODS}{page.name}" for page in pages}
    entries = [{"All methods" if name == "index" else name: path} for name, path in names.items()]
    config["nav"] = [_filled(entry, entries) for entry in config["nav"]]
    return config


def _filled(entry: Any, entries: list[dict[str, str]]) -> Any:
    if isinstance(entry, dict):
        return {title: entries if value == METHODS else _filled(value, entries) for title, value in entry.items()}
    return [_filled(one, entries) for one in entry] if isinstance(entry, list) else entry


def on_post_page(output: str, page: Any, config: Any) -> str:
    """The page with a name for the dialog of the search, which Material leaves out, and with MathJax if it has formulas."""
    output = output.replace(
        'data-md-component="search" role="dialog"', 'data-md-component="search" role="dialog" aria-label="Search"'
    )
    output = _OLD_MATHJAX.sub("", output)
    if 'class="arithmatex"' not in output:
        return output
    up = "../" * page.url.count("/")
    scripts = "".join(f'<script src="{up}{path}"></script>\n' for path in ("javascripts/formulas.js", MATHJAX))
    return output.replace("</body>", f"{scripts}</body>")


def on_post_build(config: Any) -> None:
    """Copy MathJax, one file with its fonts as paths, into the site."""
    (found,) = (path for path in files("sphinx-mathjax-offline") or () if path.name == "tex-svg.js")
    copyfile(str(found.locate()), Path(config["site_dir"], MATHJAX))

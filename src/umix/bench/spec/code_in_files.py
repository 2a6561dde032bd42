"""Code that a file names: a net or an estimator ``module:factory``. It is run only if the user says so.

Whoever types a name, on the command line or in Python, wants the module imported. A file may come from anywhere, and so may the
folder around it, so its names are refused before anything is imported.
"""

from collections.abc import Iterator
from typing import Any

from umix.errors import Part, Setting, UserError
from umix.models.registry import names_code


def refuse_code(content: Any, where: str, *, trust_code: bool) -> None:
    """Raise UserError if the tables of a file name a net that is code, in the settings of any part, task or method."""
    code = None if trust_code else next(filter(names_code, _net_names(content)), None)
    if code is not None:
        raise code_refused(code, where, ", or name it yourself with ", Setting("net", code))


def code_refused(name: str, where: str, *other_fix: Part) -> UserError:
    """The sentence that refuses the code ``name``, which a file names."""
    return UserError(
        f"{where} names the net {name}, which is code that umix would import from the current folder or an installed package and "
        "run; if you trust it, give ",
        Setting("trust_code", "True"),
        *other_fix,
        ".",
    )


def _net_names(content: Any, key: str = "", owner: str = "") -> Iterator[str]:
    """Every text in ``content`` that may be the name of a net: ``net``, ``net.name`` and ``net.among``, however they are nested."""
    if isinstance(content, dict):
        for name, value in content.items():
            *outer, last = str(name).split(".")
            yield from _net_names(value, last, outer[-1] if outer else key)
    elif isinstance(content, list | tuple):
        for value in content:
            yield from _net_names(value, key, owner)
    elif isinstance(content, str) and (key in ("net", "among") or (owner, key) == ("net", "name")):
        yield content

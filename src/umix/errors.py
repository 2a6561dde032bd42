"""Errors in the user's input: one sentence each; the command line prints it and exits with code 2."""

import difflib
import sysconfig
import traceback
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import final

_LISTED = 12  # a longer list of names is left out where a near name is proposed
_LONGEST = 200  # characters of another library's message


@final
@dataclass(frozen=True)
class Setting:
    """A setting that a message names, with an example or the offending value where that helps.

    As text it is what people write in Python. Commands show their flag instead, see ``commands/flag_names.py``.

    >>> str(Setting("groups")), str(Setting("drop", "city"))
    ('groups=', 'drop=city')
    """

    name: str
    value: str = ""

    def __str__(self) -> str:
        return f"{self.name}={self.value}"


class UserError(ValueError):
    """The user's input is wrong; the message is one sentence that names the thing, the rule, the value and the fix.

    The message is made of texts, settings and other user errors, whose messages are inserted.

    >>> error = UserError("The task has no groups; name their columns with ", Setting("groups"), ".")
    >>> str(error)
    'The task has no groups; name their columns with groups=.'
    >>> error.message(lambda setting: f"--{setting.name}")
    'The task has no groups; name their columns with --groups.'
    """

    def __init__(self, *parts: "Part") -> None:
        ValueError.__init__(self, *parts)  # kept as ``args``, so a pickled error has its parts too

    def __str__(self) -> str:
        return self.message(str)

    def message(self, spell: Callable[[Setting], str]) -> str:
        """The message with every setting written as ``spell`` writes it."""
        return "".join(_text(part, spell) for part in self.args)


#: What the message of a user error is made of.
Part = str | Setting | UserError


def _text(part: Part, spell: Callable[[Setting], str]) -> str:
    if isinstance(part, UserError):
        return part.message(spell)
    return spell(part) if isinstance(part, Setting) else part


def unknown(kind: str | tuple[Part, ...], name: object, known: Iterable[str]) -> UserError:
    """An error for a name that does not exist, with the nearest one that does.

    >>> str(unknown("method", "umx", ["erm", "umix"]))
    "Unknown method 'umx'; did you mean 'umix'? Known: erm, umix."
    """
    names = sorted(known)
    near = difflib.get_close_matches(str(name), names, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else "."
    listed = "" if near and len(names) > _LISTED else f" Known: {', '.join(names)}."
    parts = (kind,) if isinstance(kind, str) else kind
    return UserError("Unknown ", *parts, f" {str(name)!r}{hint}{listed}")


def cause(error: BaseException) -> str:
    """An exception of other code in one line: its type, its message, and where in the user's own code it was raised.

    >>> cause(KeyError("width"))
    "KeyError: 'width'"
    """
    says = error.msg if isinstance(error, SyntaxError) else str(error)
    words = " ".join(says.split()).rstrip(".")[:_LONGEST]
    place = _place(error)
    return type(error).__name__ + (f": {words}" if words else "") + (f" ({place[0]}, line {place[1]})" if place else "")


def _place(error: BaseException) -> tuple[str, int | None] | None:
    """File and line in the user's own code: not in umix, in Python or in an installed library."""
    if isinstance(error, SyntaxError) and error.filename and Path(error.filename).is_file():
        return error.filename, error.lineno
    paths = sysconfig.get_paths()
    others = (str(Path(__file__).parent), *(paths[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")))
    own = [at for at in traceback.extract_tb(error.__traceback__) if not at.filename.startswith((*others, "<"))]
    return (own[-1].filename, own[-1].lineno) if own else None

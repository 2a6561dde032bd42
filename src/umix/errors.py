"""What umix says when the user's input is wrong: one sentence, and exit code 2 on the command line."""

import difflib
import sysconfig
import traceback
from collections.abc import Iterable
from pathlib import Path

_LISTED = 12  # beside a good guess, a longer list of names only hides it
_LONGEST = 200  # characters of somebody else's message


class UserError(ValueError):
    """The user's input is wrong; the message is one sentence that names the thing, the rule, the value and the fix."""


def unknown(kind: str, name: object, known: Iterable[str]) -> UserError:
    """An error for a name that does not exist, with the nearest one that does.

    >>> str(unknown("method", "umx", ["erm", "umix"]))
    "Unknown method 'umx'; did you mean 'umix'? Known: erm, umix."
    """
    names = sorted(known)
    near = difflib.get_close_matches(str(name), names, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else "."
    listed = "" if near and len(names) > _LISTED else f" Known: {', '.join(names)}."
    return UserError(f"Unknown {kind} {str(name)!r}{hint}{listed}")


def cause(error: BaseException) -> str:
    """What code that is not ours raised, in one line: type, message, and the last line of people's own code on the way there.

    >>> cause(KeyError("width"))
    "KeyError: 'width'"
    """
    says = error.msg if isinstance(error, SyntaxError) else str(error)
    words = " ".join(says.split()).rstrip(".")[:_LONGEST]
    place = _place(error)
    return type(error).__name__ + (f": {words}" if words else "") + (f" ({place[0]}, line {place[1]})" if place else "")


def _place(error: BaseException) -> tuple[str, int | None] | None:
    """File and line in code that is neither umix's, nor Python's, nor that of installed libraries."""
    if isinstance(error, SyntaxError) and error.filename and Path(error.filename).is_file():
        return error.filename, error.lineno
    paths = sysconfig.get_paths()
    others = (str(Path(__file__).parent), *(paths[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")))
    own = [at for at in traceback.extract_tb(error.__traceback__) if not at.filename.startswith((*others, "<"))]
    return (own[-1].filename, own[-1].lineno) if own else None

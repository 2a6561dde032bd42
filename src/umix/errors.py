"""What umix says when the user's input is wrong: one sentence, and exit code 2 on the command line."""

import difflib
from collections.abc import Iterable

_LISTED = 12  # beside a good guess, a longer list of names only hides it


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

"""Errors whose message is one sentence: about the user's input (commands exit with code 2) or the machine (exit code 1)."""

import difflib
import re
import sysconfig
import traceback
import unicodedata
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import final

_LISTED = 12  # a longer list of known names is left out if the message proposes a similar name
_LONGEST = 200  # characters of another library's message
_LONGEST_SENTENCE = 290  # characters of a message, with room for "umix: " in a line of 300
_LONGEST_WORD = 64  # words of a message that is too long are shortened to this first: names, paths, values


@final
@dataclass(frozen=True)
class Setting:
    """A setting that a message names, optionally with an example value or the wrong value.

    As text it is written as in Python. Commands print the flag instead, see ``commands/flags.py``.

    >>> str(Setting("groups")), str(Setting("drop", "city"))
    ('groups=', 'drop=city')
    """

    name: str
    value: str = ""

    def __str__(self) -> str:
        return f"{self.name}={self.value}"


class UserError(ValueError):
    """The user's input is wrong; the message is one sentence that names the thing, the rule, the value and the fix.

    Args:
        parts: texts, settings and other user errors, whose messages are inserted.

    >>> error = UserError("The task has no groups; name their columns with ", Setting("groups"), ".")
    >>> str(error)
    'The task has no groups; name their columns with groups=.'
    >>> error.message(lambda setting: f"--{setting.name}")
    'The task has no groups; name their columns with --groups.'

    """

    def __init__(self, *parts: "Part") -> None:
        ValueError.__init__(self, *parts)  # stored in ``args``, so that a pickled error keeps its parts

    def __str__(self) -> str:
        return self.message(str)

    def message(self, spell: Callable[[Setting], str]) -> str:
        """The message on one line of at most 290 characters, with every setting written as ``spell`` writes it."""
        return one_line("".join(_text(part, spell) for part in self.args), longest=_LONGEST_SENTENCE)


class UmixWarning(UserWarning):
    """What people should know of their data or their run, where nothing is wrong enough to raise."""


@final
class MachineError(RuntimeError):
    """The machine cannot go on: no memory, a full disk, a folder that was removed. What is finished is kept.

    The message is one sentence of the same parts as that of a user error.
    """

    def __str__(self) -> str:
        return self.message(str)

    def message(self, spell: Callable[[Setting], str]) -> str:
        """The message with every setting written as ``spell`` writes it."""
        return "".join(_text(part, spell) for part in self.args)


#: A part of the message of a user error.
Part = str | Setting | UserError


def _text(part: Part, spell: Callable[[Setting], str]) -> str:
    if isinstance(part, UserError):
        return part.message(spell)
    return spell(part) if isinstance(part, Setting) else part


def one_line(text: str, *, longest: int | None = None) -> str:
    r"""``text`` on one line that a terminal can show: control characters and lone surrogates are written as escapes.

    If it is longer than ``longest`` characters, long words are shortened first, then the middle of the text is left out.

    >>> one_line("a\nb \x1b[31m")
    'a b \\x1b[31m'
    >>> one_line("cut " + 100 * "x" + " here", longest=90)
    'cut xxxxxxxxxxxxxxxxxxx…xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx here'
    """
    line = "".join(map(_shown, " ".join(text.split())))
    if longest is None or len(line) <= longest:
        return line
    line = re.sub(rf"\S{{{_LONGEST_WORD + 1},}}", lambda word: _without_middle(word[0], _LONGEST_WORD, end=0.7), line)
    return line if len(line) <= longest else _without_middle(line, longest, end=0.3)


def is_utf8(text: str) -> bool:
    r"""Whether ``text`` can be written to a file or a table: the name of a file need not be text, and Python keeps its bytes.

    >>> is_utf8("café"), is_utf8("caf\udce9")
    (True, False)
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _shown(character: str) -> str:
    """``character`` itself, or its escape if a terminal would not show it as one character of a line."""
    if character.isprintable() or unicodedata.category(character) not in ("Cc", "Cf", "Cs", "Zl", "Zp"):
        return character
    return character.encode("unicode_escape", "surrogatepass").decode("ascii")


def _without_middle(text: str, longest: int, *, end: float) -> str:
    """``text`` cut to ``longest`` characters, of which the share ``end`` is its end: the name in a path, the fix in a sentence."""
    kept = int(longest * end)
    return f"{text[: longest - kept - 1]}…{text[-kept:]}"


def unknown(kind: str | tuple[Part, ...], name: object, known: Iterable[str]) -> UserError:
    """An error for an unknown ``name``, which proposes the most similar known name.

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
    """An exception of other code in one line: its type, its message, and the place in the user's code that raised it.

    >>> cause(KeyError("width"))
    "KeyError: 'width'"
    """
    message = error.msg if isinstance(error, SyntaxError) else str(error)
    line = " ".join(message.split()).rstrip(".")[:_LONGEST]
    place = _place(error)
    return type(error).__name__ + (f": {line}" if line else "") + (f" ({place[0]}, line {place[1]})" if place else "")


def _place(error: BaseException) -> tuple[str, int | None] | None:
    """The last file and line of the traceback that is in the user's code: not in umix, Python or a library."""
    if isinstance(error, SyntaxError) and error.filename and Path(error.filename).is_file():
        return error.filename, error.lineno
    frames = [at for at in traceback.extract_tb(error.__traceback__) if is_users_code(at.filename)]
    return (frames[-1].filename, frames[-1].lineno) if frames else None


def is_users_code(filename: str) -> bool:
    """Whether code of this file is neither umix's, Python's nor a library's."""
    paths = sysconfig.get_paths()
    others = (str(Path(__file__).parent), *(paths[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")))
    return not filename.startswith((*others, "<"))

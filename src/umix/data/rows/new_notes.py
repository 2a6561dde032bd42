"""What is to be known of new data: counted block by block, said once."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import final

_SHOWN = 3  # values in a sentence


@final
@dataclass(frozen=True)
class Note:
    """A sentence about a block of new data; {count}, {of}, {share} and {values} in ``text`` stand for the other fields.

    >>> str(Note("{count} of {of} values are new: {values}.", count=2, of=9, values=("b", "a")))
    "2 of 9 values are new: 'a', 'b'."
    """

    text: str
    count: int = 0
    of: int = 0
    values: tuple[str, ...] = ()

    def __str__(self) -> str:
        values = ", ".join(map(repr, sorted(self.values)[:_SHOWN])) + (", …" if len(self.values) > _SHOWN else "")
        known = {"count": str(self.count), "of": str(self.of), "share": f"{self.count / max(1, self.of):.1%}"}
        text = self.text
        for name, value in {**known, "values": values}.items():
            text = text.replace(f"{{{name}}}", value)
        return text


@final
class NoteSum:
    """The notes of all blocks: those with the same text are added up. It takes the same memory for any number of blocks."""

    def __init__(self) -> None:
        self._notes: dict[str, Note] = {}

    def add(self, notes: Iterable[Note | str]) -> None:
        """Add the notes of a block; a text is a note that is said once."""
        for one in notes:
            note = Note(one) if isinstance(one, str) else one
            if known := self._notes.get(note.text):
                values = tuple(sorted({*known.values, *note.values})[: _SHOWN + 1])
                note = replace(known, count=known.count + note.count, of=known.of + note.of, values=values)
            self._notes[note.text] = note

    @property
    def sentences(self) -> tuple[str, ...]:
        """The sentences, in the order in which their notes first came; 0 of some is not said."""
        return tuple(str(note) for note in self._notes.values() if note.count or not note.of)

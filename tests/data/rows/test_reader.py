"""Notes about new data are added up over blocks."""

from umix.data.rows.reader import Note, NoteSum


def test_notes_of_the_same_text_are_added_up_and_others_are_said_once() -> None:
    total = NoteSum()
    for values in (("c", "a"), ("b", "e"), ("d",)):
        total.add(["No ids.", Note("{count} new {x} values: {values}.", len(values), values=values)])
        total.add([Note("{count} of {of} ({share}) are empty.", 1, of=4), Note("{count} of {of} are long.", 0, of=4)])
    assert total.sentences == (
        "No ids.",
        "5 new {x} values: 'a', 'b', 'c', ….",
        "3 of 12 (25.0%) are empty.",
    )

"""What a check of data has to say: one sentence about one thing, and what to do about it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, final

from umix.errors import Part, Setting, UserError

#: ``broken``: the data cannot be trained on. ``look``: they can, but a person should look at this first.
Severity = Literal["broken", "look"]
#: What is said of the data as a whole.
Verdict = Literal["fine", "look at this", "broken"]


@final
@dataclass(frozen=True)
class Finding:
    """One thing that somebody should know about their data before training.

    ``subject`` is what it is about: a column, a split, or ``groups`` and ``classes``. ``sentence`` says what was found, with its
    value. ``fix`` says what to do; its settings become flags on the command line.
    """

    severity: Severity
    subject: str
    sentence: Part
    fix: tuple[Part, ...] = ()

    @property
    def note(self) -> str:
        """The sentence alone, for the warnings of a run."""
        return str(self.sentence)

    def message(self, spell: Callable[[Setting], str] = str) -> str:
        """The sentence and the fix, with every setting written as ``spell`` writes it.

        >>> fix = ("Leave it out with ", Setting("drop", "id"), ".")
        >>> Finding("look", "id", "'id' names the row.", fix).message()
        "'id' names the row. Leave it out with drop=id."
        """
        return " ".join(text for text in (_spelled((self.sentence,), spell), _spelled(self.fix, spell)) if text)

    def as_json(self, spell: Callable[[Setting], str] = str) -> dict[str, str]:
        """The same for programs: four texts."""
        return {
            "severity": self.severity,
            "subject": self.subject,
            "sentence": _spelled((self.sentence,), spell),
            "fix": _spelled(self.fix, spell),
        }


def by_severity(findings: Sequence[Finding]) -> list[Finding]:
    """What is broken first; otherwise the order stays."""
    return sorted(findings, key=lambda finding: finding.severity != "broken")


def verdict(findings: Sequence[Finding]) -> Verdict:
    """What the findings come to.

    >>> verdict([]), verdict([Finding("look", "id", "'id' names the row.")])
    ('fine', 'look at this')
    """
    if any(finding.severity == "broken" for finding in findings):
        return "broken"
    return "look at this" if findings else "fine"


def _spelled(parts: tuple[Part, ...], spell: Callable[[Setting], str]) -> str:
    return UserError(*parts).message(spell)

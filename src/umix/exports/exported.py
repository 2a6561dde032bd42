"""What was exported: the files, what the model takes and gives, and how far it agrees with ``umix predict``."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

from umix.exports.check import Agreement
from umix.exports.formats import Format


@final
@dataclass(frozen=True)
class Exported:
    """An exported model. As text it is the sentences that ``umix export`` prints.

    ``path`` is the file or folder and ``files`` are all files. ``inputs`` and ``outputs`` say in words what the model takes and
    gives. ``not_included`` names what must be done before it. ``check`` is None for a card, which holds no model.
    """

    path: Path
    format: Format
    files: tuple[Path, ...]
    inputs: str = ""
    outputs: tuple[str, ...] = ()
    not_included: tuple[str, ...] = ()
    check: Agreement | None = None

    @property
    def size(self) -> int:
        """The bytes of all files."""
        return sum(file.stat().st_size for file in self.files)

    def as_json(self) -> dict[str, Any]:
        """What ``umix export --json`` prints."""
        agreed = self.check
        return {
            "output": str(self.path),
            "format": self.format,
            "files": [str(file) for file in self.files],
            "bytes": self.size,
            "inputs": self.inputs,
            "outputs": list(self.outputs),
            "not_included": list(self.not_included),
            "check": None
            if agreed is None
            else {"by": agreed.by, "difference": agreed.difference, "rows": agreed.rows},
        }

    def __str__(self) -> str:
        lines = [f"{self.path} written ({_bytes(self.size)})."]
        if self.inputs:
            lines[0] = (
                f"{self.path} written ({_bytes(self.size)}): takes {self.inputs}; gives {', '.join(self.outputs)}."
            )
        if self.check is not None:
            lines.append(self.check.sentence)
        lines += [f"Not included: {what}." for what in self.not_included]
        return "\n".join(lines)


def _bytes(size: int) -> str:
    """The size in words.

    >>> _bytes(812), _bytes(51_400), _bytes(94_000_000)
    ('812 bytes', '51 kB', '94.0 MB')
    """
    if size < 1000:
        return f"{size} bytes"
    return f"{size / 1e3:.0f} kB" if size < 1e6 else f"{size / 1e6:.1f} MB"

"""What is exported: the format that a path means, where it may be written, what was written and how far it agrees with predict."""

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal, final, get_args

from umix.core.words import counted
from umix.errors import Setting, UserError, unknown
from umix.store import atomic_write

Format = Literal["onnx", "pt2", "state_dict", "card", "mlflow"]
#: The format of a file by its suffix; a folder has none and is a state dict, unless it is said to be a model of MLflow.
SUFFIXES: dict[str, Format] = {".onnx": "onnx", ".pt2": "pt2", ".safetensors": "state_dict", ".md": "card"}
#: Every file that is exported holds these words, so that it may be overwritten by a newer export and by nothing else.
MARK = "umix export 1"


@final
@dataclass(frozen=True)
class Agreement:
    """The largest ``difference`` between a probability of the exported model, run ``by`` a library, and that of predict.

    ``rows`` is how many made-up rows were compared.
    """

    by: str
    difference: float
    rows: int

    @property
    def sentence(self) -> str:
        close = f"to {self.difference:.0e}" if self.difference else "exactly"
        return f"{self.by} agrees with umix predict {close} on {counted(self.rows, 'made-up row')}."


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


def format_of(output: Path, given: str | None = None) -> Format:
    """The format that is written to ``output``: the one ``given``, which must fit the suffix, or that of the suffix.

    >>> format_of(Path("model.onnx")), format_of(Path("folder")), format_of(Path("folder"), "mlflow")
    ('onnx', 'state_dict', 'mlflow')
    """
    if given is not None and given not in get_args(Format):
        raise unknown("format of an exported model", given, get_args(Format))
    suffix = "" if output.is_dir() else output.suffix.lower()
    if suffix and suffix not in SUFFIXES:
        raise UserError(
            Setting("output"),
            f" must end in {_or(list(SUFFIXES))}, or be a folder without a suffix, got {str(output)!r}.",
        )
    meant = SUFFIXES[suffix] if suffix else "mlflow" if given == "mlflow" else "state_dict"
    if given is not None and given != meant:
        ends = [ending for ending, name in SUFFIXES.items() if name == given]
        raise UserError(
            Setting("output"),
            f" must {'end in ' + ends[0] if ends else 'be a folder without a suffix'} for the format {given}, got "
            f"{str(output)!r}.",
        )
    return meant


def is_folder(output: Path) -> bool:
    """Whether ``output`` names a folder: one that is there, or a path without a suffix."""
    return output.is_dir() or not output.suffix


def _or(words: list[str]) -> str:
    return f"{', '.join(words[:-1])} or {words[-1]}"


def check_replaceable(path: Path) -> None:
    """Raise where ``path`` is there and was not exported by umix."""
    if path.is_dir() or (path.exists() and not _is_exported(path)):
        kind = "is a folder" if path.is_dir() else "is another file"
        raise UserError(
            f"{path} must be a new file or one that was exported before, but it {kind}; choose another place."
        )


def write_all(files: Mapping[Path, bytes]) -> None:
    """Write ``files``, each atomically; none is written where one of them may not be."""
    for path in files:
        check_replaceable(path)
    for path, content in files.items():
        atomic_write(path, content)


@contextmanager
def whole_folder(path: Path, *, marked: str) -> Iterator[Path]:
    """A folder that does not exist yet and becomes ``path`` when the block ends; if it raises, ``path`` is not changed.

    A ``path`` that exists must be empty, or hold the file ``marked`` of an earlier export.
    """
    if path.is_file() or (path.is_dir() and any(path.iterdir()) and not _is_exported(path / marked)):
        kind = "is a file" if path.is_file() else "holds something else"
        raise UserError(
            f"{path} must be a new folder or one that was exported before, but it {kind}; choose another place."
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=path.parent, prefix=f".{path.name}-") as aside:
        new = Path(aside) / "new"
        yield new
        if path.exists():
            shutil.rmtree(path)
        new.rename(path)


def _is_exported(path: Path) -> bool:
    return path.is_file() and MARK.encode() in path.read_bytes()

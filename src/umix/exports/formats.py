"""The formats of exported models, and which one a path means."""

from pathlib import Path
from typing import Literal, get_args

from umix.errors import Setting, UserError, unknown

Format = Literal["onnx", "pt2", "state_dict", "card", "mlflow"]
#: The format of a file by its suffix; a folder has none and is a state dict, unless it is said to be a model of MLflow.
SUFFIXES: dict[str, Format] = {".onnx": "onnx", ".pt2": "pt2", ".safetensors": "state_dict", ".md": "card"}


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

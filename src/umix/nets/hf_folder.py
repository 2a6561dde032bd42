"""The folder of a Hugging Face model: a local folder, or the snapshot of a hub name in the local cache."""

from functools import lru_cache
from pathlib import Path

from umix.errors import Setting, UserError
from umix.nets.library import library
from umix.nets.weight_files import files_hash

CONFIG, POOLING = "config.json", "1_Pooling/config.json"
_SAFE, _PICKLED = "model*.safetensors*", "pytorch_model*.bin*"


def is_local(model: str) -> bool:
    """Whether ``model`` is an existing folder, or looks like a path and not like a hub name."""
    return Path(model).expanduser().is_dir() or model.startswith((".", "/", "~")) or model.count("/") > 1


def folder_of(model: str, *, pretrained: bool) -> Path:
    """The folder with the configuration of ``model``, and with its weights if it is ``pretrained``.

    For a local folder the network is never used. A hub name is looked up in the local cache first, then downloaded.
    """
    if not is_local(model):
        return _snapshot(model, pretrained)
    folder = Path(model).expanduser()
    if not folder.is_dir():
        raise UserError(f"There is no folder {model} with a model (config.json, model.safetensors).")
    if not _complete(folder, pretrained):
        raise UserError(
            f"The folder {model} must hold config.json{' and model.safetensors' if pretrained else ''}, as save_pretrained writes "
            f"them; it does not."
        )
    return folder


def content_of(folder: Path, *, pretrained: bool) -> str:
    """A hash of the files that decide the model."""
    files = [folder / name for name in (CONFIG, POOLING) if (folder / name).is_file()]
    return files_hash([*files, *(_weights(folder) if pretrained else ())])


def _weights(folder: Path) -> list[Path]:
    return sorted(folder.glob(_SAFE)) or sorted(folder.glob(_PICKLED))


def _complete(folder: Path, pretrained: bool) -> bool:
    return (folder / CONFIG).is_file() and (not pretrained or bool(_weights(folder)))


@lru_cache(maxsize=16)
def _snapshot(model: str, pretrained: bool) -> Path:
    fetch = library("huggingface_hub", extra="hf").snapshot_download
    patterns = [CONFIG, POOLING, *([_SAFE] if pretrained else [])]
    try:
        folder = Path(fetch(model, allow_patterns=patterns, local_files_only=True))
        if _complete(folder, pretrained):
            return folder
    except Exception:  # noqa: S110 — not in the cache, or no such name: the download below tells
        pass
    try:
        folder = Path(fetch(model, allow_patterns=patterns))
        if pretrained and not _weights(folder):
            folder = Path(fetch(model, allow_patterns=[*patterns, _PICKLED]))
    except Exception as error:  # the network has many ways to fail
        missing = type(error).__name__ in ("RepositoryNotFoundError", "HFValidationError")
        why = "the hub has no public model of that name" if missing else "the hub cannot be reached"
        raise UserError(
            f"The model {model} is neither a folder nor in the local cache of the Hugging Face hub, and {why}; give a local folder "
            "with ",
            Setting("net", "hf:FOLDER"),
            ".",
        ) from None
    if not _complete(folder, pretrained):
        raise UserError(f"The model {model} of the Hugging Face hub must hold config.json and weights; it does not.")
    return folder

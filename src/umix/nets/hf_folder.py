"""The folder of a Hugging Face model: a local folder, or the snapshot of a hub name in the local cache.

Weights are safetensors. Pickled ones are refused, because a pickle is code.
"""

from functools import lru_cache
from pathlib import Path

from umix.errors import Setting, UserError
from umix.nets.hf_config import check_config, read_json
from umix.nets.library import library
from umix.nets.weight_files import files_hash

CONFIG, POOLING = "config.json", "1_Pooling/config.json"
_SAFE, _PICKLED, _SHARDS = "model*.safetensors*", "pytorch_model*.bin*", "model.safetensors.index.json"


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
    return _checked(folder, model, pretrained)


def content_of(folder: Path, *, pretrained: bool) -> str:
    """A hash of the files that decide the model."""
    files = [folder / name for name in (CONFIG, POOLING) if (folder / name).is_file()]
    return files_hash([*files, *(_weights(folder) if pretrained else ())])


def _weights(folder: Path) -> list[Path]:
    return sorted(path for path in folder.glob(_SAFE) if path.is_file())


def _complete(folder: Path, pretrained: bool) -> bool:
    return (folder / CONFIG).is_file() and (not pretrained or bool(_weights(folder)))


def _checked(folder: Path, model: str, pretrained: bool) -> Path:
    """``folder``; raises UserError if it does not hold the files of a model, or if they are pickled or cannot be read."""
    if not _complete(folder, pretrained):
        if pretrained and next(folder.glob(_PICKLED), None) is not None:
            raise UserError(
                f"The weights of {model} must be model.safetensors, but they are pickled, and a pickle may run code; if you trust "
                "them, load the model with transformers and save it again with save_pretrained."
            )
        raise UserError(
            f"The folder {model} must hold config.json{' and model.safetensors' if pretrained else ''}, as save_pretrained writes "
            f"them; it does not."
        )
    check_config(folder / CONFIG)
    if pretrained and (folder / _SHARDS).is_file():
        _check_shards(folder / _SHARDS)
    return folder


def _check_shards(path: Path) -> None:
    """Raise UserError if an index of shards names anything but safetensors files beside it."""
    shards = read_json(path).get("weight_map")
    names = shards.values() if isinstance(shards, dict) else [None]
    for name in names:
        if not isinstance(name, str) or Path(name).name != name or not name.endswith(".safetensors"):
            raise UserError(
                f"{path} must name safetensors files of its folder, got {name!r}; download the model again."
            )


@lru_cache(maxsize=16)
def _snapshot(model: str, pretrained: bool) -> Path:
    fetch = library("huggingface_hub", extra="hf").snapshot_download
    patterns = [CONFIG, POOLING, *([_SAFE] if pretrained else [])]
    try:
        folder = Path(fetch(model, allow_patterns=patterns, local_files_only=True))
        if _complete(folder, pretrained):
            return _checked(folder, model, pretrained)
    except UserError:
        raise
    except Exception:  # noqa: S110 — not in the cache, or no such name: the download below tells
        pass
    try:
        folder = Path(fetch(model, allow_patterns=patterns))
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
        raise UserError(
            f"The model {model} of the Hugging Face hub must hold config.json{' and model.safetensors' if pretrained else ''}; it "
            "does not."
        )
    return _checked(folder, model, pretrained)

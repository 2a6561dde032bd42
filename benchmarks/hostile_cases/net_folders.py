"""Folders of pretrained nets and files of weights: incomplete, of another net, or pickled with code."""

import io
import json
import pickle
import shutil
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import polars
import torch

from hostile_cases.case import CANARY, Case, Maker
from hostile_cases.document_mutations import any_value, one_of

RUN = ["--set", "fit.epochs=1", "--set", "fit.batch_size=64", "-q"]


class _Code:
    """Unpickling it would run code."""

    def __reduce__(self) -> Any:
        return exec, (f"import os; open(os.environ[{CANARY!r}], 'a').write('run')",)


@cache
def _models() -> Path:
    """A folder with a tiny ResNet and ViT, a tiny DistilBERT with its tokenizer, and weights of a net of MONAI."""
    import monai.networks.nets
    import transformers
    from safetensors.torch import save_file
    from tokenizers import Tokenizer, models, pre_tokenizers

    transformers.utils.logging.disable_progress_bar()
    folder = Path(tempfile.mkdtemp(prefix="hostile-models-"))
    images = transformers.ResNetConfig(embedding_size=4, hidden_sizes=[4, 8], depths=[1, 1], layer_type="basic")
    sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8}
    patches = transformers.ViTConfig(**sizes, image_size=16, patch_size=8)
    texts = transformers.DistilBertConfig(
        dim=8, n_layers=1, n_heads=2, hidden_dim=8, vocab_size=12, max_position_embeddings=12, pad_token_id=0
    )
    for name, config in (("resnet", images), ("vit", patches), ("bert", texts)):
        transformers.AutoModel.from_config(config).save_pretrained(folder / name)
    pad, unknown = "[PAD]", "[UNK]"
    words = {pad: 0, unknown: 1, "one": 2, "two": 3, "three": 4, "four": 5}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token=unknown))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token=pad, unk_token=unknown).save_pretrained(
        folder / "bert"
    )
    net = monai.networks.nets.resnet10(spatial_dims=2, n_input_channels=3, num_classes=2)
    save_file(net.state_dict(), folder / "monai.safetensors")
    torch.save(net.state_dict(), folder / "monai.pt")
    return folder


def _data(folder: Path, kind: str) -> list[str]:
    """The flags of a task of a few rows that a net of this kind takes."""
    rng, n = np.random.default_rng(0), 16
    y = np.arange(n) % 2
    if kind != "bert":
        np.savez(folder / "x.npz", x=rng.random((n, 3, 16, 16), dtype=np.float32), y=y)
        return ["x.npz", "erm", "--label", "y"]
    polars.DataFrame({"text": ["one two", "three four"] * (n // 2), "y": y}).write_csv(folder / "x.csv")
    return ["x.csv", "erm", "--label", "y", "--text", "text"]


def _case(folder: Path, kind: str, what: str, rng: np.random.Generator, *more: str) -> Case:
    options = (
        ("--freeze",) if rng.integers(4) == 0 else ("--set", "net.pretrained=false") if rng.integers(5) == 0 else ()
    )
    return Case(f"{kind}: {what}", ["run", *_data(folder, kind), "--net", "hf:net", *options, *RUN, *more])


def _copied(folder: Path, rng: np.random.Generator) -> tuple[Path, str]:
    kind = str(rng.choice(["resnet", "vit", "vit", "bert", "bert"]))  # convolutions take longest
    return shutil.copytree(_models() / kind, folder / "net"), kind


def file_damaged(folder: Path, rng: np.random.Generator) -> Case:
    """A folder one of whose files is missing, cut or empty."""
    net, kind = _copied(folder, rng)
    path = one_of(rng, sorted(path for path in net.iterdir() if path.is_file()))
    content = path.read_bytes()
    what = one_of(rng, ("missing", "cut", "empty"))
    path.write_bytes(content[: int(rng.integers(len(content)))] if what == "cut" else b"")
    if what == "missing":
        path.unlink()
    return _case(folder, kind, f"{path.name} {what}", rng)


def code_in_folder(folder: Path, rng: np.random.Generator) -> Case:
    """A folder with code of its own: named in the configuration, pickled in the weights, or lying beside them."""
    net, kind = _copied(folder, rng)
    source = f"import os\nopen(os.environ[{CANARY!r}], 'a').write('run')\n"
    for name in ("modeling", "configuration", "tokenization", "setup", "__init__"):
        (net / f"{name}.py").write_text(source + "class Net: pass\nclass Config: pass\nclass Tokenizer: pass\n")
    how = int(rng.integers(4))
    what = "pickled weights"
    if how in (0, 1):
        name = one_of(rng, ("config.json", "tokenizer_config.json"))
        path = net / name
        config = json.loads(path.read_text()) if path.exists() else {}
        config["auto_map"] = {
            "AutoModel": "modeling.Net",
            "AutoConfig": "configuration.Config",
            "AutoTokenizer": one_of(rng, ("tokenization.Tokenizer", ["tokenization.Tokenizer", None])),
        }
        if rng.integers(2):
            config |= {"model_type": "own", "tokenizer_class": "Own"}
        path.write_text(json.dumps(config | {"trust_remote_code": True}))
        what = f"auto_map in {name}"
    if how >= 1:
        for weights in net.glob("*.safetensors"):
            if rng.integers(4):
                weights.unlink()
        pickled = one_of(rng, (pickle.dumps({"a": _Code()}), _torch_file({"a": _Code()}), _torch_file(_Code())))
        (net / one_of(rng, ("pytorch_model.bin", "pytorch_model.bin", "model.safetensors", "tf_model.h5"))).write_bytes(
            pickled
        )
        if rng.integers(4) == 0:
            index = {"weight_map": {"a": "pytorch_model.bin", "b": "../../x.bin"}}
            (net / one_of(rng, ("pytorch_model.bin.index.json", "model.safetensors.index.json"))).write_text(
                json.dumps(index)
            )
    return _case(folder, kind, what, rng)


def _torch_file(content: Any) -> bytes:
    made = io.BytesIO()
    torch.save(content, made)
    return made.getvalue()


def weights_file(folder: Path, rng: np.random.Generator) -> Case:
    """``net.weights`` of a net of MONAI: damaged, of other shapes, pickled with code, or no file."""
    name = one_of(rng, ("w.safetensors", "w.pt", "w.bin", "w"))
    whole = (_models() / ("monai.safetensors" if name == "w.safetensors" else "monai.pt")).read_bytes()
    tensors = torch.load(_models() / "monai.pt", weights_only=True)
    first = next(iter(tensors))
    how = int(rng.integers(7))
    what = "whole"
    content: bytes = whole
    if how == 0:
        content, what = whole[: int(rng.integers(len(whole)))], "cut"
    elif how == 1:
        content, what = pickle.dumps(one_of(rng, (_Code(), {"a": _Code()}, [1], "x"))), "pickle"
    elif how == 2:
        content, what = (
            _torch_file(one_of(rng, (_Code(), {"a": _Code()}, {first: _Code()}, [1], {1: 2}, {"a": 1}))),
            "objects",
        )
    elif how == 3:
        content, what = (
            _torch_file(tensors | {first: one_of(rng, (torch.zeros(3), torch.zeros(()), torch.zeros(0)))}),
            "shapes",
        )
    elif how == 4:
        content, what = _torch_file({"state_dict": tensors}), "nested"
    elif how == 5:
        nan = {
            key: torch.full_like(value, torch.nan) if value.is_floating_point() else value
            for key, value in tensors.items()
        }
        content, what = _torch_file(nan), "all NaN"
    (folder / name).write_bytes(content)
    given = one_of(rng, (name, name, name, ".", "nowhere", "/dev/null", "", json.dumps(any_value(rng))[:1000]))
    data = _data(folder, "resnet")
    argv = ["run", *data, "--net", "monai:resnet10", "--set", f"net.weights={given}", "--freeze", *RUN]
    return Case(f"{name} {what}, given {given[:30]!r}", argv)


MAKERS: tuple[Maker, ...] = (file_damaged, code_in_folder, weights_file)

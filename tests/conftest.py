"""Data that many tests share."""

import shutil
import sys
import tomllib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
import torch
from hypothesis import settings

from umix.data.benchmarks.four_moons import FourMoons
from umix.data.task import Task
from umix.nets.mlp import MLP
from umix.training.fit_settings import FitSettings
from umix.training.trainer import Trainer

# The same examples in every run: a suite that fails now and then teaches people to ignore it.
settings.register_profile("umix", derandomize=True, deadline=None)
settings.load_profile("umix")


@pytest.fixture(autouse=True, scope="session")
def one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def moons() -> Task:
    return FourMoons(sizes=(60, 10, 10, 60), eval_size=20).load()


@pytest.fixture
def trainer(moons: Task) -> Callable[..., Trainer]:
    """Makes trainers that differ only in what a test says."""

    def make(**changes: object) -> Trainer:
        directory = changes.get("directory")
        if isinstance(directory, Path):
            changes.setdefault("cache", directory / "stages")
        settings = FitSettings(**{"epochs": 4, "lr": 0.05, "batch_size": 32, **changes.pop("fit", {})})
        return Trainer(**{"task": moons, "net": MLP(hidden=(16,)), "settings": settings, **changes})

    return make


@pytest.fixture(scope="session")
def tiny_bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A DistilBERT of one layer with a WordPiece tokenizer, as they lie in a folder of the hub; texts of up to 16 tokens."""
    import transformers
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

    folder = tmp_path_factory.mktemp("models") / "tiny-bert"
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "good", "bad", "the", "film", "was", "##s", ",", "!"]
    inner = Tokenizer(models.WordPiece({word: i for i, word in enumerate(words)}, unk_token="[UNK]"))  # noqa: S106
    inner.normalizer, inner.pre_tokenizer = normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer()
    inner.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    marks = {"unk_token": "[UNK]", "pad_token": "[PAD]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    transformers.PreTrainedTokenizerFast(tokenizer_object=inner, model_max_length=16, **marks).save_pretrained(folder)
    config = transformers.DistilBertConfig(
        dim=8, n_layers=1, n_heads=2, hidden_dim=8, vocab_size=len(words), max_position_embeddings=16, pad_token_id=0
    )
    transformers.utils.logging.disable_progress_bar()
    with torch.random.fork_rng():
        torch.manual_seed(0)
        transformers.AutoModel.from_config(config).save_pretrained(folder)
    return folder


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """Installs packages into a folder of sys.path as pip would: modules, and metadata with entry points."""
    site, modules = tmp_path / "site", set(sys.modules)
    site.mkdir()

    def write(name: str, entry_points: Mapping[str, Mapping[str, str]], version: str = "1.0", **files: str) -> None:
        info = site / f"{name.replace('-', '_')}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        sections = (
            [f"[{group}]", *(f"{key} = {value}" for key, value in each.items())] for group, each in entry_points.items()
        )
        (info / "entry_points.txt").write_text("\n".join(line for section in sections for line in section) + "\n")
        for module, text in files.items():
            (site / f"{module}.py").write_text(text)
        monkeypatch.setattr(sys, "path", [str(site), *(path for path in sys.path if path != str(site))])

    yield write
    for module in set(sys.modules) - modules:
        if str(getattr(sys.modules[module], "__file__", None) or "").startswith(str(site)):
            del sys.modules[module]


@pytest.fixture
def example_plugin(install: Callable[..., None], tmp_path: Path) -> Path:
    """The folder of the package of examples/plugin, which is installed."""
    folder = Path(__file__).parents[1] / "examples" / "plugin"
    project = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for package in (folder / "src").iterdir():
        shutil.copytree(package, tmp_path / "site" / package.name, ignore=shutil.ignore_patterns("__pycache__"))
    install(project["name"], project["entry-points"], project["version"])
    return folder


#: Folders and files whose tests train runs, start processes or open a browser. ``make check`` leaves them out.
SLOW = (
    "adapters",
    "api",
    "bench/executors",
    "bench/loggers",
    "bench/runs",
    "bench/search",
    "bench/study",
    "bench/test_predict.py",
    "commands",
    "contract",
    "data/benchmarks",
    "data/tables/test_preprocessing.py",
    "identities",
    "methods",
    "nets/test_hf.py",
    "nets/test_providers.py",
    "reports/charts/test_theory_figures.py",
    "reports/page",
    "test_benchmarks.py",
    "test_cli.py",
    "test_docs.py",
    "test_readme.py",
    "test_registry.py",
    "theory",
    "training/test_parallel.py",
    "training/test_trainer.py",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if item.path.is_relative_to(here) and item.path.relative_to(here).as_posix().startswith(SLOW):
            item.add_marker("slow")

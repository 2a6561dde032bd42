"""Data that many tests share."""

import os
import shutil
import sys
import tomllib
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import pytest

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before anything reads it: several tests run at once, each in one thread

import torch
from hypothesis import HealthCheck, settings

from umix.bench.executors.processes import worker_context
from umix.checkpoint_pace import CheckpointTimer
from umix.data.benchmarks.four_moons import FourMoons
from umix.data.task import Task
from umix.models.mlp import MLP
from umix.training.context import Context
from umix.training.fit_settings import FitSettings

# The same examples in every run, however long they take: a suite that fails now and then teaches people to ignore it.
settings.register_profile(
    "umix", derandomize=True, deadline=None, max_examples=40, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("umix")


@pytest.fixture(autouse=True, scope="session")
def one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def same_draws() -> None:
    """What a test draws from torch's global generator does not depend on the tests before it."""
    torch.manual_seed(0)


@pytest.fixture(autouse=True, scope="session")
def no_clock() -> Iterator[None]:
    """In this process checkpoints do not depend on how fast a fit is: the clock that says when they are due stands still.

    Files are not waited for until the disk has them: they need not survive a power cut.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("umix.training.fit.CheckpointTimer", partial(CheckpointTimer, clock=lambda: 0.0))
        patch.setattr("os.fsync", lambda descriptor: None)
        yield


@pytest.fixture(autouse=True)
def few_penalties(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The regression that tells groups tries two penalties instead of seven, but in its own tests."""
    if request.path.stem != "test_attribute_model":
        monkeypatch.setattr("umix.methods.parts.attribute_model._STRENGTHS", (0.01, 0.3))


@pytest.fixture(scope="session")
def moons() -> Task:
    return FourMoons(sizes=(60, 10, 10, 60), eval_size=20).load()


@pytest.fixture
def context(moons: Task) -> Callable[..., Context]:
    """Makes contexts that differ only in what a test says."""

    def make(**changes: object) -> Context:
        directory = changes.get("directory")
        if isinstance(directory, Path):
            changes.setdefault("cache", directory / "stages")
        settings = FitSettings(**{"epochs": 4, "lr": 0.05, "batch_size": 32, **changes.pop("fit", {})})
        return Context(**{"task": moons, "net": MLP(hidden=(16,)), "settings": settings, **changes})

    return make


APART = """
import os
import signal
import torch
os.setsid()
torch.set_num_threads(1)  # as in the tests' own process: sums depend on their number
signal.signal(signal.SIGINT, signal.default_int_handler)  # tests that run in the background ignore it
signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})  # workers block it
for place, file in enumerate(files, start=1):
    os.dup2(os.open(file, os.O_WRONLY | os.O_CREAT), place)
"""


@pytest.fixture(scope="session")
def start_program() -> Iterator[Callable[..., BaseProcess]]:
    """Starts the text of a program, which knows ``values`` as global names, in a process and session of its own.

    On Linux it is a fork of a server that has imported what a run needs, which takes milliseconds, not seconds. Its
    output goes to the file ``output``, its errors to ``output.err``. What still runs at the end is killed.
    """
    context = worker_context()
    started: list[BaseProcess] = []

    def start(program: str, *, output: Path | None = None, **values: object) -> BaseProcess:
        files = ("/dev/null", "/dev/null") if output is None else (str(output), f"{output}.err")
        started.append(context.Process(target=exec, args=(APART + program, {"files": files, **values})))
        started[-1].start()
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.join()


@pytest.fixture(scope="session")
def start_umix(start_program: Callable[..., BaseProcess]) -> Callable[..., BaseProcess]:
    """Starts ``umix ARGUMENTS`` as ``start_program`` does."""

    def start(*arguments: str, output: Path | None = None) -> BaseProcess:
        program = "import sys; from umix.cli import main; sys.exit(main(arguments))"
        return start_program(program, output=output, arguments=list(arguments))

    return start


#: One of two processes, as torchrun starts them.
ONE_OF_TWO = """
import runpy, socket, sys, time, warnings
from pathlib import Path
warnings.simplefilter(warn)
port = Path(port)
if rank == 0:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port.with_suffix(".new").write_text(str(free.getsockname()[1]))
    port.with_suffix(".new").rename(port)
while not port.exists():
    time.sleep(0.01)
os.environ.update(dict.fromkeys(("RANK", "LOCAL_RANK"), str(rank)), WORLD_SIZE="2", LOCAL_WORLD_SIZE="2", GROUP_RANK="0")
os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=port.read_text(), TORCHELASTIC_RUN_ID="test")
sys.argv = arguments
runpy.run_path(arguments[0], run_name="__main__")
"""


@pytest.fixture(scope="session")
def run_in_two(start_program: Callable[..., BaseProcess]) -> Callable[..., str]:
    """Runs ``script FOLDER ARGUMENTS`` in two processes; what the first that failed said, empty if none did."""

    def run(script: Path, folder: Path, *arguments: str, warn: str = "default") -> str:
        folder.mkdir(parents=True, exist_ok=True)
        values = {"arguments": [str(script), str(folder), *arguments], "port": str(folder / "port"), "warn": warn}
        said = [folder / f"said-{rank}" for rank in range(2)]
        running = [start_program(ONE_OF_TWO, output=said[rank], rank=rank, **values) for rank in range(2)]
        while any(process.is_alive() for process in running) and not any(process.exitcode for process in running):
            wait([process.sentinel for process in running if process.is_alive()])
        failed = [
            f"{each.exitcode}: {said[rank].with_suffix('.err').read_text()}"
            for rank, each in enumerate(running)
            if each.exitcode
        ]
        for process in running:
            process.kill()  # it may wait for one that has failed
            process.join()
        return failed[0] if failed else ""

    return run


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A headless Chromium; without one the test is skipped."""
    api = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
    found = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if found is None:
        pytest.skip("there is no Chromium: install it with apt-get install chromium")
    with api.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture(scope="session")
def tiny_bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A DistilBERT of one layer with a WordPiece tokenizer, as they lie in a folder of the hub; texts of up to 16 tokens."""
    transformers = pytest.importorskip("transformers")
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


#: Fixtures that start processes, or need a browser, a disk to fill or a library of an extra.
SYSTEM = {"browser", "cluster", "disk", "run_in_two", "start_program", "tiny_bert"}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if isinstance(item, pytest.Function) and SYSTEM.intersection(item.fixturenames):
            item.add_marker("system")

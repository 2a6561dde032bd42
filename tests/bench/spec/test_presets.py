"""Presets have the paper's values, and fit settings of one method override those for all methods."""

from pathlib import Path

import pytest

from umix.bench.runs.execute import execute
from umix.bench.spec.presets import preset, presets_of, write_preset
from umix.bench.spec.run_spec import RunSpec
from umix.data.benchmarks.four_moons import FourMoons
from umix.data.registry import OWN, TASKS
from umix.errors import UserError
from umix.methods.registry import METHODS
from umix.models.mlp import MLP


def plan(task, method, preset="paper", **settings):
    return RunSpec(task=task, method=method, preset=preset, settings=settings).plan


@pytest.mark.parametrize("preset", ["paper", "reference"])
@pytest.mark.parametrize(
    ("task", "second", "first", "weights", "mixing"),
    [
        ("waterbirds", (1e-5, 1, 64, 300), (1e-5, 1, 64), (50, 50, 80), ("input", 0.5, 0.5)),
        ("celeba", (1e-4, 1e-4, 128, 20), (1e-5, 0.1, 128), (0, 5, 50), ("cutmix", 1.5, 0.5)),
        ("camelyon17", (1e-5, 1e-2, 32, 5), (1e-3, 1e-2, 32), (0, 5, 5), ("input", 0.5, 1)),
    ],
)
def test_umix_has_the_settings_of_the_papers_two_tables(task, preset, second, first, weights, mixing):
    got = plan(task, "umix", preset)
    fit, stage, method = got.fit, got.stages["trajectory"], got.method
    assert (fit.lr, fit.weight_decay, fit.batch_size, fit.epochs) == second
    assert (fit.optimizer, fit.momentum, stage["optimizer"]) == ("sgd", 0.9, "sgd")
    assert (stage["lr"], stage["weight_decay"], stage["batch_size"]) == first
    assert (method.start, method.length, method.eta) == weights
    assert (method.mixing, method.alpha, method.sigma) == mixing
    assert (method.normalize, method.c) == (False, 1)


@pytest.mark.parametrize(("task", "epochs"), [("waterbirds", 300), ("celeba", 50), ("camelyon17", 5)])
def test_the_released_scripts_say_how_long_the_first_stage_is(task, epochs):
    assert plan(task, "umix", "reference").stages["trajectory"]["epochs"] == epochs
    assert "epochs" not in plan(task, "umix").stages["trajectory"]


def test_a_methods_own_fit_settings_go_over_those_for_all_and_under_those_of_the_user():
    own, all_, users = (
        plan("waterbirds", "group_dro"),
        plan("waterbirds", "erm"),
        plan("waterbirds", "group_dro", lr=0.5),
    )
    assert (own.fit.lr, own.fit.weight_decay, own.fit.batch_size, own.fit.epochs) == (1e-3, 1e-4, 128, 300)
    assert (all_.fit.lr, all_.fit.batch_size) == (1e-5, 64)
    assert (users.fit.lr, users.fit.batch_size) == (0.5, 128)


def test_jtt_has_a_first_stage_of_its_own():
    got = plan("celeba", "jtt")
    assert (got.method.identification_epochs, got.method.upweight) == (1, 50)
    assert (got.fit.lr, got.fit.epochs, got.stages["trajectory"]["weight_decay"]) == (1e-5, 50, 0.1)
    assert plan("waterbirds", "jtt").stages == {}


def test_planning_does_not_change_the_preset():
    before = repr(presets_of("waterbirds"))
    plan("waterbirds", "umix", eta=1)
    assert repr(presets_of("waterbirds")) == before


@pytest.mark.parametrize("preset", ["paper", "reference"])
@pytest.mark.parametrize(
    ("task", "net", "pretrained"),
    [
        ("waterbirds", "hf:microsoft/resnet-50", True),
        ("celeba", "hf:microsoft/resnet-50", True),
        ("camelyon17", "monai:DenseNet121", False),
    ],
)
def test_the_nets_are_those_of_the_paper(task, net, pretrained, preset):
    got = plan(task, "umix", preset)
    assert (got.net.title, got.net.pretrained, got.net.freeze) == (net, pretrained, False)


def test_another_net_takes_the_presets_place():
    assert plan("waterbirds", "erm", net="cnn").net.name == "cnn"
    assert plan("waterbirds", "erm", net="hf:./folder").net.model == "./folder"


def test_a_net_that_cannot_be_reached_is_said_before_the_data_are_looked_for(monkeypatch):
    import huggingface_hub

    def unreachable(*_, **__):
        raise ConnectionError

    monkeypatch.setattr(huggingface_hub, "snapshot_download", unreachable)
    with pytest.raises(UserError, match=r"^The model microsoft/resnet-50 is neither .*net=hf:FOLDER\.$"):
        execute(RunSpec(task="waterbirds", method="umix", preset="paper"))


@pytest.mark.parametrize(
    ("task", "size", "lr"), [("waterbirds", 224, 1e-4), ("celeba", 224, 1e-4), ("camelyon17", 96, 1e-4)]
)
def test_nets_of_other_libraries_see_images_as_published_and_are_trained_whole_at_a_rate_that_keeps_their_weights(
    task, size, lr
):
    whole = plan(task, "umix", "default", net="torchvision:resnet18")
    frozen = plan(task, "umix", "default", net="torchvision:resnet18", **{"net.freeze": True})
    scratch = plan(task, "umix", "default")
    assert [got.source.size for got in (whole, frozen, scratch)] == [size, size, 64]
    assert [got.fit.lr for got in (whole, scratch)] == [lr, 1e-3]
    head = preset("arrays", "default")
    assert (frozen.fit.lr, frozen.fit.batch_size, frozen.fit.epochs) == tuple(
        head["fit"][key] for key in ("lr", "batch_size", "epochs")
    )
    assert frozen.method.mixing == "input"  # features have no boxes to cut
    assert plan(task, "umix", "default", size=32).source.size == 32


def test_a_net_for_texts_is_trained_whole_at_a_rate_that_keeps_its_weights():
    assert plan("civilcomments", "umix", "default", net="hf:distilbert-base-uncased").fit.lr == 5e-5


@pytest.mark.parametrize("task", sorted(TASKS))
def test_every_preset_makes_a_plan_with_every_method(task):
    for name in presets_of(task):
        for method in METHODS:
            assert plan(task, method, name).method.name == method


def write(path: Path, text: str) -> str:
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_a_file_of_ones_own_is_a_preset(tmp_path: Path) -> None:
    one = write(
        tmp_path / "one.toml", "[mine.fit]\nepochs = 7\n[mine.umix]\neta = 3\n[mine.umix.trajectory]\nlr = 0.5\n"
    )
    got = plan("four_moons", "umix", one)
    assert (got.fit.epochs, got.method.eta, got.stages["trajectory"]) == (7, 3.0, {"lr": 0.5})
    two = write(tmp_path / "two.toml", "[a.fit]\nepochs = 1\n[b.fit]\nepochs = 2\n")
    assert [plan("four_moons", "erm", f"{two}:{name}").fit.epochs for name in "ab"] == [1, 2]


@pytest.mark.parametrize(
    ("text", "name", "message"),
    [
        ("[a.fit]\n[b.fit]\n", "", r"holds several presets, so one must be named: .*two\.toml:a or :b"),
        ("[a.fit]\n", ":c", "Unknown preset of .* 'c'"),
        ("[a.fitt]\nlr = 1\n", "", "did you mean 'fit'"),
        ("[a.fit]\nlrr = 1\n", "", "did you mean 'lr'"),
        ("[a.fit]\nlr = -1\n", "", r"fit\.lr must be"),
        ("[a]\nlr = 1\n", "", "'lr' outside of a part"),
        ("lr = 1\n", "", "outside of a part"),
        ("", "", "it is empty"),
        ("[a", "", "must be TOML"),
        ("[a.erm]\nname = 'umix'\n", "", "Unknown setting of erm 'name'"),
        ("[a.net]\nname = 'hf:x'\nmodel = 'y'\n", "", "Unknown setting of net 'model'"),
        ("[a.task]\npath = 'y'\n", "", "Unknown setting of task 'path'"),
    ],
)
def test_a_file_that_is_no_preset_is_refused_in_words(tmp_path: Path, text: str, name: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        plan("four_moons", "erm", write(tmp_path / "two.toml", text) + name)


def test_a_missing_preset_file_is_said() -> None:
    with pytest.raises(UserError, match=r"There is no preset file at nowhere\.toml"):
        plan("four_moons", "erm", "nowhere.toml")


def test_a_written_preset_reads_back(tmp_path: Path) -> None:
    tables = {"fit": {"lr": 1e-05, "clip_norm": None}, "net": {"hidden": (4, 5)}, "umix": {"mixing": "input", "c": 2}}
    write_preset(tmp_path / "x.toml", "tuned", tables, notes=["Why\nso.", 'a "quoted" word'])
    assert preset("four_moons", str(tmp_path / "x.toml")) == {
        "fit": {"lr": 1e-05},
        "net": {"hidden": [4, 5]},
        "umix": {"mixing": "input", "c": 2},
    }
    assert (tmp_path / "x.toml").read_text(encoding="utf-8").startswith("# Why\n# so.\n")


def without_presets(monkeypatch, **class_variables):
    """Registers a task for which umix has no preset file."""
    source = type("Plain", (FourMoons,), {"name": "plain", "__module__": __name__, **class_variables})
    monkeypatch.setitem(TASKS.own, "plain", source)


@pytest.mark.parametrize("kind", OWN)
def test_a_task_without_presets_has_those_of_its_kind_of_data(kind, monkeypatch):
    without_presets(monkeypatch, preset_kind=kind)
    got, general = plan("plain", "umix", "default"), preset(kind, "default")
    assert {name: getattr(got.fit, name) for name in general["fit"]} == general["fit"]
    assert {name: getattr(got.method, name) for name in general["umix"]} == general["umix"]
    assert got.source.name == "plain"


def test_arrays_are_the_kind_of_a_task_that_names_none(monkeypatch):
    without_presets(monkeypatch)
    assert plan("plain", "erm", "default").fit.lr == preset("arrays", "default")["fit"]["lr"]


def test_the_net_of_a_task_without_presets_is_its_own_with_the_options_of_the_preset_for_that_net(monkeypatch):
    without_presets(monkeypatch)
    assert plan("plain", "erm", "default").net == MLP()  # the preset's net is linear
    without_presets(monkeypatch, preset_kind="images", default_net="cnn")
    assert plan("plain", "erm", "default").net.channels == (16, 32, 64)
    assert plan("plain", "erm", "default", net="linear").net.name == "linear"


def test_a_task_without_presets_trains_nets_of_other_libraries_as_its_kind_does(monkeypatch):
    without_presets(monkeypatch, preset_kind="images")
    assert (
        plan("plain", "erm", "default", net="torchvision:resnet18").fit.lr
        == preset("images", "pretrained")["fit"]["lr"]
    )


@pytest.mark.parametrize(
    ("task", "settings"), [("plain", {}), ("four_moons", {}), ("people.csv", {"task.label": "income"})]
)
def test_a_preset_that_is_named_and_does_not_exist_is_refused(task, settings, monkeypatch):
    without_presets(monkeypatch)
    with pytest.raises(UserError, match=r"^Unknown preset of (plain|four_moons|table) 'papers'"):
        plan(task, "erm", "papers", **settings)


def test_a_preset_that_only_other_tasks_have_is_refused_for_a_task_without_presets(monkeypatch):
    without_presets(monkeypatch)
    with pytest.raises(UserError, match=r"^Unknown preset of plain 'paper'\. Known: default\.$"):
        plan("plain", "erm", "paper")


def test_an_unknown_kind_of_data_is_refused(monkeypatch):
    without_presets(monkeypatch, preset_kind="image")
    with pytest.raises(UserError, match=r"^Unknown preset_kind of the task plain 'image'; did you mean 'images'\?"):
        plan("plain", "erm", "default")


@pytest.mark.parametrize("kind", ["table", "arrays", "images", "text"])
def test_on_data_of_ones_own_baselines_leave_open_what_no_fixed_value_can_suit(kind):
    for name, tables in presets_of(kind).items():
        for method, options in {
            "jtt": ("upweight", "identification_epochs"),
            "cvar_dro": ("alpha",),
            "chi2_dro": ("alpha",),
            "group_dro": ("step_size",),
        }.items():
            assert {tables[method][option] for option in options} == {"auto"}, (name, method)


def test_the_methods_themselves_and_the_benchmarks_keep_the_papers_values():
    assert (METHODS["jtt"]().identification_epochs, METHODS["jtt"]().upweight) == (2, 20)
    assert (METHODS["cvar_dro"]().alpha, METHODS["chi2_dro"]().alpha) == (0.2, 0.2)
    assert METHODS["group_dro"]().step_size == 0.01
    for task in ("waterbirds", "celeba", "camelyon17", "civilcomments"):
        for name in ("paper", "reference"):
            assert "auto" not in str(presets_of(task)[name])


@pytest.mark.parametrize("task", ["waterbirds", "civilcomments"])
def test_with_an_eta_of_ones_own_the_weights_are_the_papers_and_no_pool_is_tried(task):
    weights = {"umix.eta": 20, "umix.start": 2, "umix.length": 5}
    assert plan(task, "umix", "default", **weights).method.pool == "example"
    assert plan(task, "umix", "default", eta=20).method.pool == "example"


def test_a_pool_is_tried_where_eta_is_open_or_somebody_asks_for_it():
    assert plan("waterbirds", "umix", "default", **{"umix.length": 5}).method.pool == "auto"
    assert plan("waterbirds", "umix", "default", **{"umix.eta": "auto"}).method.pool == "auto"
    assert plan("waterbirds", "umix", "default", **{"umix.eta": 20, "umix.pool": "auto"}).method.pool == "auto"
    assert plan("waterbirds", "umix", "default", **{"umix.eta": 20, "pool": "class"}).method.pool == "class"

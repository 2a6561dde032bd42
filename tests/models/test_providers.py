"""Nets of MONAI; of torchvision and timm, with stand-ins where those are not installed; of one's own."""

import sys
import types

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from umix.core.streams import torch_stream
from umix.errors import UserError
from umix.models import library as libraries
from umix.models.registry import net_kind, net_settings

IMAGE = torch.rand(3, 32, 32, generator=torch.Generator().manual_seed(1))


def built(settings, example=IMAGE, seed=0, n_classes=2):
    with torch_stream(seed, "fit", "init"):
        return settings.build(example, n_classes)


# MONAI


@pytest.mark.system
def test_monai_nets_give_what_their_last_layer_is_given():
    from monai.networks.nets import DenseNet121

    net, x = built(net_settings("monai:DenseNet121")).eval(), torch.stack([IMAGE, IMAGE.flip(1)])
    with torch_stream(0, "fit", "init"):
        model = DenseNet121(spatial_dims=2, in_channels=3, out_channels=2).eval()
    model.class_layers.out = nn.Identity()
    with torch.no_grad():
        assert net.features(x).shape == (2, 1024)
        assert torch.equal(net.features(x), model(x))


@pytest.mark.system
@pytest.mark.parametrize("name", ["SEResNet50", "resnet18"])
def test_monai_nets_of_other_signatures_take_other_channels_too(name):
    net = built(net_settings(f"monai:{name}"), torch.rand(1, 48, 48), n_classes=3)
    assert net(torch.rand(2, 1, 48, 48)).shape == (2, 3)


@pytest.mark.system
def test_monai_nets_from_scratch_come_from_the_seed():
    one, again, other = (built(net_settings("monai:resnet10"), seed=seed).state_dict() for seed in (0, 0, 1))
    assert all(torch.equal(one[name], again[name]) for name in one)
    assert not all(torch.equal(one[name], other[name]) for name in one)


@pytest.mark.system
def test_an_unknown_net_of_monai_gets_the_nearest_known_one():
    with pytest.raises(UserError, match=r"^Unknown net of MONAI 'DenseNet12'; did you mean 'DenseNet121'"):
        built(net_settings("monai:DenseNet12"))


@pytest.mark.system
def test_monai_refuses_tables_and_what_is_no_classifier():
    with pytest.raises(UserError, match=r"^The net monai:DenseNet121 takes images .*got examples of shape \[7\]"):
        built(net_settings("monai:DenseNet121"), torch.rand(7))
    with pytest.raises(UserError, match="monai:Discriminator must be a classifier"):
        built(net_settings("monai:Discriminator"))


@pytest.mark.system
def test_freezing_a_monai_net_needs_weights(tmp_path):
    with pytest.raises(UserError, match="freeze must be used with a pretrained body, but monai:resnet10"):
        net_settings("monai:resnet10", freeze=True)
    assert net_settings("monai:resnet10", freeze=True, weights=tmp_path / "any").freeze


@pytest.mark.system
def test_weights_of_a_local_file_are_loaded_and_their_content_is_in_the_key(tmp_path):
    from monai.networks.nets import resnet10

    with torch_stream(7, "other", "init"):
        model = resnet10(spatial_dims=2, n_input_channels=3, num_classes=5)
    path = tmp_path / "weights.safetensors"
    save_file(model.state_dict(), path)
    torch.save(model.state_dict(), tmp_path / "weights.pth")
    settings = net_settings("monai:resnet10", weights=path)
    assert torch.equal(built(settings).body.conv1.weight, model.conv1.weight)
    assert torch.equal(
        built(net_settings("monai:resnet10", weights=tmp_path / "weights.pth")).body.conv1.weight, model.conv1.weight
    )
    assert settings.as_json()["content"] != net_settings("monai:resnet10", weights=tmp_path / "weights.pth").content
    assert str(tmp_path) not in str(settings.as_json())


@pytest.mark.system
def test_weights_of_another_architecture_and_pickles_are_refused(tmp_path):
    save_file({"x": torch.zeros(2)}, tmp_path / "other.safetensors")
    with pytest.raises(UserError, match=r"must hold the weights of this net, but \d+ of \d+ are missing"):
        built(net_settings("monai:resnet10", weights=tmp_path / "other.safetensors"))
    torch.save({"x": types.SimpleNamespace()}, tmp_path / "pickle.pth")
    with pytest.raises(UserError, match="must hold tensors by name and nothing else"):
        built(net_settings("monai:resnet10", weights=tmp_path / "pickle.pth"))
    with pytest.raises(UserError, match=r"absent\.pth must be a file that can be read"):
        net_settings("monai:resnet10", weights=tmp_path / "absent.pth").content  # noqa: B018


@pytest.mark.system
def test_files_of_torch_are_refused_where_reading_them_may_run_code(tmp_path, monkeypatch):
    torch.save({"x": torch.zeros(2)}, tmp_path / "weights.pth")
    monkeypatch.setattr(torch, "__version__", "2.5.1+cpu")
    with pytest.raises(
        UserError, match=r"must be a \.safetensors file, because files of torch can be made to run code"
    ):
        built(net_settings("monai:resnet10", weights=tmp_path / "weights.pth"))


# torchvision and timm: stand-ins with the few functions that are called, under the real names


class SmallNet(nn.Module):
    def __init__(self, channels=3, classes=1000):
        super().__init__()
        self.conv = nn.Conv2d(channels, 6, 3)
        self.fc = nn.Linear(6, classes) if classes else nn.Identity()

    def forward(self, x):
        return self.fc(self.conv(x).mean(dim=(2, 3)))


@pytest.fixture
def fake_torchvision(monkeypatch):
    """A stand-in for torchvision with one net whose recommended weights are all ones."""
    recommended = types.SimpleNamespace(url="https://example.org/models/small-0123abcd.pth")

    def get_model(name, *, weights):
        model = SmallNet()
        if weights is recommended:
            nn.init.ones_(model.conv.weight)
        return model

    models = types.ModuleType("torchvision.models")
    models.list_models = lambda module=None: ["small"]
    models.get_model = get_model
    models.get_model_weights = lambda name: types.SimpleNamespace(DEFAULT=recommended)
    module = types.ModuleType("torchvision")
    module.models = models
    monkeypatch.setitem(sys.modules, "torchvision", module)
    return models


def test_torchvision_nets_have_the_recommended_weights_and_no_last_layer(fake_torchvision):
    settings = net_settings("torchvision:small")
    net = built(settings)
    assert (net.body.conv.weight == 1).all()
    assert net.features(IMAGE[None]).shape == (1, 6)
    assert settings.content == "small-0123abcd.pth"
    scratch = net_settings("torchvision:small", pretrained=False)
    assert not (built(scratch).body.conv.weight == 1).all()
    assert scratch.content == ""


def test_an_unknown_net_of_torchvision_gets_the_nearest_known_one(fake_torchvision):
    with pytest.raises(UserError, match=r"^Unknown net of torchvision 'smal'; did you mean 'small'"):
        built(net_settings("torchvision:smal"))


def test_weights_that_cannot_be_downloaded_say_how_to_give_a_file(fake_torchvision):
    def refused(name, *, weights):
        raise OSError("no route")

    fake_torchvision.get_model = refused
    with pytest.raises(UserError, match=r"cannot be downloaded \(no route\); give a local file with net\.weights"):
        built(net_settings("torchvision:small"))


def test_timm_nets_are_asked_for_features(monkeypatch):
    asked = {}

    def create_model(name, **options):
        asked.update(options)
        return SmallNet(options["in_chans"], options["num_classes"])

    timm = types.ModuleType("timm")
    timm.is_model = lambda name: name == "small.tag"
    timm.list_models = lambda: ["small.tag"]
    timm.create_model = create_model
    timm.get_pretrained_cfg = lambda name: types.SimpleNamespace(architecture="small", tag="tag")
    monkeypatch.setitem(sys.modules, "timm", timm)
    settings = net_settings("timm:small.tag")
    assert built(settings, torch.rand(2, 16, 16)).features(torch.rand(4, 2, 16, 16)).shape == (4, 6)
    assert asked == {"pretrained": True, "num_classes": 0, "in_chans": 2}
    assert settings.content == "small.tag"
    with pytest.raises(UserError, match=r"^Unknown net of timm 'smll'"):
        built(net_settings("timm:smll"))


@pytest.mark.parametrize("provider", ["timm", "torchvision", "monai", "hf"])
def test_a_library_that_is_not_installed_names_its_extra(provider, monkeypatch):
    def absent(name):
        raise ImportError(name)

    monkeypatch.setattr(libraries, "import_module", absent)
    monkeypatch.setattr(libraries, "installed", lambda name: False)
    with pytest.raises(UserError, match=rf"which is not installed: pip install 'umix\[{provider}\]'\.$"):
        built(net_settings(f"{provider}:some/thing"))


def test_a_library_that_is_broken_says_so(monkeypatch):
    def broken(name):
        raise RuntimeError("operator torchvision::nms does not exist")

    monkeypatch.setattr(libraries, "import_module", broken)
    monkeypatch.setattr(libraries, "installed", lambda name: True)
    with pytest.raises(UserError, match=r"cannot be imported \(operator torchvision::nms does not exist\)"):
        built(net_settings("torchvision:resnet50"))


# A net of one's own


@pytest.fixture
def own(tmp_path, monkeypatch):
    """Writes a module into the current folder and gives the settings of its factory."""
    monkeypatch.chdir(tmp_path)
    written = []

    def write(code, name="my_own_net", factory="make", **options):
        (tmp_path / f"{name}.py").write_text(f"from torch import nn\n{code}\n")
        written.append(name)
        sys.modules.pop(name, None)
        return net_settings(f"{name}:{factory}", **options)

    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    yield write
    for name in written:
        sys.modules.pop(name, None)


PAIR = "def make(example, n_classes): return nn.Sequential(nn.Flatten(), nn.Linear(example.numel(), 4)), nn.Linear(4, n_classes)"


def test_a_factory_gives_body_and_head_or_a_net(own):
    net = built(own(PAIR))
    assert net.features(IMAGE[None]).shape == (1, 4)
    whole = (
        "from umix.models import Net\n" + PAIR.replace("make", "parts") + "\ndef make(e, n): return Net(*parts(e, n))"
    )
    again = built(own(whole, name="my_other_net"))
    assert all(torch.equal(a, b) for a, b in zip(net.parameters(), again.parameters(), strict=True))


def test_the_code_of_the_module_is_in_the_key(own, tmp_path):
    first = own(PAIR)
    before = first.as_json()
    assert str(tmp_path) not in str(before)
    assert own(PAIR + "  # another line").as_json() != before
    assert own(PAIR).as_json() == before


def test_a_file_of_weights_is_given_to_the_factory_and_is_in_the_key(own, tmp_path):
    save_file({"w": torch.ones(4, 3072)}, tmp_path / "w.safetensors")
    code = (
        "from safetensors.torch import load_file\n"
        "def make(example, n_classes, weights):\n"
        "    body = nn.Linear(3072, 4); body.weight.data = load_file(weights)['w']\n"
        "    return nn.Sequential(nn.Flatten(), body), nn.Linear(4, n_classes)\n"
    )
    settings = own(code, weights=tmp_path / "w.safetensors")
    assert (built(settings).body[1].weight == 1).all()
    before = settings.content
    save_file({"w": torch.zeros(4, 3072)}, tmp_path / "w.safetensors")
    assert settings.content != before


def test_what_is_wrong_with_a_factory_is_said_in_one_sentence(own):
    with pytest.raises(
        UserError, match=r"must return a umix\.models\.Net or a pair \(body, head\) of torch modules, got Linear"
    ):
        built(own("def make(example, n_classes): return nn.Linear(2, 2)"))
    with pytest.raises(UserError, match=r"^Unknown factory in my_own_net 'mak'; did you mean 'make'\?"):
        built(own(PAIR, factory="mak"))
    with pytest.raises(UserError, match=r"^There is no module no_such_module in the current folder"):
        net_settings("no_such_module:make").content  # noqa: B018
    with pytest.raises(
        UserError, match=r"my_own_net of the net my_own_net:make needs no_such_library, which is missing"
    ):
        built(own("import no_such_library"))
    with pytest.raises(UserError, match=r"must give pooled features \[batch, width\], got \[2, 3, 32, 32\]"):
        built(own("def make(example, n_classes): return nn.Identity(), nn.Linear(2, n_classes)"))


@pytest.mark.parametrize(
    ("code", "message"),
    [
        (
            "def make(example, n_classes):\n    raise ValueError('my own\\nbug.')",
            r"^The factory my_own_net:make must make a net for examples of shape \[3, 32, 32\] and type float32 and 2 classes, "
            r"but it raised ValueError: my own bug \(.*my_own_net\.py, line 3\); correct the factory\.$",
        ),
        ("def make(example, n_classes): raise SystemExit(3)", r"raised SystemExit: 3 \(.*line 2\)"),
        (
            "def make(): return 1",
            r"^my_own_net:make must give an estimator with fit and predict_proba, but int has no fit; a factory of nets must be",
        ),
        ("from os import getcwd as make", r"must be callable as \(example, n_classes\)"),
        (
            "def make(example, n_classes): return nn.Identity(), 5",
            r"\(body, head\) of torch modules, got \(Identity, int\)",
        ),
        (
            "def make(example, n_classes): return nn.Sequential(nn.Flatten(), nn.Linear(3072, 8)), nn.Linear(9, n_classes)",
            r"^The head of my_own_net:make must take the 8 features that its body gives, but it raised RuntimeError: mat1 and",
        ),
        (
            "def make(example, n_classes): return nn.Sequential(nn.Flatten(), nn.Linear(3072, 8)), nn.Linear(8, 7)",
            r"^The head of my_own_net:make must give logits \[batch, 2\], a number for each class, got \[2, 7\]",
        ),
        (
            "class Body(nn.Module):\n    def forward(self, x): return x[None, :, 0, 0, 0]\n"
            "def make(example, n_classes): return Body(), nn.Linear(1, n_classes)",
            r"pooled features \[batch, width\], got \[1, 2\] for a batch of two examples",
        ),
        (
            "class Body(nn.Module):\n    def forward(self, x):\n        return x.flattn(1)\n"
            "def make(example, n_classes): return Body(), nn.Linear(1, n_classes)",
            r"^The body of my_own_net:make must take examples of shape .* raised AttributeError: .*my_own_net\.py, line 4\)",
        ),
    ],
)
def test_a_factory_that_makes_no_net_for_the_task_is_refused_with_its_error_and_place(own, code, message):
    with pytest.raises(UserError, match=message):
        built(own(code))


@pytest.mark.parametrize(
    ("code", "raised"),
    [
        ("def make(:", r"SyntaxError: invalid syntax \(.*my_own_net\.py, line 2\)"),
        ("1 / 0", r"ZeroDivisionError: division by zero \(.*my_own_net\.py, line 2\)"),
        ("raise SystemExit", r"SystemExit \(.*my_own_net\.py, line 2\)"),
    ],
)
def test_a_module_that_cannot_be_imported_is_refused_with_its_error_and_place(own, code, raised):
    sentence = (
        rf"^The module my_own_net of the net my_own_net:make must be importable, but importing it raised {raised}; "
    )
    with pytest.raises(UserError, match=sentence):
        own(code).content  # noqa: B018


def test_trying_a_net_leaves_it_as_it_was_made(own):
    code = (
        "def make(example, n_classes):\n"
        "    return nn.Sequential(nn.Flatten(), nn.Linear(3072, 8), nn.BatchNorm1d(8), nn.Dropout()), nn.Linear(8, n_classes)"
    )
    net = built(own(code))
    assert net.body.training
    assert net.head.training
    assert net.body[2].num_batches_tracked == 0


def test_a_name_without_a_known_provider_is_a_module_only_if_it_can_be_one():
    assert net_kind("my.nets:make")[1] == {"factory": "my.nets:make"}
    for name in ("hf:", "resnet-50:x y", "mlpp", "hf/x"):
        with pytest.raises(UserError, match=r"^Unknown net "):
            net_kind(name)

"""Models of the Hugging Face hub, against transformers itself, on tiny checkpoints."""

import json
import shutil

import pytest
import torch

from umix.core.streams import torch_stream
from umix.errors import UserError
from umix.models.hf import HuggingFace
from umix.models.registry import net_kind, net_settings

pytestmark = pytest.mark.system

transformers = pytest.importorskip("transformers")

IMAGE, IDS = torch.rand(3, 32, 32, generator=torch.Generator().manual_seed(1)), torch.tensor([5, 7, 9, 0, 0])


def hf(folder, **options):
    return net_settings(f"hf:{folder}", **options)


def built(settings, example, seed=0, n_classes=2):
    with torch_stream(seed, "fit", "init"):
        return settings.build(example, n_classes)


def model_of(folder):
    return transformers.AutoModel.from_pretrained(folder, local_files_only=True).eval()


def test_the_name_stands_for_the_model():
    assert net_kind("hf:microsoft/resnet-50") == (HuggingFace, {"model": "microsoft/resnet-50"})


def test_features_of_images_are_the_models_pooler_output(resnet):
    net, x = built(hf(resnet), IMAGE).eval(), torch.stack([IMAGE, IMAGE.flip(1)])
    with torch.no_grad():
        expected = model_of(resnet)(pixel_values=x).pooler_output
        assert expected.shape == (2, 8, 1, 1)
        assert torch.equal(net.features(x), expected[:, :, 0, 0])
        torch.testing.assert_close(net(x), expected[:, :, 0, 0] @ net.head.weight.T + net.head.bias)


def test_features_of_texts_are_the_first_tokens_under_the_mask_of_padding(distilbert):
    net, ids = built(hf(distilbert), IDS).eval(), torch.stack([IDS, torch.tensor([3, 4, 5, 6, 0])])
    with torch.no_grad():
        expected = model_of(distilbert)(input_ids=ids, attention_mask=(ids != 0).long()).last_hidden_state[:, 0]
        torch.testing.assert_close(net.features(ids), expected)


def test_padding_changes_nothing(distilbert):
    for pooling in ("first", "mean"):
        net = built(hf(distilbert, pooling=pooling), IDS).eval()
        longer = torch.cat([IDS, torch.zeros(6, dtype=torch.long)])
        with torch.no_grad():
            torch.testing.assert_close(net.features(IDS[None, :3]), net.features(longer[None]))


def test_mean_pooling_is_the_mean_over_the_tokens_of_each_text(distilbert):
    net = built(hf(distilbert, pooling="mean"), IDS).eval()
    with torch.no_grad():
        hidden = model_of(distilbert)(input_ids=IDS[None, :3]).last_hidden_state
        torch.testing.assert_close(net.features(IDS[None]), hidden.mean(dim=1))


def test_a_sentence_transformers_folder_says_that_the_mean_is_meant(distilbert, tmp_path):
    folder = shutil.copytree(distilbert, tmp_path / "sentences")
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text(json.dumps({"pooling_mode_mean_tokens": True}))
    with torch.no_grad():
        mean = built(hf(distilbert, pooling="mean"), IDS).eval().features(IDS[None])
        assert torch.equal(built(hf(folder), IDS).eval().features(IDS[None]), mean)
    assert hf(folder).content != hf(distilbert).content


def test_a_pooler_that_nobody_asks_is_not_trained(tmp_path):
    sizes = {
        "hidden_size": 8,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "intermediate_size": 8,
        "vocab_size": 12,
    }
    transformers.BertModel(transformers.BertConfig(**sizes)).save_pretrained(tmp_path)
    for pooling, asked in (("mean", False), ("pooler", True)):
        net = built(hf(tmp_path, pooling=pooling), IDS)
        net(IDS[None]).sum().backward()
        trained = {name for name, parameter in net.named_parameters() if parameter.requires_grad}
        assert trained == {name for name, parameter in net.named_parameters() if parameter.grad is not None}
        assert any("pooler" in name for name in trained) == asked


def test_from_scratch_the_weights_come_from_the_seed_and_not_from_the_folder(resnet):
    first, again, other = (built(hf(resnet, pretrained=False), IMAGE, seed).state_dict() for seed in (0, 0, 1))
    assert all(torch.equal(first[name], again[name]) for name in first)
    assert not all(torch.equal(first[name], other[name]) for name in first)
    trained = built(hf(resnet), IMAGE).state_dict()
    assert not all(torch.equal(first[name], trained[name]) for name in first)


def test_of_a_pretrained_net_only_the_head_depends_on_the_seed(resnet):
    one, two = (built(hf(resnet), IMAGE, seed).state_dict() for seed in (0, 1))
    assert {name for name in one if not torch.equal(one[name], two[name])} == {"head.weight", "head.bias"}


def test_building_leaves_the_global_generator_alone(resnet, distilbert):
    before = torch.get_rng_state()
    built(hf(resnet), IMAGE)
    built(hf(distilbert, pretrained=False), IDS)
    assert torch.equal(torch.get_rng_state(), before)


def test_a_frozen_body_keeps_its_statistics_and_gets_no_gradients(resnet):
    net = built(hf(resnet, freeze=True), IMAGE)
    before = {name: tensor.clone() for name, tensor in net.body.state_dict().items()}
    net.train()
    net(torch.stack([IMAGE, IMAGE.flip(1)])).sum().backward()
    assert all(torch.equal(before[name], tensor) for name, tensor in net.body.state_dict().items())
    trained = [name for name, parameter in net.named_parameters() if parameter.requires_grad]
    assert trained == ["head.weight", "head.bias"]
    assert all(parameter.grad is None for parameter in net.body.parameters())


def test_a_net_that_is_not_frozen_learns_batch_statistics(resnet):
    net = built(hf(resnet), IMAGE)
    before = {name: tensor.clone() for name, tensor in net.body.state_dict().items()}
    net.train()(torch.stack([IMAGE, IMAGE.flip(1)]))
    assert any(not torch.equal(before[name], tensor) for name, tensor in net.body.state_dict().items())


def test_what_the_folder_holds_decides_and_not_where_it_lies(resnet, tmp_path):
    from safetensors.torch import load_file, save_file

    moved = shutil.copytree(resnet, tmp_path / "elsewhere")
    assert hf(moved).as_json() == hf(resnet).as_json()
    assert str(moved) not in json.dumps(hf(moved).as_json())
    tensors = load_file(moved / "model.safetensors")
    tensors[next(iter(tensors))] += 1
    save_file(tensors, moved / "model.safetensors", metadata={"format": "pt"})
    assert hf(moved).content != hf(resnet).content
    assert hf(moved, pretrained=False).content == hf(resnet, pretrained=False).content


def test_an_image_model_refuses_texts_and_a_text_model_images(resnet, distilbert):
    with pytest.raises(
        UserError, match=r"resnet takes images \[channels, height, width\], got examples of shape \[5\]"
    ):
        built(hf(resnet), IDS)
    with pytest.raises(
        UserError, match=r"distilbert takes texts as token ids \[length\], got examples of shape \[3, 32"
    ):
        built(hf(distilbert), IMAGE)


def test_another_number_of_channels_is_refused(resnet):
    with pytest.raises(UserError, match=r"takes images of 3 channels, got 1\.$"):
        built(hf(resnet), IMAGE[:1])


def test_a_text_that_is_too_long_is_refused_in_one_sentence(distilbert):
    with pytest.raises(UserError, match=r"^The body of hf:\S*distilbert must take examples of shape \[13\]"):
        built(hf(distilbert), torch.ones(13, dtype=torch.long))


def test_a_folder_that_is_not_there_or_not_whole_is_refused(resnet, tmp_path):
    with pytest.raises(UserError, match=r"^There is no folder \./nowhere with a model"):
        hf("./nowhere").content  # noqa: B018
    (tmp_path / "config.json").write_text((resnet / "config.json").read_text())
    with pytest.raises(UserError, match=r"must hold config\.json and model\.safetensors"):
        hf(tmp_path).content  # noqa: B018
    assert hf(tmp_path, pretrained=False).content


def test_weights_that_are_missing_in_the_file_are_an_error_and_not_random(resnet, tmp_path):
    from safetensors.torch import load_file, save_file

    folder = shutil.copytree(resnet, tmp_path / "cut")
    tensors = load_file(folder / "model.safetensors")
    del tensors["embedder.embedder.convolution.weight"]
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(UserError, match=r"must hold all weights of its model, but 1 are missing \(first: embedder"):
        built(hf(folder), IMAGE)


def test_code_in_the_folder_is_never_run(resnet, tmp_path):
    folder = shutil.copytree(resnet, tmp_path / "remote")
    config = json.loads((folder / "config.json").read_text())
    config |= {"model_type": "mine", "auto_map": {"AutoConfig": "mine.Config", "AutoModel": "mine.Model"}}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "mine.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    with pytest.raises(UserError, match="must be a model that transformers' AutoModel loads without code of its own"):
        built(hf(folder), IMAGE)
    assert not (tmp_path / "ran").exists()


def test_a_hub_name_that_cannot_be_reached_says_how_to_go_on(tmp_path, monkeypatch):
    import huggingface_hub

    asked = []

    def unreachable(name, *, local_files_only=False, **_):
        asked.append(local_files_only)
        raise ConnectionError("no route")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", unreachable)
    with pytest.raises(UserError) as error:
        hf("nobody/nothing").content  # noqa: B018
    assert asked == [True, False]  # the local cache first
    assert str(error.value) == (
        "The model nobody/nothing is neither a folder nor in the local cache of the Hugging Face hub, and the hub cannot be "
        "reached; give a local folder with net=hf:FOLDER."
    )


def test_a_cached_hub_name_is_its_snapshot_and_asks_nobody(resnet, monkeypatch):
    import huggingface_hub

    def cached(name, *, local_files_only=False, **_):
        assert local_files_only
        return str(resnet)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", cached)
    settings = hf("somebody/cached")
    assert settings.as_json() == hf(resnet).as_json()
    assert settings.title == "hf:somebody/cached"
    assert built(settings, IMAGE).head.in_features == 8


def test_dropout_acts_on_the_features_in_training_only(resnet):
    net, x = built(hf(resnet, dropout=0.5), IMAGE), torch.stack([IMAGE] * 4)
    plain = built(hf(resnet), IMAGE).eval()
    with torch.no_grad(), torch.random.fork_rng():
        assert torch.equal(net.eval().features(x), plain.features(x))
        assert (net.train().features(x) == 0).any()


def test_freezing_a_net_from_scratch_is_refused(resnet):
    with pytest.raises(UserError, match="freeze must be used with a pretrained body, but hf:"):
        hf(resnet, pretrained=False, freeze=True)


class Code:
    """Unpickling it would write a file."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (str(self.path), "w")


def test_pickled_weights_are_refused_and_never_unpickled(resnet, tmp_path):
    folder = shutil.copytree(resnet, tmp_path / "pickled")
    (folder / "model.safetensors").unlink()
    torch.save({"x": Code(tmp_path / "ran")}, folder / "pytorch_model.bin")
    message = r"The weights of .*pickled must be model\.safetensors, but they are pickled, and a pickle may run code"
    with pytest.raises(UserError, match=message):
        built(hf(folder), IMAGE)
    index = {"weight_map": {"x": "pytorch_model.bin"}}  # as if it were a shard of safetensors
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(UserError, match="must be a model that transformers' AutoModel loads"):
        built(hf(folder), IMAGE)
    assert not (tmp_path / "ran").exists()


def test_a_model_that_is_larger_than_memory_is_refused_before_it_is_made(resnet, tmp_path):
    folder = shutil.copytree(resnet, tmp_path / "large")
    config = json.loads((folder / "config.json").read_text()) | {"hidden_sizes": [10**7, 10**7]}
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(UserError, match=r"takes .* GB of memory, but there are"):
        built(hf(folder), IMAGE)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("config.json", b"[]"),
        ("config.json", b'{"model_type": "resnet", "depths": "a"}'),
        ("model.safetensors", b""),
        ("model.safetensors", b"\x80\x04K\x01."),
    ],
    ids=["a list", "no depths", "empty", "a pickle"],
)
def test_files_that_are_no_model_are_refused_in_one_sentence(resnet, tmp_path, name, content):
    folder = shutil.copytree(resnet, tmp_path / "damaged")
    (folder / name).write_bytes(content)
    with pytest.raises(UserError, match="must be a model that transformers' AutoModel loads without code of its own"):
        built(hf(folder), IMAGE)


def test_a_token_beyond_the_net_is_said_wherever_it_comes(distilbert):
    net = built(hf(distilbert), IDS)
    with pytest.raises(UserError, match="must know every token and position of them, but one lies beyond its own"):
        net(torch.tensor([[5, 41]]))

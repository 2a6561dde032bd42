"""File writes are atomic, and a file that cannot be read is one sentence or is made again."""

import errno
import os
import pickle
import subprocess
import sys
import textwrap

import polars
import pytest
import torch

from umix.errors import UserError
from umix.store import (
    Stored,
    atomic_write,
    ensure_writable,
    load_or_none,
    read_json,
    read_table,
    read_tensors,
    reading,
    sweep,
    write_json,
    write_table,
    write_tensors,
)


def _no_space(*_):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _names(directory):
    return sorted(path.name for path in directory.iterdir())


def test_atomic_write_writes_exactly_the_content_and_nothing_beside_it(tmp_path):
    atomic_write(tmp_path / "new" / "folder" / "state", b"\x00\xffcontent")
    assert (tmp_path / "new" / "folder" / "state").read_bytes() == b"\x00\xffcontent"
    assert _names(tmp_path / "new" / "folder") == ["state"]


def test_atomic_write_replaces_a_longer_file(tmp_path):
    (tmp_path / "state").write_bytes(b"old and longer")
    atomic_write(tmp_path / "state", b"new")
    assert (tmp_path / "state").read_bytes() == b"new"


def test_the_old_file_is_whole_until_the_new_one_is_on_disk(tmp_path, monkeypatch):
    seen, synced = [], []
    fsync, replace = os.fsync, os.replace

    def watch_sync(descriptor):
        fsync(descriptor)
        synced.append(os.fstat(descriptor).st_size)

    def watch_replace(source, target):
        seen.append((synced.copy(), source.read_bytes(), target.read_bytes(), source.parent == target.parent))
        replace(source, target)

    (tmp_path / "state").write_bytes(b"old")
    monkeypatch.setattr(os, "fsync", watch_sync)
    monkeypatch.setattr(os, "replace", watch_replace)
    atomic_write(tmp_path / "state", b"newer")
    assert seen == [([5], b"newer", b"old", True)]


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_a_full_disk_leaves_the_old_file_and_nothing_aside(tmp_path, monkeypatch, call):
    (tmp_path / "state").write_bytes(b"old")
    monkeypatch.setattr(os, call, _no_space)
    with pytest.raises(OSError, match=r"No space left on device: '.*/state'$"):
        atomic_write(tmp_path / "state", b"new")
    assert (tmp_path / "state").read_bytes() == b"old"
    assert _names(tmp_path) == ["state"]


def test_an_interrupt_leaves_the_old_file_and_nothing_aside(tmp_path, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    (tmp_path / "state").write_bytes(b"old")
    monkeypatch.setattr(os, "replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        atomic_write(tmp_path / "state", b"new")
    assert (tmp_path / "state").read_bytes() == b"old"
    assert _names(tmp_path) == ["state"]


def test_a_folder_where_the_file_should_be_is_the_users_to_solve(tmp_path):
    (tmp_path / "state").mkdir()
    with pytest.raises(UserError, match=r"^Cannot write .*state: it is a folder; name a file\.$"):
        atomic_write(tmp_path / "state", b"new")
    assert _names(tmp_path) == ["state"]


def test_a_link_is_followed_and_stays(tmp_path):
    (tmp_path / "state").write_bytes(b"old")
    (tmp_path / "link").symlink_to("state")
    (tmp_path / "dangling").symlink_to("new/file")
    atomic_write(tmp_path / "link", b"new")
    atomic_write(tmp_path / "dangling", b"first")
    assert (tmp_path / "state").read_bytes() == b"new"
    assert (tmp_path / "new" / "file").read_bytes() == b"first"
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "dangling").is_symlink()
    assert _names(tmp_path) == ["dangling", "link", "new", "state"]


@pytest.mark.parametrize("linked", [False, True], ids=["itself", "through a link"])
def test_a_pipe_is_not_written(tmp_path, linked):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("pipe")
    with pytest.raises(UserError, match=r"^Cannot write .*: it is a device, a pipe or a socket; name a file\.$"):
        atomic_write(tmp_path / ("link" if linked else "pipe"), b"new")
    assert _names(tmp_path) == ["link", "pipe"]


def test_a_writable_folder_is_made_and_left_empty(tmp_path):
    ensure_writable(tmp_path / "runs")
    assert _names(tmp_path / "runs") == []


def test_a_place_where_nothing_can_be_written_is_the_users_to_change(tmp_path):
    (tmp_path / "file").touch()
    for place in (tmp_path / "file", tmp_path / "file" / "runs"):
        with pytest.raises(UserError, match=r"^Cannot write to the folder .*file.*; choose another place\.$"):
            ensure_writable(place)


@pytest.mark.system
def test_what_a_killed_process_left_aside_is_swept(tmp_path):
    program = """
        import os, pathlib, sys
        from umix.store import atomic_write

        os.replace = lambda *_: os._exit(9)  # killed between writing and renaming
        atomic_write(pathlib.Path(sys.argv[1]), b"half")
    """
    killed = subprocess.run([sys.executable, "-c", textwrap.dedent(program), str(tmp_path / "weights" / "state")])
    assert killed.returncode == 9
    assert len(_names(tmp_path / "weights")) == 1
    sweep(tmp_path)
    assert _names(tmp_path / "weights") == []


def test_sweep_keeps_every_other_file(tmp_path):
    names = ["state", ".hidden", "x.aside"]
    for name in names:
        (tmp_path / name).write_bytes(b"mine")
    sweep(tmp_path)
    sweep(tmp_path / "nowhere")
    assert _names(tmp_path) == sorted(names)


@pytest.mark.parametrize(
    "tensor",
    [
        torch.tensor([[1.5, float("nan")], [-0.0, float("inf")]]),
        torch.tensor([True, False]),
        torch.tensor([2**62, -1]),
        torch.tensor(3, dtype=torch.uint8),
        torch.ones(2, dtype=torch.bfloat16),
        torch.empty(0, 3),
    ],
    ids=["float32", "bool", "int64", "scalar", "bfloat16", "empty"],
)
def test_tensors_come_back_bit_for_bit(tmp_path, tensor):
    write_tensors(tmp_path / "t", {"a": tensor}, {"kind": "weights", "epoch": "3"})
    tensors, metadata = read_tensors(tmp_path / "t", kind="weights")
    assert metadata == {"kind": "weights", "epoch": "3"}
    assert list(tensors) == ["a"]
    assert tensors["a"].dtype == tensor.dtype
    assert tensors["a"].shape == tensor.shape
    assert tensors["a"].reshape(-1).view(torch.uint8).tolist() == tensor.reshape(-1).view(torch.uint8).tolist()


def test_equal_content_makes_equal_files(tmp_path):
    metadata = {f"key {number}": str(number) for number in range(9)}
    for name, order in (("one", 1), ("other", -1)):
        write_tensors(tmp_path / name, {"a": torch.ones(2)}, dict(list(metadata.items())[::order]))
    assert (tmp_path / "one").read_bytes() == (tmp_path / "other").read_bytes()


class _Trap:
    """A pickle that would make a folder when it is read."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


class _Fact(Stored):
    name: str
    size: int


def _stored(folder):
    """A file of each format, with what reads it."""
    write_tensors(folder / "weights", {"a": torch.arange(3.0)}, {"kind": "weights"})
    write_table(folder / "table", polars.DataFrame({"a": range(100)}))
    write_json(folder / "fact", _Fact(name="é", size=3))
    return {
        folder / "weights": lambda path: read_tensors(path, kind="weights"),
        folder / "table": read_table,
        folder / "fact": lambda path: read_json(path, _Fact, kind="fact"),
    }


def test_tables_and_json_come_back_as_they_were_written(tmp_path):
    reads = _stored(tmp_path)
    assert reads[tmp_path / "table"](tmp_path / "table")["a"].to_list() == list(range(100))
    assert reads[tmp_path / "fact"](tmp_path / "fact") == _Fact(name="é", size=3)


def test_a_table_is_read_whose_path_looks_like_a_pattern(tmp_path):
    write_table(tmp_path / "a[1].parquet", polars.DataFrame({"a": [1]}))
    assert read_table(tmp_path / "a[1].parquet").item() == 1


@pytest.mark.parametrize("damage", ["truncated", "empty", "garbage"])
def test_a_damaged_file_is_one_sentence_that_says_what_to_do(tmp_path, damage):
    for path, read in _stored(tmp_path).items():
        content = path.read_bytes()
        path.write_bytes({"truncated": content[: len(content) // 2], "empty": b"", "garbage": b"\x80abc" * 40}[damage])
        with pytest.raises(UserError, match=rf"^{path} is damaged \(.*\); delete it and run again\.$") as caught:
            read(path)
        assert "\n" not in str(caught.value)


def test_a_damaged_file_of_a_finished_run_is_made_by_running_all_of_it_again(tmp_path):
    (tmp_path / "record.json").write_text("{}")
    (tmp_path / "weights").mkdir()
    for path in (tmp_path / "predictions.parquet", tmp_path / "weights" / "epoch-0001.safetensors"):
        path.write_bytes(b"torn")
        with pytest.raises(UserError, match=r" is damaged \(.*\); delete the run and run it again\.$"):
            read_table(path)
    with pytest.raises(
        UserError, match=r"record.json is damaged \(.*name must be valid.*\); delete it and run again\.$"
    ):
        read_json(tmp_path / "record.json", _Fact, kind="record")


def test_a_file_of_another_kind_is_damaged(tmp_path):
    write_tensors(tmp_path / "t", {}, {"kind": "trajectory"})
    with pytest.raises(UserError, match=r"its kind is 'trajectory' and not 'weights'"):
        read_tensors(tmp_path / "t", kind="weights")


def test_too_little_memory_is_no_damage(tmp_path):
    with pytest.raises(MemoryError), reading(tmp_path / "t", "weights"):
        raise MemoryError


def test_a_pickle_is_refused_and_never_run(tmp_path):
    (tmp_path / "trap").write_bytes(pickle.dumps(_Trap(tmp_path / "sprung")))
    with pytest.raises(UserError, match="is damaged"):
        read_tensors(tmp_path / "trap", kind="weights")
    assert not (tmp_path / "sprung").exists()


def test_a_missing_tensor_file_is_named(tmp_path):
    with pytest.raises(UserError, match=r"^There is no checkpoint at .*absent\.$"):
        read_tensors(tmp_path / "absent", kind="checkpoint")


def _damaged():
    raise UserError("The file must be whole; delete it and run again.")


def test_a_file_that_can_be_made_again_is_and_the_reason_is_told(tmp_path):
    told = []
    (tmp_path / "state").write_bytes(b"torn")
    assert load_or_none(tmp_path / "state", _damaged, again="it is made again", warn=told.append) is None
    assert told == ["warning: The file must be whole; it is made again."]
    assert load_or_none(tmp_path / "state", lambda: 7, again="", warn=told.append) == 7
    assert load_or_none(tmp_path / "nowhere", _damaged, again="", warn=told.append) is None
    assert len(told) == 1

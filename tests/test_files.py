"""File writes are atomic, and reading a file that umix did not write raises UserError."""

import errno
import os
import pickle
import shutil
import socket
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
import torch
from safetensors.torch import save

from umix.errors import MachineError, UserError
from umix.files import (
    ensure_writable,
    kept,
    parsed,
    read_tensors,
    remove,
    sweep,
    unless_damaged,
    write_tensors,
    write_whole,
)


def _no_space(*_):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _names(directory):
    return sorted(path.name for path in directory.iterdir())


def _aside(directory, *, host=None, pid):
    path = directory / f".state.{host or socket.gethostname()}.{pid}.aside"
    path.write_bytes(b"half")
    return path


@pytest.fixture
def living():
    """The id of a process that lives as long as the test."""
    return os.getppid()


@pytest.fixture
def dead():
    """The id of no process: larger than any can be."""
    return 2**22 + 1


def test_write_whole_writes_exactly_the_content_and_nothing_beside_it(tmp_path):
    write_whole(tmp_path / "new" / "folder" / "state", b"\x00\xffcontent")
    assert (tmp_path / "new" / "folder" / "state").read_bytes() == b"\x00\xffcontent"
    assert _names(tmp_path / "new" / "folder") == ["state"]


def test_write_whole_replaces_a_longer_file(tmp_path):
    (tmp_path / "state").write_bytes(b"old and longer")
    write_whole(tmp_path / "state", b"new")
    assert (tmp_path / "state").read_bytes() == b"new"


def test_write_whole_may_write_nothing(tmp_path):
    write_whole(tmp_path / "state", b"")
    assert (tmp_path / "state").read_bytes() == b""


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
    write_whole(tmp_path / "state", b"newer")
    assert seen == [([5], b"newer", b"old", True)]


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_a_full_disk_leaves_the_old_file_and_nothing_aside(tmp_path, monkeypatch, call):
    (tmp_path / "state").write_bytes(b"old")
    monkeypatch.setattr(os, call, _no_space)
    with pytest.raises(
        MachineError,
        match=r"^Cannot write .*state: No space left on device; free some space and run it again: what is finished is kept\.$",
    ):
        write_whole(tmp_path / "state", b"new")
    assert (tmp_path / "state").read_bytes() == b"old"
    assert _names(tmp_path) == ["state"]


def test_a_full_disk_leaves_no_new_file(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "fsync", _no_space)
    with pytest.raises(MachineError):
        write_whole(tmp_path / "state", b"new")
    assert _names(tmp_path) == []


def test_an_interrupt_leaves_the_old_file_and_nothing_aside(tmp_path, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    (tmp_path / "state").write_bytes(b"old")
    monkeypatch.setattr(os, "replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_whole(tmp_path / "state", b"new")
    assert (tmp_path / "state").read_bytes() == b"old"
    assert _names(tmp_path) == ["state"]


@pytest.mark.system
def test_a_real_limit_on_file_size_leaves_the_old_file_and_nothing_aside(tmp_path):
    (tmp_path / "state").write_bytes(b"old")
    program = """
        import pathlib, resource, sys
        from umix.errors import MachineError
        from umix.files import write_whole

        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
        try:
            write_whole(pathlib.Path(sys.argv[1]), b"x" * 100_000)
        except MachineError as error:
            sys.exit(str(error))
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program), str(tmp_path / "state")], capture_output=True, text=True
    )
    assert done.returncode == 1
    assert done.stderr.startswith(f"Cannot write {tmp_path / 'state'}: File too large;")
    assert (tmp_path / "state").read_bytes() == b"old"
    assert _names(tmp_path) == ["state"]


def test_a_file_where_the_folder_should_be_is_the_users_to_solve(tmp_path):
    (tmp_path / "runs").write_bytes(b"not a folder")
    for path in (tmp_path / "runs" / "state", tmp_path / "runs" / "below" / "state"):
        with pytest.raises(
            UserError, match=r"^Cannot write .*state: .*/runs is a file and no folder; choose another place"
        ):
            write_whole(path, b"new")
    assert (tmp_path / "runs").read_bytes() == b"not a folder"


def test_a_folder_where_the_file_should_be_is_the_users_to_solve(tmp_path):
    (tmp_path / "state").mkdir()
    with pytest.raises(UserError, match=r"^Cannot write .*state: it is a folder; name a file\.$"):
        write_whole(tmp_path / "state", b"new")
    assert _names(tmp_path) == ["state"]


def test_a_link_is_followed_and_stays(tmp_path):
    (tmp_path / "state").write_bytes(b"old")
    (tmp_path / "link").symlink_to("state")
    (tmp_path / "dangling").symlink_to("new/file")
    write_whole(tmp_path / "link", b"new")
    write_whole(tmp_path / "dangling", b"first")
    assert (tmp_path / "state").read_bytes() == b"new"
    assert (tmp_path / "new" / "file").read_bytes() == b"first"
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "dangling").is_symlink()
    assert _names(tmp_path) == ["dangling", "link", "new", "state"]


def test_a_link_in_a_circle_is_the_users_to_solve(tmp_path):
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(UserError, match=r"^Cannot write .*/a: Too many levels of symbolic links; choose another place"):
        write_whole(tmp_path / "a", b"new")
    assert _names(tmp_path) == ["a", "b"]


@pytest.mark.parametrize("linked", [False, True], ids=["itself", "through a link"])
def test_a_pipe_is_not_written(tmp_path, linked):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("pipe")
    with pytest.raises(UserError, match=r"^Cannot write .*: it is a device, a pipe or a socket; name a file\.$"):
        write_whole(tmp_path / ("link" if linked else "pipe"), b"new")
    assert _names(tmp_path) == ["link", "pipe"]


@pytest.mark.parametrize(
    "name", ["x" * 255, "é" * 127, os.fsdecode(b"caf\xe9")], ids=["letters", "two bytes", "no text"]
)
def test_any_name_that_a_file_can_have_is_written(tmp_path, name):
    write_whole(tmp_path / name, b"new")
    assert _names(tmp_path) == [name]


@pytest.mark.parametrize(
    ("name", "reason"), [("x" * 256, "File name too long"), ("a\0b", "no file can have this name")]
)
def test_a_name_that_no_file_can_have_is_the_users_to_solve(tmp_path, name, reason):
    with pytest.raises(UserError, match=rf"^Cannot write .*: {reason}; choose another"):
        write_whole(tmp_path / name, b"new")


def test_what_a_killed_process_left_of_a_long_name_is_swept(tmp_path, monkeypatch, dead):
    monkeypatch.setattr(os, "getpid", lambda: dead)
    monkeypatch.setattr(os, "replace", lambda *_: None)  # as if killed before it
    write_whole(tmp_path / ("x" * 255), b"half")
    assert len(_names(tmp_path)) == 1
    sweep(tmp_path)
    assert _names(tmp_path) == []


def test_a_writable_folder_is_made_and_left_empty(tmp_path):
    ensure_writable(tmp_path / "runs")
    assert _names(tmp_path / "runs") == []


def test_a_place_where_nothing_can_be_written_is_the_users_to_change(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(
        UserError, match=r"^Cannot write .*file/runs/\*: .*/file is a file and no folder; choose another"
    ):
        ensure_writable(tmp_path / "file" / "runs")
    with pytest.raises(UserError, match="choose another place"):
        ensure_writable(Path("/proc/nowhere"))


def test_a_folder_that_is_removed_while_a_run_is_in_it_is_not_made_again(tmp_path):
    run = tmp_path / "run"

    def removed_after(write):
        with kept(run):
            write_whole(run / "checkpoint", b"1")
            shutil.rmtree(run)
            write()

    for write in (
        lambda: write_whole(run / "weights" / "epoch", b"2"),
        lambda: ensure_writable(run),
        lambda: read_tensors(run / "weights", kind="weights"),
    ):
        with pytest.raises(MachineError, match=r"^The folder .*run was removed while a run was in it; run it again"):
            removed_after(write)
        assert not run.exists()


def test_a_folder_that_is_replaced_while_a_run_is_in_it_is_another_one(tmp_path):
    run = tmp_path / "run"
    with kept(run):
        shutil.rmtree(run)
        run.mkdir()
        with pytest.raises(MachineError, match="was removed"):
            write_whole(run / "record", b"")
    with kept(run):
        write_whole(run / "record", b"")
    assert _names(run) == ["record"]


def test_a_folder_that_becomes_read_only_during_a_run_is_the_machines_fault(tmp_path, monkeypatch):
    def read_only(*_):
        raise PermissionError(errno.EROFS, os.strerror(errno.EROFS))

    with kept(tmp_path / "run"):
        monkeypatch.setattr(os, "replace", read_only)
        with pytest.raises(MachineError, match="Read-only file system; check the disk and run it again"):
            write_whole(tmp_path / "run" / "record", b"")
    with pytest.raises(UserError, match="Read-only file system; choose another place"):
        write_whole(tmp_path / "elsewhere", b"")


def test_an_empty_folder_that_was_made_for_a_run_is_not_left(tmp_path):
    with pytest.raises(UserError), kept(tmp_path / "run"):
        raise UserError("refused")
    assert _names(tmp_path) == []


def test_what_killed_processes_left_of_a_file_goes_when_it_is_written_again(tmp_path, dead):
    _aside(tmp_path, pid=dead)
    other = tmp_path / f".other.{socket.gethostname()}.{dead}.aside"
    other.touch()
    write_whole(tmp_path / "state", b"new")
    assert _names(tmp_path) == sorted([other.name, "state"])


@pytest.mark.system
def test_what_a_killed_process_left_aside_is_swept(tmp_path):
    program = """
        import os, pathlib, sys
        from umix.files import write_whole

        os.replace = lambda *_: os._exit(9)  # killed between writing and renaming
        write_whole(pathlib.Path(sys.argv[1]), b"half")
    """
    killed = subprocess.run([sys.executable, "-c", textwrap.dedent(program), str(tmp_path / "state")])
    assert killed.returncode == 9
    assert len(_names(tmp_path)) == 1
    sweep(tmp_path)
    assert _names(tmp_path) == []


def test_sweep_keeps_what_a_living_process_writes(tmp_path, living, dead):
    kept, swept = _aside(tmp_path, pid=living), _aside(tmp_path, pid=dead)
    sweep(tmp_path)
    assert kept.exists()
    assert not swept.exists()


def test_sweep_keeps_what_a_process_of_another_user_writes(tmp_path, monkeypatch, dead):
    def not_permitted(*_):
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

    kept = _aside(tmp_path, pid=dead)
    monkeypatch.setattr(os, "kill", not_permitted)
    sweep(tmp_path)
    assert kept.exists()


def test_sweep_removes_what_bears_the_id_of_this_process(tmp_path):
    stale = _aside(tmp_path, pid=os.getpid())  # of an earlier process with this id: nothing is being written now
    sweep(tmp_path)
    assert not stale.exists()


@pytest.mark.parametrize("host", ["elsewhere", "{}.example.org", "not{}"], ids=["other", "longer", "ending alike"])
def test_sweep_keeps_what_other_machines_write(tmp_path, dead, host):
    kept = _aside(tmp_path, host=host.format(socket.gethostname()), pid=dead)
    sweep(tmp_path)
    assert kept.exists()


def test_sweep_keeps_every_other_file(tmp_path, dead):
    host = socket.gethostname()
    names = ["state", ".hidden", ".x.aside", f".x.{host}.copy.aside", f"x.{host}.{dead}.aside", f".x.{host}.{dead}"]
    for name in names:
        (tmp_path / name).write_bytes(b"mine")
    sweep(tmp_path)
    assert _names(tmp_path) == sorted(names)


def test_sweeping_a_folder_that_is_not_there_does_nothing(tmp_path):
    sweep(tmp_path / "nowhere")
    assert _names(tmp_path) == []


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


def test_every_truncation_of_a_tensor_file_is_refused(tmp_path):
    write_tensors(tmp_path / "whole", {"a": torch.arange(3.0)}, {"kind": "weights"})
    content = (tmp_path / "whole").read_bytes()
    for length in range(len(content)):
        (tmp_path / "cut").write_bytes(content[:length])
        with pytest.raises(UserError, match=r"cut must be a whole weights file, .*; delete it and run again\.$"):
            read_tensors(tmp_path / "cut", kind="weights")


class _Trap:
    """A pickle that would make a folder when it is read."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


@pytest.mark.parametrize(
    ("content", "rule"),
    [
        (b"epoch,accuracy\n1,0.5\n" * 9, "must be a whole weights file"),
        (save({"a": torch.ones(2)}), "must be a weights file written by umix, got kind None"),
        (
            save({"a": torch.ones(2)}, metadata={"format": "pt"}),
            "must be a weights file written by umix, got kind None",
        ),
        (
            save({"a": torch.ones(2)}, metadata={"umix": "[]"}),
            "must be a weights file written by umix, got kind None",
        ),
        (save({"a": torch.ones(2)}, metadata={"umix": "{"}), "must be a whole weights file"),
        (
            save({"a": torch.ones(2)}, metadata={"umix": '{"kind": "trajectory"}'}),
            "must be a weights file written by umix, got kind 'traj",
        ),
        (save({"a": torch.ones(2)}, metadata={"umix": "[" * 5000}), "must be a whole weights file"),
        (
            save({"a": torch.ones(2)}, metadata={"umix": '{"kind": "weights", "epoch": 3}'}),
            "must say its 'epoch' as a text, got 3",
        ),
        (
            save({"a": torch.ones(2)}, metadata={"umix": '{"kind": "weights", "n": ' + "9" * 5000 + "}"}),
            "must be a whole weights file",
        ),
    ],
    ids=[
        "text",
        "no metadata",
        "foreign metadata",
        "no table",
        "no json",
        "other kind",
        "nested",
        "a number",
        "digits",
    ],
)
def test_a_foreign_file_is_refused_in_one_line(tmp_path, content, rule):
    (tmp_path / "foreign").write_bytes(content)
    with pytest.raises(UserError) as caught:
        read_tensors(tmp_path / "foreign", kind="weights")
    assert str(caught.value).startswith(f"{tmp_path / 'foreign'} {rule}")
    assert len(str(caught.value).splitlines()) == 1
    assert (tmp_path / "foreign").read_bytes() == content


def test_a_pickle_is_refused_and_never_run(tmp_path):
    (tmp_path / "trap").write_bytes(pickle.dumps(_Trap(tmp_path / "sprung")))
    with pytest.raises(UserError, match="must be a whole weights file"):
        read_tensors(tmp_path / "trap", kind="weights")
    assert not (tmp_path / "sprung").exists()


def test_a_missing_tensor_file_is_named(tmp_path):
    with pytest.raises(UserError, match=r"^There is no checkpoint at .*absent\.$"):
        read_tensors(tmp_path / "absent", kind="checkpoint")


@pytest.mark.parametrize(
    ("put", "said"),
    [
        (lambda path: path.mkdir(), "must be a weights file, but it is a folder; delete or move it."),
        (os.mkfifo, "must be a weights file, but it is neither a file nor a folder; delete or move it."),
        (lambda path: path.symlink_to("/dev/null"), "must be a weights file, but it is neither a file nor a folder"),
    ],
    ids=["folder", "pipe", "device"],
)
def test_what_is_no_file_is_refused_before_it_is_opened(tmp_path, put, said):
    put(tmp_path / "odd")
    with pytest.raises(UserError) as caught:
        read_tensors(tmp_path / "odd", kind="weights")
    assert str(caught.value).startswith(f"{tmp_path / 'odd'} {said}")


@pytest.mark.parametrize("target", ["odd", "nowhere"])
def test_a_link_that_leads_nowhere_is_a_missing_file(tmp_path, target):
    (tmp_path / "odd").symlink_to(target)
    with pytest.raises(UserError, match=r"^There is no weights at .*odd\.$"):
        read_tensors(tmp_path / "odd", kind="weights")


def test_json_is_parsed_within_limits():
    assert parsed(b'{"a": [1, NaN]}')["a"][0] == 1
    for content in ("[" * 1000 + "]" * 1000, "9" * 5000, "{"):
        with pytest.raises(ValueError, match="line 1"):
            parsed(content)


def _damaged():
    raise UserError("The file must be whole; delete it and run again.")


def test_a_file_that_can_be_made_again_is_and_the_reason_is_told(tmp_path):
    told = []
    (tmp_path / "state").write_bytes(b"torn")
    assert unless_damaged(tmp_path / "state", _damaged, again="it is made again", warn=told.append) is None
    assert told == ["warning: The file must be whole; it is made again."]
    assert unless_damaged(tmp_path / "state", lambda: 7, again="", warn=told.append) == 7
    assert unless_damaged(tmp_path / "nowhere", _damaged, again="", warn=told.append) is None
    assert len(told) == 1


def test_a_folder_where_a_file_is_to_be_made_again_is_refused(tmp_path):
    with pytest.raises(UserError, match="must be whole"):
        unless_damaged(tmp_path, _damaged, again="it is made again", warn=lambda message: None)


def test_what_is_not_needed_any_more_is_removed_unless_it_is_a_folder(tmp_path):
    (tmp_path / "state").write_bytes(b"old")
    (tmp_path / "folder").mkdir()
    for name in ("state", "folder", "nowhere"):
        remove(tmp_path / name)
    assert _names(tmp_path) == ["folder"]


def test_a_link_that_leads_in_a_circle_is_the_users_and_not_the_machines(tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "record.json").symlink_to("record.json")
    with kept(tmp_path / "run"), pytest.raises(UserError, match=r"^Cannot write .*record\.json: Too many levels"):
        write_whole(tmp_path / "run" / "record.json", b"{}")

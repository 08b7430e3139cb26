"""Values on their way between processes: stored whole or not at all, and refused with a clear word."""

from __future__ import annotations

import pickle
import threading

import pytest

from fairpool.sdk.artifacts import FolderStore, open_store
from fairpool.sdk.context import StepContext, StepIdentity, get_step_context
from fairpool.sdk.errors import ArtifactError, InvalidUse, StepAborted, StepError, StepPreempted
from fairpool.sdk.pickling import pack, unpack


@pytest.fixture(params=["folder", "file", "memory"])
def store(request, tmp_path):
    roots = {"folder": str(tmp_path), "file": f"file://{tmp_path}", "memory": f"memory://{tmp_path.name}"}
    return open_store(roots[request.param])


def test_what_was_written_is_read_back_and_replaced_whole(store):
    store.write("a/b", b"one")
    store.write("a/b", b"two")
    assert store.read("a/b") == b"two" and store.read("a/c") is None


def test_a_write_that_fails_leaves_the_old_value_and_nothing_beside(tmp_path, monkeypatch):
    store = FolderStore(str(tmp_path))
    store.write("a", b"old")

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(ArtifactError, match="No space left on device; free some room"):
        store.write("a", b"new")
    assert store.read("a") == b"old" and [path.name for path in tmp_path.iterdir()] == ["a"]


def test_an_unknown_protocol_is_refused(tmp_path):
    with pytest.raises(ArtifactError, match="cannot use nowhere://x"):
        open_store("nowhere://x")


@pytest.mark.parametrize("value", [(number for number in range(2)), threading.Lock()], ids=["generator", "lock"])
def test_a_value_that_cannot_be_stored_is_named(value):
    with pytest.raises(ArtifactError, match=r"the result of step 'x', of type \w+, cannot be stored"):
        pack(value, what="the result of step 'x'")


def test_bytes_that_are_no_value_are_refused():
    with pytest.raises(ArtifactError, match="the checkpoint cannot be read back"):
        unpack(b"no pickle", what="the checkpoint")


def test_step_errors_keep_what_they_know_on_their_way():
    error = pickle.loads(pickle.dumps(StepPreempted("gone", step="train", request="req-1")))
    assert (type(error), str(error), error.step, error.request) == (StepPreempted, "gone", "train", "req-1")
    assert issubclass(StepPreempted, StepError)


@pytest.fixture
def context(tmp_path):
    identity = StepIdentity(run_id="r", run_name="run", step_id="s", step_name="train", attempt=1)
    return StepContext(identity, FolderStore(str(tmp_path)), "checkpoint")


def test_a_checkpoint_is_what_was_saved_last(context):
    assert context.load_checkpoint() is None and context.load_checkpoint(default=0) == 0
    context.save_checkpoint({"epoch": 1})
    context.save_checkpoint({"epoch": 2})
    assert context.load_checkpoint() == {"epoch": 2}


def test_a_checkpoint_that_cannot_be_stored_leaves_the_one_before(context):
    context.save_checkpoint(1)
    with pytest.raises(ArtifactError, match="the checkpoint of step 'train'"):
        context.save_checkpoint(iter([]) for _ in ())
    assert context.load_checkpoint() == 1


def test_being_told_to_end_is_seen_and_passes_through_except_exception(context):
    context.raise_if_aborting()
    assert not context.aborting and not context.seconds_left
    context._begin_abort("make room", 30)
    with pytest.raises(StepAborted, match="make room"):
        context.raise_if_aborting()
    assert not issubclass(StepAborted, Exception)
    assert 0 < (context.seconds_left or 0) <= 30


def test_a_callback_given_while_ending_is_called_at_once(context):
    context._begin_abort("make room", 30)
    called = []
    context.on_abort(lambda: called.append(1))
    assert called == [1]


def test_there_is_no_context_outside_a_step():
    with pytest.raises(InvalidUse, match="inside a running step"):
        get_step_context()

"""Steps and pipelines on the local orchestrator, with real processes, against a server in memory."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from fairpool.sdk.errors import (
    ArtifactError,
    InvalidUse,
    StepCancelled,
    StepFailed,
    StepPreempted,
    StepRejected,
    StepTimedOut,
    UpstreamFailed,
)
from fairpool.sdk.holds import hold
from fairpool.sdk.pipelines import pipeline
from fairpool.sdk.retry import StepRetryConfig
from fairpool.sdk.settings import ResourceSettings
from fairpool.sdk.steps import step, unmapped
from fairpool.wire.values import RequestStatus, RunStatus
from tests.unit.sdk import sample_steps as s
from tests.unit.sdk.sample_steps import OutOfData, gpus
from tests.waiting import wait_until


def test_a_step_called_in_a_pipeline_returns_its_result_from_another_process(serve):
    serve()

    @pipeline
    def both() -> tuple[int, int]:
        return s.add(1, right=2), s.process_id()

    total, pid = both()
    assert total == 3 and pid != os.getpid()


def test_a_step_called_outside_a_pipeline_is_a_run_of_its_own(serve):
    server = serve()
    assert s.add(1) == 2
    assert [(run["name"], run["status"]) for run in server.runs.values()] == [("add", RunStatus.COMPLETED)]


def test_a_future_given_to_another_step_travels_by_reference(serve):
    serve()

    @pipeline
    def chain() -> int:
        return s.add.submit(s.add.submit(1), right=s.add.submit(10)).result()

    assert chain() == 13


def test_map_walks_lists_side_by_side_and_gives_the_rest_to_each(serve):
    serve()

    @step
    def join(left: int, right: list[int], text: str) -> str:
        return f"{left}{right}{text}"

    @pipeline
    def fan() -> list[str]:
        return [future.result() for future in join.map(range(2), unmapped([7]), text="x")]

    assert fan() == ["0[7]x", "1[7]x"]


def test_map_refuses_lengths_that_differ(serve):
    serve()
    with pytest.raises(InvalidUse, match=r"left: 2, right: 3"):
        s.add.map([1, 2], [1, 2, 3])


def test_an_exception_of_the_step_reaches_the_caller_as_its_own_type_with_the_remote_traceback(serve):
    serve()
    with pytest.raises(OutOfData) as caught:
        s.fail("own")
    assert caught.value.left == 3
    assert "sample_steps.py" in "".join(caught.value.__notes__)


def test_an_exception_that_cannot_travel_arrives_as_text(serve):
    serve()
    with pytest.raises(StepFailed, match="raised Stubborn: a b"):
        s.fail("stubborn")


def test_a_step_that_is_killed_says_by_what_and_releases(serve):
    server = serve()
    with pytest.raises(StepFailed, match="SIGKILL"):
        s.fail("killed")
    assert [view.status for view in server.requests.values()] == [RequestStatus.RELEASED]


def test_a_step_that_exits_with_a_code_has_failed(serve):
    serve()
    with pytest.raises(StepFailed, match=r"sys\.exit\(7\)"):
        s.fail("exit")


def test_a_result_that_cannot_be_stored_is_named(serve):
    serve()
    with pytest.raises(ArtifactError, match=r"the result of step 'lock', of type lock, cannot be stored"):
        s.lock()


def test_an_argument_that_cannot_be_sent_is_refused_before_anything_is_asked_for(serve):
    server = serve()
    with pytest.raises(ArtifactError, match="the inputs of step 'add'"):
        s.add(threading.Lock())  # type: ignore[arg-type]
    assert not server.created


def test_wrong_arguments_are_refused_where_the_step_is_called(serve):
    serve()
    with pytest.raises(TypeError, match="step 'add': missing a required argument: 'left'"):
        s.add()  # type: ignore[call-arg]


def test_a_step_sees_exactly_its_devices_and_without_gpu_none(serve):
    serve(gpus=4)

    @pipeline
    def look() -> list[dict[str, str | None]]:
        futures = [s.visible_devices.with_options(settings=gpus(2)).submit(), s.visible_devices.submit()]
        return [future.result() for future in futures]

    two, none = look()
    assert two["CUDA_VISIBLE_DEVICES"] in ("0,1", "2,3")
    assert set(none.values()) == {""}


def test_ungoverned_work_keeps_its_surroundings(serve, monkeypatch):
    serve(governed=False)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "5")
    assert s.visible_devices()["CUDA_VISIBLE_DEVICES"] == "5"


def test_a_log_says_once_that_gpus_are_not_counted(serve, monkeypatch, capfd):
    """Notes reach a standard error that nobody watches; the output of steps stays in their own logs."""
    serve(governed=False)
    monkeypatch.setenv("FAIRPOOL_ECHO", "auto")
    looks = s.visible_devices.with_options(settings=gpus(1))

    @pipeline
    def two_looks() -> None:
        looks()
        looks()

    two_looks()
    told = [line for line in capfd.readouterr().err.splitlines() if "counted" in line]
    assert len(told) == 1 and "no policy is for component:local, so no GPUs are counted or chosen" in told[0]


def test_a_log_says_whose_policies_there_are_where_none_is_for_the_work(serve, monkeypatch, capfd):
    """S15."""
    serve(governed=False).subjects_with_policies = ["team:research"]
    monkeypatch.setenv("FAIRPOOL_ECHO", "auto")
    looks = s.visible_devices.with_options(settings=gpus(1))
    looks()
    monkeypatch.setenv("FAIRPOOL_SUBJECTS", "team:reserch")
    looks()
    with hold(gpu_count=1, name="mine"):
        pass
    step, slip, held = [line for line in capfd.readouterr().err.splitlines() if "counted" in line]
    assert "there are policies for team:research: FAIRPOOL_SUBJECTS says whose you use" in step
    assert "did you mean team:research?" in slip
    assert held.startswith("fairpool: mine: no policy is for") and "did you mean team:research?" in held


def test_steps_run_in_parallel_as_far_as_the_pool_allows(serve, tmp_path):
    server = serve(gpus=2)
    waits = s.wait_for.with_options(settings=gpus(1))

    @pipeline
    def three() -> list[str]:
        futures = [waits.submit(str(tmp_path / "go")) for _ in range(3)]
        both = (RequestStatus.ALLOCATED, RequestStatus.ALLOCATED, RequestStatus.QUEUED)
        wait_until(lambda: tuple(sorted(view.status for view in server.requests.values())) == both, what="two run")
        (tmp_path / "go").write_text("done")
        return [future.result() for future in futures]

    assert three() == ["done"] * 3
    assert {view.status for view in server.requests.values()} == {RequestStatus.RELEASED}


def test_a_step_without_a_chance_is_rejected_with_the_reason(serve):
    serve(gpus=1)
    with pytest.raises(StepRejected, match="more GPUs than there are"):
        s.add.with_options(settings=gpus(2))(1)


def test_step_settings_override_pipeline_settings_field_by_field(serve):
    server = serve(gpus=8)

    @pipeline(settings={"resources": ResourceSettings(cpu_count=2, memory="1GB", gpu_count=4)})
    def merged() -> int:
        return s.add.with_options(settings={"resources": {"gpu_count": 0, "memory": "2GB"}})(1)

    merged()
    assert server.created[0].demand == {"mcpu": 2000, "memory_mb": 2000}


def test_a_failing_step_is_tried_again_and_each_attempt_is_a_request(serve):
    server = serve()
    assert s.fails_before_attempt(3) == 3
    assert len(server.of("fails_before_attempt")) == 3
    with pytest.raises(RuntimeError, match="not yet"):
        s.fails_before_attempt(4)


def test_a_preempted_step_saves_lets_go_queues_again_and_resumes(serve, tmp_path, monkeypatch, capfd):
    """What happens to it is in the log, each once."""
    server = serve(gpus=1)
    monkeypatch.setenv("FAIRPOOL_ECHO", "auto")

    @pipeline
    def learn() -> list[tuple[int, int]]:
        future = s.train.submit(str(tmp_path), 4)
        wait_until(lambda: (tmp_path / "at-two").exists(), what="two epochs")
        server.preempt(server.of("train")[0].id)
        return future.result()

    assert learn() == [(1, 0), (1, 1), (2, 2), (2, 3)]
    first, second = server.of("train")
    assert first.status is RequestStatus.PREEMPTED and second.retry_of == first.id
    told, again = [line for line in capfd.readouterr().err.splitlines() if line.startswith("fairpool: train: ")]
    assert "told to let go within" in told and "req-production got back what was reserved for it" in told
    assert "attempt 1 ended" in again and again.endswith("it is tried again")


def test_without_retries_a_preempted_step_fails_naming_pool_policy_and_taker(serve, tmp_path):
    """S32."""
    server = serve(gpus=1)

    @pipeline
    def learn() -> None:
        future = s.saves_when_told.submit(str(tmp_path))
        wait_until(lambda: (tmp_path / "started").exists(), what="the step runs")
        server.preempt(server.of("saves_when_told")[0].id)
        future.result()

    with pytest.raises(StepPreempted, match=r"pool 'gpus' \(policy component:prod\): request req-production") as failed:
        learn()
    happened, _, advice = str(failed.value).partition("\n")
    assert "retry" not in happened, "the first line is also what is said of a step that is tried again"
    assert "allow no further attempt" in advice
    assert "req-production" in (tmp_path / "saved").read_text()
    assert (tmp_path / "finally").exists()


def test_a_step_that_leaves_by_itself_is_not_gone_before_its_callbacks_have_saved(serve, tmp_path):
    server = serve(gpus=1)

    @pipeline
    def learn() -> None:
        future = s.leaves_before_its_callback.submit(str(tmp_path))
        wait_until(lambda: (tmp_path / "started").exists(), what="the step runs")
        server.preempt(server.of("leaves_before_its_callback")[0].id)
        future.result()

    with pytest.raises(StepPreempted):
        learn()
    assert (tmp_path / "saved").exists()


def test_a_step_that_does_not_let_go_is_killed_at_the_deadline(serve, tmp_path):
    server = serve(gpus=1)

    @pipeline
    def learn() -> None:
        future = s.ignores_everything.submit(str(tmp_path))
        wait_until(lambda: (tmp_path / "started").exists(), what="the step runs")
        server.preempt(server.of("ignores_everything")[0].id, grace_s=0.5)
        future.result()

    with pytest.raises(StepPreempted):
        learn()
    pid = int((tmp_path / "started").read_text())
    wait_until(lambda: not Path(f"/proc/{pid}").exists(), what="the process is gone")


def test_a_step_over_its_max_runtime_is_ended(serve, tmp_path):
    serve(gpus=1)
    limited = s.saves_when_told.with_options(settings={"resources": {"max_runtime": 1}})
    with pytest.raises(StepTimedOut, match="max_runtime of 1 s"):
        limited(str(tmp_path))
    if (tmp_path / "started").exists():  # on a busy machine the second may be over before the step has begun
        assert "max_runtime" in (tmp_path / "saved").read_text()


def test_a_lapsed_lease_ends_the_step(serve, tmp_path):
    server = serve(gpus=1)

    @pipeline
    def learn() -> None:
        future = s.saves_when_told.submit(str(tmp_path))
        wait_until(lambda: (tmp_path / "started").exists(), what="the step runs")
        server.say(server.of("saves_when_told")[0].id, RequestStatus.EXPIRED)
        future.result()

    with pytest.raises(Exception, match="its lease lapsed"):
        learn()


def test_cancelling_a_future_withdraws_what_waits_and_ends_what_runs(serve, tmp_path):
    server = serve(gpus=1)

    @pipeline
    def learn() -> tuple[BaseException | None, BaseException | None]:
        running = s.saves_when_told.submit(str(tmp_path))
        wait_until(lambda: (tmp_path / "started").exists(), what="the step runs")
        waiting = s.saves_when_told.submit(str(tmp_path))
        wait_until(lambda: server.with_status(RequestStatus.QUEUED), what="the other waits")
        assert waiting.cancel() and isinstance(waiting.exception(), StepCancelled)
        assert running.cancel()
        return running.exception(), waiting.exception()

    assert all(isinstance(error, StepCancelled) for error in learn())
    assert {view.status for view in server.requests.values()} == {RequestStatus.RELEASED, RequestStatus.CANCELLED}


def test_steps_after_a_failed_one_are_not_run(serve):
    serve()

    @pipeline
    def chain() -> int:
        return s.add.submit(s.fail.submit("own")).result()

    with pytest.raises(UpstreamFailed, match="step add was not run: step fail"):
        chain()


def test_a_failure_that_nobody_looked_at_is_raised_at_the_end(serve):
    server = serve()

    @pipeline
    def careless() -> int:
        s.fail.submit("own")
        return s.add(1)

    with pytest.raises(OutOfData):
        careless()
    assert [run["status"] for run in server.runs.values()] == [RunStatus.FAILED]


def test_a_failure_that_was_looked_at_does_not_fail_the_run(serve):
    server = serve()

    @pipeline
    def careful() -> int:
        return 1 if s.fail.submit("own").exception() else 0

    assert careful() == 1
    assert [run["status"] for run in server.runs.values()] == [RunStatus.COMPLETED]


def test_when_the_pipeline_function_fails_submitted_steps_finish(serve):
    server = serve()

    @pipeline
    def breaks() -> None:
        s.add.submit(1)
        raise KeyError("mine")

    with pytest.raises(KeyError):
        breaks()
    assert [step["status"] for step in server.steps.values()] == [RunStatus.COMPLETED]


def test_when_the_pipeline_function_fails_submitted_steps_are_ended_where_it_says_so(serve, tmp_path):
    server = serve(gpus=1)

    @pipeline(on_failure="cancel")
    def breaks() -> None:
        s.saves_when_told.submit(str(tmp_path))
        wait_until(lambda: (tmp_path / "started").exists(), what="the step runs")
        raise KeyError("mine")

    with pytest.raises(KeyError):
        breaks()
    assert [step["status"] for step in server.steps.values()] == [RunStatus.CANCELLED]


def test_a_step_called_inside_a_step_is_an_ordinary_call(serve):
    server = serve()

    @step
    def outer() -> int:
        return s.add(1) + s.add.submit(2).result()

    assert outer() == 5 and len(server.requests) == 1


def test_a_pipeline_inside_a_pipeline_is_part_of_its_run(serve):
    server = serve()

    @pipeline(settings={"resources": {"cpu_count": 1}})
    def inner() -> int:
        return s.add(1)

    @pipeline(settings={"resources": {"memory": "1GB"}})
    def outer() -> int:
        return inner() + s.add(2)

    assert outer() == 5 and len(server.runs) == 1
    assert [create.demand for create in server.created] == [{"mcpu": 1000, "memory_mb": 1000}, {"memory_mb": 1000}]


def test_the_context_says_who_the_step_is(serve):
    serve(gpus=1)
    assert s.who_am_i.with_options(settings=gpus(1))() == ("who_am_i", "who_am_i", 1, "gpus", ("0",))


def test_a_thousand_waiting_steps_use_no_thread_each(serve):
    server = serve(gpus=1)
    server.closed = True
    before = threading.active_count()

    @pipeline
    def many() -> int:
        futures = s.add.with_options(settings=gpus(1)).map(range(1000))
        wait_until(lambda: len(server.requests) == 1000, what="a thousand requests")
        threads = threading.active_count() - before
        for future in futures:
            future.cancel()
        return threads

    assert many() <= 4
    assert {view.status for view in server.requests.values()} == {RequestStatus.CANCELLED}


def test_output_of_a_step_is_kept_in_its_log(serve):
    server = serve()

    @step(retry=StepRetryConfig())
    def talks() -> None:
        os.write(1, b"to standard output\n")
        os.write(2, b"to standard error\n")

    talks()
    [told] = server.steps.values()
    assert Path(told["log"]).read_text() == "to standard output\nto standard error\n"

"""`hold` for any program, and stacks that say where steps run."""

from __future__ import annotations

import threading

import pytest

from fairpool.sdk.errors import HoldError, InvalidUse, StackError
from fairpool.sdk.holds import hold
from fairpool.sdk.orchestrators.local import LocalOrchestrator
from fairpool.sdk.pipelines import pipeline
from fairpool.sdk.stacks import Stack, find_stack
from fairpool.wire.stacks import ComponentView, StackView
from fairpool.wire.values import RequestStatus
from tests.unit.sdk import sample_steps as s
from tests.waiting import wait_until


def test_a_hold_names_its_devices_and_is_given_back(serve):
    server = serve(gpus=2)
    with hold(gpu_count=2, pool="gpus") as held:
        assert (held.pool, held.devices) == ("gpus", ("0", "1"))
        assert held.environment["CUDA_VISIBLE_DEVICES"] == "0,1"
        assert server.created[0].subjects == ["component:local"]
    assert [view.status for view in server.requests.values()] == [RequestStatus.RELEASED]


def test_a_hold_is_given_back_when_its_block_fails(serve):
    server = serve(gpus=1)
    with pytest.raises(KeyError), hold(gpu_count=1):
        raise KeyError
    assert not server.with_status(RequestStatus.ALLOCATED)


def test_a_hold_waits_no_longer_than_it_said(serve):
    server = serve(gpus=1)
    with hold(gpu_count=1), pytest.raises(HoldError, match=r"not granted within 0\.1 s"):
        hold(gpu_count=1, timeout=0.1).acquire()
    wait_until(lambda: server.with_status(RequestStatus.CANCELLED), what="the request is withdrawn")


def test_a_hold_that_can_never_be_granted_says_why(serve):
    serve(gpus=1)
    with pytest.raises(HoldError, match="rejected: more GPUs than there are"):
        hold(gpu_count=2).acquire()


def test_a_hold_that_must_be_given_back_calls_back_in_time(serve):
    server = serve(gpus=1)
    told = threading.Event()
    with hold(gpu_count=1, on_preempt=told.set, component="mine", subjects=("team:red",)) as held:
        server.preempt(held.request)
        assert told.wait(10)
        assert held.preempting and (held.seconds_left or 0) > 20
        with pytest.raises(HoldError, match="req-production"):
            held.raise_if_preempting()
    assert server.requests[held.request].status is RequestStatus.PREEMPTED
    assert server.created[0].subjects == ["component:mine", "team:red"]


def test_a_hold_that_lasted_for_its_max_runtime_must_be_given_back(serve):
    serve(gpus=1)
    told = threading.Event()
    with hold(gpu_count=1, max_runtime=1, on_preempt=told.set) as held:
        assert told.wait(10) and held.preempting
        with pytest.raises(HoldError, match="max_runtime"):
            held.raise_if_preempting()


def test_what_is_held_is_told_only_while_it_is(serve):
    serve(gpus=1)
    with pytest.raises(HoldError, match="nothing is held"):
        _ = hold(gpu_count=1).devices
    with pytest.raises(InvalidUse, match="not both"):
        hold(s.gpus(1)["resources"], gpu_count=1)


def stack(name: str, orchestrator: str, *, active: bool = False, operators: tuple[str, ...] = ()) -> StackView:
    return StackView(
        id=f"stk-{name}",
        name=name,
        version=1,
        orchestrator=orchestrator,
        active=active,
        step_operators=list(operators),
    )


def component(name: str, flavor: str = "local") -> ComponentView:
    return ComponentView(id=f"cmp-{name}", name=name, version=1, kind="orchestrator", flavor=flavor)


def test_without_any_stack_steps_run_on_the_local_orchestrator(serve):
    found = find_stack(serve(), None)
    assert found.name == "default" and found.orchestrator.subject == "component:local"


def test_the_active_stack_is_taken_unless_one_is_named(serve, monkeypatch):
    server = serve()
    server.stack_views = [stack("default", "local"), stack("prod", "cluster", active=True)]
    server.component_views = [component("cluster")]
    assert find_stack(server, None).orchestrator.name == "cluster"
    assert find_stack(server, "default").orchestrator.name == "local"
    monkeypatch.setenv("FAIRPOOL_STACK", "default")
    assert find_stack(server, None).name == "default"


def test_an_unknown_stack_is_refused_with_the_nearest(serve):
    server = serve()
    server.stack_views = [stack("prod", "local")]
    with pytest.raises(StackError, match="unknown stack 'prd'; did you mean 'prod'"):
        find_stack(server, "prd")


def test_a_step_can_name_a_step_operator_and_meets_its_rules(serve):
    server = serve()
    server.stack_views = [stack("prod", "local", operators=("gpu-cluster",))]
    server.component_views = [component("gpu-cluster")]

    @pipeline(stack="prod")
    def both() -> int:
        return s.add(1) + s.add.with_options(step_operator="gpu-cluster")(1)

    assert both() == 4
    assert [create.subjects for create in server.created] == [["component:local"], ["component:gpu-cluster"]]


@pytest.mark.parametrize(("echo", "times"), [("auto", 1), ("never", 0)])
def test_a_log_says_once_why_a_hold_waits_unless_silence_is_wanted(serve, monkeypatch, capfd, echo, times):
    serve(gpus=1)
    monkeypatch.setenv("FAIRPOOL_ECHO", echo)
    with hold(gpu_count=1, name="first"), pytest.raises(HoldError), hold(gpu_count=1, name="second", timeout=1.5):
        pass
    assert capfd.readouterr().err.count("fairpool: second: the pool is full\n") == times


def test_a_missing_step_operator_is_refused_before_anything_is_asked_for(serve):
    server = serve()

    @pipeline
    def wrong() -> int:
        return s.add.with_options(step_operator="gpu-cluster")(1)

    with pytest.raises(StackError, match="has no step operator 'gpu-cluster'"):
        wrong()
    assert not server.created


def test_a_stack_can_be_chosen_at_the_call(serve):
    server = serve()
    server.stack_views = [stack("prod", "cluster")]
    server.component_views = [component("cluster")]

    @pipeline
    def one() -> int:
        return s.add(1)

    assert one(stack="prod") == 2
    assert one.with_options(stack=Stack(orchestrator=LocalOrchestrator("mine")))() == 2
    assert [create.subjects for create in server.created] == [["component:cluster"], ["component:mine"]]
    assert [(view.name, view.flavor) for view in server.component_views] == [("cluster", "local"), ("mine", "local")]


@pytest.mark.parametrize(
    ("flavor", "says"),
    [
        ("kubernetes", "cannot run steps on; possible: local"),
        ("no.such:Thing", "cannot import its flavor"),
        ("fairpool.sdk.units:ByteUnit", "is no Orchestrator"),
    ],
)
def test_a_flavor_that_cannot_be_used_is_refused(serve, flavor, says):
    server = serve()
    server.stack_views = [stack("prod", "cluster")]
    server.component_views = [component("cluster", flavor)]
    with pytest.raises(StackError, match=says):
        find_stack(server, "prod")

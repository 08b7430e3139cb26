"""What steps ask for: fields, their refusals, how they merge, and the demand that they become."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairpool.sdk.errors import InvalidUse
from fairpool.sdk.retry import StepRetryConfig
from fairpool.sdk.settings import MOST_NODES, ResourceSettings, read_settings
from fairpool.sdk.units import ByteUnit, duration_s
from fairpool.wire.requests import MAX_PARTS


def test_settings_become_the_demand_that_s1_gives_as_its_example():
    settings = ResourceSettings(gpu_count=2, cpu_count=4, memory="16GiB", pool_resources={"tensorrt_sessions": 1})
    assert settings.to_demand() == {"gpu": 2, "mcpu": 4000, "memory_mb": 17180, "tensorrt_sessions": 1}


@pytest.mark.parametrize(
    ("fields", "demand"),
    [
        ({"gpu_count": 0, "pool_resources": {"gpu": 2}}, {}),
        ({"cpu_count": 1, "pool_resources": {"mcpu": 500}}, {"mcpu": 1000}),
        ({"cpu_count": 0.1}, {"mcpu": 100}),
        ({"cpu_count": 0.001}, {"mcpu": 1}),
        ({"gpu_count": 0.5}, {"gpu": 0.5}),
        ({"memory": "1KB"}, {"memory_mb": 1}),
        ({"memory": "2000KB"}, {"memory_mb": 2}),
        ({"pool_resources": {"license/matlab": "0.125"}}, {"license/matlab": 0.125}),
    ],
)
def test_settings_become_exact_demands(fields, demand):
    """S1."""
    assert ResourceSettings(**fields).to_demand() == demand


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"gpu_count": 1.5}, r"gpu_count 1.5 is neither a whole number nor a fraction below one.*possible: 1, 2"),
        ({"gpu_count": -1}, "gpu_count -1 is negative"),
        ({"gpu_count": 0.0001}, "more than three fractional digits"),
        ({"gpu_count": True}, "not a number"),
        ({"gpu_count": float("nan")}, "not a finite number"),
        ({"cpu_count": 0}, "cpu_count 0 is too small; possible: more than 0"),
        ({"cpu_count": "many"}, "cpu_count 'many' is not a number"),
        ({"memory": "16 gigs"}, r"memory '16 gigs' is not .*possible: 512MB"),
        ({"memory": "16G"}, "possible"),
        ({"memory": "16GB\n"}, "possible"),
        ({"memory": "-1GB"}, "possible"),
        ({"pool_resources": {"": 1}}, "resource key ''"),
        ({"pool_resources": {"a b": 1}}, "resource key 'a b'"),
        ({"pool_resources": {"k" * 64: 1}}, "1 to 63"),
        ({"pool_resources": {"x": -1}}, r"pool_resources\['x'\] -1 is negative"),
        ({"pool_resources": {"x": 10**15 + 1}}, "too large"),
        ({"pool_resources": {"gpu": 1.5}}, "gpu 1.5 is neither"),
        ({"pool_resources": {"step_run": 2}}, "counted by the server"),
        ({"min_replicas": 3, "max_replicas": 2}, "min_replicas 3 is over max_replicas 2"),
        ({"autoscaling_target": 0}, "autoscaling_target"),
        ({"autoscaling_metric": "gpu"}, "'cpu', 'memory', 'concurrency' or 'rps'"),
        ({"max_concurrency": 0}, "max_concurrency"),
        ({"node_count": 0}, "node_count"),
        ({"max_runtime": "soon"}, "no length of time; possible: seconds"),
        ({"wait_timeout": -1}, "no length of time"),
        ({"gpus": 1}, "unknown field 'gpus'; did you mean 'gpu_count'"),
        ({"memroy": "1GB"}, "did you mean 'memory'"),
    ],
)
def test_wrong_settings_are_refused_with_what_is_possible(fields, says):
    with pytest.raises(InvalidUse, match=says):
        ResourceSettings(**fields)


def test_settings_are_frozen_and_preemptible_by_default():
    settings = ResourceSettings()
    assert settings.preemptible is True and settings.empty
    with pytest.raises(InvalidUse):
        settings.gpu_count = 1  # type: ignore[misc]


def test_only_what_is_set_on_purpose_overrides():
    base = ResourceSettings(gpu_count=2, memory="1GB", preemptible=False)
    merged = ResourceSettings(gpu_count=0).merged_over(base)
    assert (merged.gpu_count, merged.memory, merged.preemptible) == (0, "1GB", False)
    assert ResourceSettings(preemptible=True).merged_over(base).preemptible is True


def test_as_many_nodes_can_be_asked_for_as_the_server_takes():
    assert MOST_NODES == MAX_PARTS


def test_memory_is_told_in_any_unit():
    settings = ResourceSettings(memory="2GiB")
    assert settings.get_memory() == pytest.approx(2.147483648)
    assert settings.get_memory(unit=ByteUnit.MIB) == 2048 and settings.get_memory("KiB") == 2 * 1024**2
    assert ResourceSettings().get_memory() is None


@given(st.integers(0, 10**6), st.sampled_from(list(ByteUnit)))
def test_memory_in_its_own_unit_is_the_number_that_was_written(number, unit):
    assert ResourceSettings(memory=f"{number}{unit.value}").get_memory(unit) == number


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("2h", 7200), ("30m", 1800), ("1h30m", 5400), ("90", 90), (90, 90), ("1.5s", 1.5), (timedelta(minutes=1), 60)],
)
def test_lengths_of_time_are_read_as_people_write_them(text, seconds):
    assert duration_s(text) == seconds


def test_runtime_and_waiting_are_whole_seconds():
    settings = ResourceSettings(max_runtime="1.2s", wait_timeout="5m")
    assert (settings.max_runtime, settings.wait_timeout) == (2, 300)


def test_retries_wait_longer_each_time_and_never_more_than_a_day():
    retry = StepRetryConfig(max_retries=3, delay="10s", backoff=3)
    assert [retry.delay_s(number) for number in (1, 2, 3)] == [10, 30, 90]
    assert retry.delay_s(10_000) == 86_400 and StepRetryConfig().delay_s(1) == 0


def test_the_settings_argument_takes_resources_and_nothing_else():
    assert read_settings({"resources": {"gpu_count": 1}}, of="step 'x'").gpu_count == 1
    with pytest.raises(InvalidUse, match="unknown settings 'resource'; did you mean 'resources'"):
        read_settings({"resource": {}}, of="step 'x'")
    with pytest.raises(InvalidUse, match="must be named"):
        read_settings(ResourceSettings(), of="step 'x'")  # type: ignore[arg-type]

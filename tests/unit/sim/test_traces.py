"""Traces: every format is read as its archive describes it, and what is wrong is told with its place."""

import gzip
from collections.abc import Callable
from pathlib import Path

import pytest

from fairpool.core.amounts import vector
from fairpool.core.ids import SECOND
from fairpool.sim.jobs import Order, in_order
from fairpool.sim.traces import openb, philly, swf, table
from fairpool.sim.traces.formats import detected, read_trace
from fairpool.sim.traces.reading import TraceFault

Written = Callable[[str, str], Path]

PHILLY = "timestamp,duration,num_gpus,gpu_time,cluster\n"
OPENB = (
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n"
)
OWN = "submitted_at,run_s,subject,gpu\n"


@pytest.fixture
def written(tmp_path: Path) -> Written:
    def write(name: str, text: str) -> Path:
        path = tmp_path / name
        if name.endswith(".gz"):
            path.write_bytes(gzip.compress(text.encode()))
        else:
            path.write_text(text)
        return path

    return write


def test_a_philly_job_is_of_its_virtual_cluster_and_takes_whole_nodes_and_one_part_for_the_rest(
    written: Written,
) -> None:
    path = written("philly.csv.gz", PHILLY + ",,,,\n2017-10-09 07:01:55,66.0,20,1320.0,11cb48\n")
    [job] = philly.read(path)
    assert job.submitted_at == 1_507_532_515 * SECOND
    assert job.run_us == 66 * SECOND
    assert list(map(str, job.subjects)) == ["team:11cb48"]
    assert job.demand is not None
    assert job.demand.parts == (vector({"gpu": 8}), vector({"gpu": 8}), vector({"gpu": 4}))


def test_a_philly_job_of_no_time_runs_for_a_second(written: Written) -> None:
    [job] = philly.read(written("philly.csv", PHILLY + "2017-10-09 07:01:55,0.0,1,0,11cb48\n"))
    assert job.run_us == SECOND


def test_an_openb_task_with_one_gpu_may_ask_for_a_fraction_of_it(written: Written) -> None:
    path = written("pods.csv", OPENB + "pod-1,6000,12288,1,460,V100M16|V100M32,LS,Running,100,160,110\n")
    [job] = openb.read(path)
    assert job.demand is not None
    assert job.demand.total == vector({"gpu": "0.46", "mcpu": 6000, "memory_mb": 12885})
    assert (job.run_us, job.profile, str(job.subjects[0])) == (50 * SECOND, "V100M16-V100M32", "team:LS")


def test_a_workload_in_the_standard_format_counts_from_its_beginning(written: Written) -> None:
    text = "; UnixStartTime: 1000\n;\n1 5 2 60 4 -1 -1 4 120 -1 1 7 3 9 -1 -1 -1 -1\n"
    [job] = swf.read(written("log.swf", text), "gpu")
    assert (job.submitted_at, job.run_us, job.max_runtime_s) == (1005 * SECOND, 60 * SECOND, 120)
    assert list(map(str, job.subjects)) == ["team:g3", "user:u7"]
    assert job.demand is not None
    assert job.demand.total == vector({"gpu": 4})


def test_a_processor_is_a_thousand_mcpu(written: Written) -> None:
    [job] = swf.read(written("log.swf", "1 5 2 60 4 -1 -1 4 120 -1 1 7 3 9 -1 -1 -1 -1\n"))
    assert job.demand is not None
    assert job.demand.total == vector({"mcpu": 4000})


def test_jobs_that_never_ran_or_asked_for_nothing_are_left_out(written: Written) -> None:
    never = "1 5 2 -1 4 -1 -1 4 120 -1 1 7 3 9 -1 -1 -1 -1\n2 5 2 60 0 -1 -1 -1 120 -1 1 7 3 9 -1 -1 -1 -1\n"
    with pytest.raises(TraceFault, match="holds no job"):
        read_trace(written("log.swf", never))


def test_a_table_of_our_own_says_what_is_asked_for_by_key(written: Written) -> None:
    columns = "submitted_at,run_s,subject,gpu,demand.license/matlab,preemptible,priority,parts,max_runtime_s,name\n"
    row = "2026-11-21T08:00:00+01:00,1.5,team:red user:ann,2,1,no,-3,2,60,train\n"
    [job] = table.read(written("jobs.csv", columns + row))
    assert job.submitted_at == 1_795_244_400 * SECOND
    assert (job.run_us, job.preemptible, job.priority, job.max_runtime_s) == (1_500_000, False, -3, 60)
    assert job.demand is not None
    assert job.demand.total == vector({"gpu": 4, "license/matlab": 2})
    assert len(job.demand.parts) == 2
    assert (job.name, list(map(str, job.subjects))) == ("train", ["team:red", "user:ann"])


def test_seconds_since_1970_and_moments_with_fractions_are_exact(written: Written) -> None:
    jobs = table.read(written("jobs.csv", OWN + "1700000000.25,1,red,1\n2023-11-14T22:13:20.999999,1,red,1\n"))
    assert [job.submitted_at for job in jobs] == [1_700_000_000_250_000, 1_700_000_000_999_999]


def test_a_profile_may_stand_for_the_demand(written: Written) -> None:
    [job] = table.read(written("jobs.csv", "submitted_at,run_s,subject,profile\n0,1,team:red,half\n"))
    assert (job.demand, job.profile) == (None, "half")


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (PHILLY + "2017-10-09 07:01:55,1,1,1,a\n", "philly"),
        (OPENB + "p,1,1,1,1000,,LS,Running,0,9,0\n", "openb"),
        (OWN + "0,1,team:a,1\n", "csv"),
        ("1 5 2 60 4 -1 -1 4 120 -1 1 7 3 9 -1 -1 -1 -1\n", "swf"),
        ("; Version: 2\n1 5 2 60 4 -1 -1 4 120 -1 1 7 3 9 -1 -1 -1 -1\n", "swf"),
    ],
)
def test_a_trace_is_told_by_its_beginning(written: Written, text: str, name: str) -> None:
    path = written("some.trace", text)
    assert detected(path) == name
    assert len(read_trace(path)) == 1


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "is of no format that is known"),
        ("hello world\n", "it begins with 'hello world'"),
        (OWN, "holds no job"),
        (OWN + "yesterday,1,red,1\n", "jobs.csv:2: submitted_at: 'yesterday' is neither a date and time nor seconds"),
        (OWN + "0,soon,red,1\n", "jobs.csv:2: run_s: 'soon' is no number of seconds"),
        (OWN + "0,-1,red,1\n", "jobs.csv:2: run_s: -1 is below 0"),
        (OWN + "0,1e999,red,1\n", "jobs.csv:2: run_s: '1e999' is no number of seconds"),
        (OWN + "0,1,red,1.5\n", "jobs.csv:2: gpu: 1.5 GPUs in one part"),
        (OWN + "0,1,red,-1\n", "jobs.csv:2: gpu: amount '-1' is negative"),
        (OWN + "0,1,red,\n", "jobs.csv:2: profile: asks for nothing"),
        (OWN + "0,1,team:,1\n", "jobs.csv:2: subject:"),
        (OWN.replace("gpu", "gpus") + "0,1,red,1\n", "jobs.csv:1: gpus: no such column"),
        (PHILLY + "2017-10-09 07:01:55,1.5,1,1,a\n", "duration: '1.5' is no whole number"),
        (PHILLY + "tomorrow,1,1,1,a\n", "timestamp: 'tomorrow' is no date and time"),
        ("1 5 2 60 4 -1 -1 4 120 -1 1 7 3 9 -1 -1 -1 -1\n1 2 3\n", "jobs.csv:2: 3 fields"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(written: Written, text: str, told: str) -> None:
    with pytest.raises(TraceFault) as fault:
        read_trace(written("jobs.csv", text))
    assert told in str(fault.value)


def test_a_file_that_is_not_there_or_not_whole_is_told(tmp_path: Path, written: Written) -> None:
    with pytest.raises(TraceFault, match="cannot be read: No such file"):
        read_trace(tmp_path / "none.csv")
    half = written("half.csv.gz", OWN + "0,1,red,1\n" * 1000)
    half.write_bytes(half.read_bytes()[:-20])
    with pytest.raises(TraceFault, match="is not a whole gzip file"):
        read_trace(half)


def test_orders_give_each_job_a_priority_inside_its_policy(written: Written) -> None:
    jobs = table.read(written("jobs.csv", OWN + "5,10,red,1\n0,30,red,1\n9,20,red,1\n"))
    assert [(job.name, job.priority) for job in in_order(jobs, Order.TRACE)] == [("2", 0), ("1", 0), ("3", 0)]
    assert [job.priority for job in in_order(jobs, Order.OLDEST)] == [0, -1, -2]
    assert [job.priority for job in in_order(jobs, Order.SHORTEST)] == [-30, -10, -20]

"""Profiles and the queues that follow from them, typed at the real program."""

from __future__ import annotations

from fairpool.wire.requests import RequestCreate
from tests.e2e.cli.conftest import Machine

REJECTED, TIMED_OUT, NOT_FOUND = 6, 7, 3


def test_a_profile_its_defaults_and_the_queue_that_follows(pooled: Machine) -> None:
    told = pooled.ok("profile", "create", "half", "--demand", "gpu=0.5", "--pool", "gpus", "--max-runtime", "2h")
    assert told == "profile half created: gpu 0.5 in gpus\n"
    pooled.ok("policy", "attach", "gpus", "team:vision")
    rows = {row["name"]: row for row in pooled.json("queue", "list", "--subject", "team:vision")}
    assert list(rows) == ["vision/half"]
    assert (rows["vision/half"]["pending"], rows["vision/half"]["running"]) == (0, 0)
    done = pooled("run", "--team", "vision", "--profile", "half", "--", "true")
    assert done.code == 0, done.err
    [ran] = pooled.requests()
    assert (ran.profile, ran.max_runtime_s, ran.preemptible) == ("half", 7200, True)
    told = pooled.ok("profile", "update", "half", "--non-preemptible", "--label", "tier=gold")
    assert told == (
        "profile half changed: defaults preemptible none, max_runtime_s 7200, labels none"
        " → preemptible no, max_runtime_s 7200, labels tier gold\n"
    )
    done = pooled("run", "--team", "vision", "--profile", "half", "--", "true")
    assert done.code == REJECTED and "must not be interrupted" in done.err
    assert pooled("run", "--team", "vision", "--profile", "half", "--preemptible", "--", "true").code == 0


def test_where_there_is_no_queue_it_is_said_what_makes_one(pooled: Machine) -> None:
    done = pooled("queue", "list")
    assert (done.code, done.out) == (0, "")
    assert "one follows from each profile and each policy that offers it" in done.err
    assert pooled.json("queue", "list") == []


def test_a_queue_shows_who_waits_where_and_why_nothing_starts(pooled: Machine) -> None:
    pooled.ok("profile", "create", "one", "--demand", "gpu=1", "--pool", "gpus")
    pooled.ok("policy", "attach", "gpus", "team:vision")
    pooled.ok("policy", "attach", "gpus", "team:rest", "--priority", "5")
    pooled.client.submit(RequestCreate(demand={"gpu": 2}, subjects=["prod"], lease_s=600, preemptible=False), wait_s=5)
    for name in ("first", "second"):
        pooled.client.submit(RequestCreate(profile="one", subjects=["team:vision"], name=name, lease_s=600))
    found = pooled.json("queue", "describe", "vision/one")
    assert (found["pending"], found["running"], found["next"]) == (2, 0, "later")
    assert [(line["name"], line["positions"]) for line in found["requests"]] == [
        ("first", {"gpus": 1}),
        ("second", {"gpus": 2}),
    ]
    shown = pooled.ok("queue", "describe", "vision/one")
    assert "2, the oldest for" in shown and "waits, 3rd in line for pool gpus" in shown and "1 in gpus" in shown


def test_a_queue_that_is_not_there_says_why(pooled: Machine) -> None:
    pooled.ok("profile", "create", "one", "--demand", "gpu=1", "--pool", "gpus")
    pooled.ok("profile", "create", "pair", "--demand", "gpu=2", "--pool", "gpus")
    pooled.ok("policy", "attach", "gpus", "team:vision", "--limit", "gpu=1")
    done = pooled("queue", "describe", "vision/pair")
    assert done.code == NOT_FOUND
    assert "2 gpu is asked for, the limit of team:vision on pool gpus is 1" in done.err
    done = pooled("policy", "update", "gpus", "team:vision", "--profile", "pair")
    assert done.code == 2 and "profile 'pair' asks for 2 of 'gpu', and the limit of team:vision is 1" in done.err
    pooled.ok("policy", "update", "gpus", "team:vision", "--profile", "one")
    done = pooled("profile", "update", "one", "--demand", "gpu=2")
    assert done.code == 2 and "policy gpus/team:vision offers profile 'one'" in done.err
    assert pooled("queue", "describe", "vision").code == 2


def test_a_policy_with_a_schedule_shows_what_is_in_force_and_when_it_changes(pooled: Machine) -> None:
    windows = "[{start: '* * * * *', duration_s: 7200, timezone: Europe/Berlin, limit: {gpu: 1}}]"
    done = pooled("policy", "attach", "gpus", "team:vision", "--limit", "gpu=2", "--schedule", windows)
    assert done.code == 2 and "schedule.start" in done.err and "more than once an hour" in done.err
    windows = "[{start: '0 * * * *', duration_s: 7200, timezone: Europe/Berlin, limit: {gpu: 1}}]"
    pooled.ok("policy", "attach", "gpus", "team:vision", "--limit", "gpu=2", "--schedule", windows)
    shown = pooled.ok("policy", "describe", "gpus/team:vision")
    assert "0 * * * * for 2h, Europe/Berlin" in shown
    assert "window 1 is open: priority 0, limit gpu 1" in shown
    [found] = pooled.json("policy", "list", "gpus", "--subject", "team:vision")
    assert (found["limit"], found["now"]["limit"], found["now"]["window"]) == ({"gpu": 2}, {"gpu": 1}, 0)
    assert found["next_change_at"]
    waits = ("run", "--team", "vision", "--gpus", "2", "--pool", "gpus", "--wait-timeout", "1")
    assert pooled(*waits, "--", "true").code == TIMED_OUT  # what the policy allows without the window waits for that
    pooled.ok("policy", "update", "gpus/team:vision", "--schedule", "[]")
    assert "Schedule" not in pooled.ok("policy", "describe", "gpus/team:vision")
    assert pooled("run", "--team", "vision", "--gpus", "2", "--", "true").code == 0


def test_a_policy_given_to_another_team_takes_the_right_of_those_who_wait(pooled: Machine) -> None:
    pooled.ok("policy", "attach", "gpus", "team:vision")
    pooled.client.submit(RequestCreate(demand={"gpu": 2}, subjects=["prod"], lease_s=600, preemptible=False), wait_s=5)
    waiting = pooled.client.submit(RequestCreate(demand={"gpu": 1}, subjects=["team:vision"], lease_s=600))
    told = pooled.ok("policy", "update", "gpus/team:vision", "--subject", "team:speech")
    assert "policy gpus/team:speech changed: subject team:vision → team:speech" in told
    ended = pooled.client.request(waiting.id)
    assert ended.status == "cancelled"
    assert [reason.code for reason in ended.reasons] == ["POLICY_OF_OTHERS"]
    assert "team:vision" in pooled.ok("request", "explain", waiting.id)

"""`fairpool run`: a command gets what it asked for, is told when it must end, and leaves nothing held behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pexpect
import pytest

from tests.e2e.cli.conftest import Machine
from tests.waiting import wait_until

WAITS_FOR_TERM = "trap 'echo ended > ended; exit 0' TERM; echo $$ > started; while :; do sleep 0.05; done"


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.parametrize(
    ("command", "code"),
    [
        (("true",), 0),
        (("sh", "-c", "exit 7"), 7),
        (("sh", "-c", "kill -9 $$"), 137),
        (("sh", "-c", "kill -TERM $$"), 143),
        (("no-such-program",), 127),
        (("/",), 126),
    ],
)
def test_a_run_passes_on_how_its_command_ended(shared: Machine, command: tuple[str, ...], code: int) -> None:
    assert shared("run", "--", *command).code == code
    assert not list(shared.client.requests(view="live")), "nothing is held any more"


def test_a_command_whose_interpreter_is_missing_ends_with_127_and_holds_nothing(shared: Machine) -> None:
    script = shared.file("odd")
    script.write_text("#!/no/such/interpreter\n")
    script.chmod(0o755)
    assert shared("run", "--gpus", "1", "--", "./odd").code == 127
    assert not list(shared.client.requests(view="live"))


def test_exactly_the_granted_devices_are_visible(pooled: Machine) -> None:
    shows = (
        "--",
        "sh",
        "-c",
        "echo $CUDA_VISIBLE_DEVICES/$NVIDIA_VISIBLE_DEVICES/$ROCR_VISIBLE_DEVICES/$FAIRPOOL_POOL",
    )
    assert pooled.ok("run", "--component", "research", "--gpus", "2", *shows) == "0,1/0,1/0,1/gpus\n"
    assert pooled.ok("run", "--component", "research", *shows, CUDA_VISIBLE_DEVICES="4,5") == "///gpus\n"
    one = pooled.ok("run", "--component", "research", "--gpus", "0.5", *shows, CUDA_VISIBLE_DEVICES="4,5")
    assert one == "4/4/4/gpus\n", "devices count among those that the surroundings show"


def test_work_that_no_policy_governs_keeps_its_surroundings_unless_it_asks_for_no_gpu(machine: Machine) -> None:
    shows = ("--", "sh", "-c", "echo [$CUDA_VISIBLE_DEVICES]")
    assert machine.ok("run", "--gpus", "1", *shows, CUDA_VISIBLE_DEVICES="4,5") == "[4,5]\n"
    assert machine.ok("run", *shows, CUDA_VISIBLE_DEVICES="4,5") == "[]\n"


def test_standard_streams_are_the_commands_own(shared: Machine) -> None:
    done = shared("run", "-q", "--", "sh", "-c", "cat; echo to-err >&2", stdin="hello\n")
    assert (done.out, done.err) == ("hello\n", "to-err\n")


def test_an_ask_that_can_never_run_is_rejected_with_its_own_code(pooled: Machine) -> None:
    done = pooled("run", "--component", "research", "--gpus", "3", "--", "true")
    assert done.code == 6
    assert "3 gpu is asked for" in done.err
    quiet = pooled("run", "-q", "--component", "research", "--gpus", "3", "--", "true")
    assert (quiet.code, "rejected: 3 gpu is asked for" in quiet.err) == (6, True), "that is an error, however quiet"
    assert pooled("run", "--gpus", "1.5", "--", "true").code == 2
    assert pooled("run", "--memory", "16 gigs", "--", "true").code == 2
    assert pooled("run", "--pool", "nix", "--", "true").code == 3


def test_a_run_waits_only_as_long_as_it_is_willing_to_and_says_why(pooled: Machine) -> None:
    holder = pooled.start("run", "--component", "prod", "--gpus", "2", "--", "sh", "-c", WAITS_FOR_TERM)
    pooled.wait_for("started")
    done = pooled("run", "--component", "research", "--gpus", "1", "--wait-timeout", "1s", "--", "true")
    assert done.code == 7
    assert "waiting: 1st in line for pool gpus: pool gpus has 0 gpu free of 2, 1 asked for" in done.err
    assert holder.poll() is None


def test_a_check_says_now_later_or_never_and_runs_nothing(pooled: Machine) -> None:
    asks = ("run", "--component", "research", "--check")
    assert pooled.ok(*asks, "--gpus", "1", "--", "touch", "ran") == "now: it would start at once in pool gpus\n"
    pooled.start("run", "--component", "prod", "--gpus", "2", "--", "sh", "-c", WAITS_FOR_TERM)
    pooled.wait_for("started")
    later = pooled.ok(*asks, "--gpus", "1", "--", "touch", "ran")
    assert later.startswith("later: waits, 1st in line for pool gpus: pool gpus has 0 gpu free of 2, 1 asked for\n")
    assert "start unknown: nothing is known of how long request" in later
    never = pooled(*asks, "--gpus", "3", "--", "touch", "ran")
    assert (never.code, never.out.startswith("never: can never run: ")) == (6, True)
    assert not pooled.file("ran").exists()


def test_a_waiting_run_starts_when_room_is_made(pooled: Machine) -> None:
    holder = pooled.start("run", "--component", "prod", "--gpus", "2", "--", "sh", "-c", WAITS_FOR_TERM)
    pooled.wait_for("started")
    waiting = pooled.start("run", "--component", "research", "--gpus", "1", "--", "echo", "my turn")
    pooled.wait_for_statuses("queued", "allocated")
    holder.send_signal(signal.SIGTERM)
    assert waiting.communicate(timeout=90)[0] == "my turn\n"
    assert pooled.wait_for("ended") == "ended"
    assert holder.wait(30) == 0, "the command ended itself well"


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_signal_ends_a_run_that_waits_and_withdraws_its_request(
    pooled: Machine, number: signal.Signals, code: int
) -> None:
    pooled.start("run", "--component", "prod", "--gpus", "2", "--", "sh", "-c", WAITS_FOR_TERM)
    pooled.wait_for("started")
    waiting = pooled.start("run", "--component", "research", "--gpus", "1", "--", "echo", "never")
    pooled.wait_for_statuses("queued", "allocated")
    waiting.send_signal(number)
    out, err = waiting.communicate(timeout=90)
    assert (waiting.returncode, out) == (code, "")
    assert "Traceback" not in err
    pooled.wait_for_statuses("cancelled", "allocated")


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGUSR1, 138)])
def test_signals_reach_the_command(pooled: Machine, number: signal.Signals, code: int) -> None:
    running = pooled.start(
        "run", "--component", "research", "--gpus", "1", "--", "sh", "-c", "echo > on; exec sleep 60"
    )
    wait_until(pooled.file("on").exists, what="the command to start")
    running.send_signal(number)
    assert running.wait(30) == code
    pooled.wait_for_statuses("released")


def test_a_killed_run_takes_its_whole_tree_along_and_its_lease_lapses(pooled: Machine) -> None:
    tree = "sh -c 'echo $$ > inner; exec sleep 600' & echo $$ > outer; wait"
    running = pooled.start("run", "--component", "research", "--gpus", "2", "--", "sh", "-c", tree)
    pids = [int(pooled.wait_for(name)) for name in ("outer", "inner")]
    running.kill()
    wait_until(lambda: not any(map(is_alive, pids)), what="the command and its child to end")
    pooled.wait_for_statuses("expired")


DIES_ONCE_ITS_COMMAND_LIVES = """
import os, signal, subprocess
from fairpool.cli.running import child

class Dies(subprocess.Popen):
    def __init__(self, command, **settings):
        super().__init__(command, **settings)
        if command[0] == "sh":
            print(open("inner").read(), end="", flush=True)
            os.kill(os.getpid(), signal.SIGKILL)

child.subprocess.Popen = Dies
child.Child(["sh", "-c", "sleep 600 >&- & echo $! > inner; wait"], os.environ)
"""


def test_a_run_killed_as_soon_as_its_command_lives_takes_the_whole_tree_along(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "inner")
    program = [sys.executable, "-c", DIES_ONCE_ITS_COMMAND_LIVES]
    died = subprocess.run(program, cwd=tmp_path, stdout=subprocess.PIPE, text=True, timeout=90, check=False)
    assert died.returncode == -signal.SIGKILL
    wait_until(lambda: not is_alive(int(died.stdout)), what="what its command has started to end")


def test_what_a_command_leaves_in_the_background_ends_with_it(pooled: Machine) -> None:
    pooled.ok("run", "--component", "research", "--", "sh", "-c", "sleep 600 >&- 2>&- & echo $! > left")
    wait_until(lambda: not is_alive(int(pooled.wait_for("left"))), what="the background process to end")
    assert pooled.statuses() == ["released"]


def test_an_evicted_run_saves_ends_waits_and_goes_on_in_its_old_place(pooled: Machine) -> None:
    command = "if [ $FAIRPOOL_ATTEMPT = 2 ]; then echo resumed: $(cat saved); exit 3; fi; " + WAITS_FOR_TERM
    on_abort = "echo $FAIRPOOL_REASON by $FAIRPOOL_DEADLINE_AT > saved"
    asks = ("--component", "research", "--gpus", "2", "--on-abort", on_abort, "--requeue")
    evicted = pooled.start("run", *asks, "--", "sh", "-c", command)
    pooled.wait_for("started")
    assert pooled.ok("run", "--component", "prod", "--gpus", "1", "--", "sh", "-c", "cat ended") == "ended\n"
    out, err = evicted.communicate(timeout=90)
    assert evicted.returncode == 3, err
    assert out.startswith("resumed: preempted in pool 'gpus'")
    assert "by 20" in out, "the deadline was told"
    second, first = pooled.requests("research")
    assert (first.status, second.status, second.retry_of) == ("preempted", "released", first.id)
    assert second.queued_at == first.queued_at


def test_an_evicted_run_that_does_not_end_is_killed_before_its_deadline_and_fails(pooled: Machine) -> None:
    pooled.ok("policy", "update", "gpus/research", "--grace", "2")
    stubborn = "trap '' TERM; echo > started; while :; do sleep 0.05; done"
    evicted = pooled.start("run", "--component", "research", "--gpus", "2", "--", "sh", "-c", stubborn)
    wait_until(pooled.file("started").exists, what="the command to start")
    pooled.ok("run", "--component", "prod", "--gpus", "1", "--", "true")
    _, err = evicted.communicate(timeout=90)
    assert evicted.returncode == 137
    assert "got back what was reserved for it" in err
    assert sorted(pooled.statuses()) == ["preempted", "released"], "it let go before its hold was ended for it"


def test_a_run_ends_when_it_has_had_its_time(pooled: Machine) -> None:
    done = pooled("run", "--component", "research", "--max-runtime", "1s", "--", "sleep", "60")
    assert done.code == 143
    assert "has run for its 1 s" in done.err


def test_a_run_outlives_a_server_that_is_killed(pooled: Machine) -> None:
    running = pooled.start("run", "--component", "research", "--gpus", "1", "--", "sh", "-c", WAITS_FOR_TERM)
    pooled.wait_for("started")
    pooled.end_server()
    assert pooled.statuses() == ["allocated"], "the next command starts it again, and it knows"
    running.send_signal(signal.SIGTERM)
    assert running.wait(30) == 0
    pooled.wait_for_statuses("released")


def test_a_run_that_loses_its_right_while_it_waits_says_which_however_quiet(pooled: Machine) -> None:
    holder = pooled.start("run", "--component", "prod", "--gpus", "2", "--", "sh", "-c", WAITS_FOR_TERM)
    pooled.wait_for("started")
    waiting = pooled.start("run", "-q", "--component", "research", "--gpus", "1", "--", "true")
    pooled.wait_for_statuses("queued", "allocated")
    pooled.ok("policy", "detach", "gpus", "research", "--yes")
    _, err = waiting.communicate(timeout=90)
    assert waiting.returncode == 1
    assert err.startswith("fairpool: cancelled while it waited")
    assert "the policy of component:research on pool gpus is no more" in err
    assert holder.poll() is None


def test_a_cancelled_run_is_stopped(pooled: Machine) -> None:
    running = pooled.start("run", "--component", "research", "--gpus", "1", "--", "sh", "-c", WAITS_FOR_TERM)
    pooled.wait_for("started")
    pooled.ok("request", "cancel", pooled.requests("research")[0].id)
    _, err = running.communicate(timeout=90)
    assert pooled.wait_for("ended") == "ended"
    assert running.returncode == 1
    assert "its request was cancelled" in err


def test_runs_show_what_became_of_each_attempt(pooled: Machine) -> None:
    pooled("run", "--component", "research", "--gpus", "1", "--name", "try-it", "--label", "team=a", "--", "false")
    run = pooled.json("runs", "list", "--label", "team=a")[0]
    assert (run["name"], run["kind"], run["status"]) == ("try-it", "command", "failed")
    told = pooled.ok("runs", "describe", run["id"])
    assert "exit code 1" in told
    assert "released" in told
    assert pooled("runs", "logs", run["id"]).code == 0


def test_a_terminal_stays_a_terminal_and_ctrl_c_ends_the_command(pooled: Machine) -> None:
    command = "test -t 0 && test -t 1 && stty size && read line && echo got $line; sleep 60"
    typed = pooled.terminal("run", "--component", "research", "--gpus", "1", "--", "sh", "-c", command)
    typed.expect("30 100")
    typed.sendline("words")
    typed.expect("got words")
    typed.sendintr()
    typed.expect(pexpect.EOF)
    typed.wait()
    assert typed.exitstatus == 130
    pooled.wait_for_statuses("released")


def test_ctrl_c_at_a_terminal_ends_waiting_at_once(pooled: Machine) -> None:
    pooled.start("run", "--component", "prod", "--gpus", "2", "--", "sh", "-c", WAITS_FOR_TERM)
    pooled.wait_for("started")
    typed = pooled.terminal("run", "--component", "research", "--gpus", "1", "--", "true")
    typed.expect("waiting: 1st in line")
    typed.expect(r"waiting \d+s")
    typed.sendintr()
    typed.expect("not started")
    typed.expect(pexpect.EOF)
    typed.wait()
    assert typed.exitstatus == 130
    pooled.wait_for_statuses("cancelled", "allocated")


def test_two_first_commands_at_once_find_one_server(machine: Machine) -> None:
    both = [machine.start("pool", "create", name, "--capacity", "gpu: 1") for name in ("a", "b")]
    said = [process.communicate(timeout=90) for process in both]
    assert [process.returncode for process in both] == [0, 0], said
    assert [pool["name"] for pool in machine.json("pool", "list")] == ["a", "b"]

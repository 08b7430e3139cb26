"""What is typed wrong is refused: the exit code says what kind of mistake, stderr says where and what is possible.

One row is one command: the claim, what is typed, the exit code, and words of what stderr says. Nothing is printed to
stdout, no traceback is shown, and nothing has changed afterwards.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator

import pytest

from fairpool.wire.policies import PolicyCreate
from fairpool.wire.pools import PoolCreate
from fairpool.wire.stacks import ComponentCreate
from tests.e2e.cli.conftest import Machine

USAGE, NOT_FOUND, CONFLICT = 2, 3, 5
RANGE = "0 to 1000000000000000 with at most three fractional digits"

Row = tuple[str, str, int, tuple[str, ...]]

# fmt: off
ROWS: list[Row] = [
    # commands and options
    ("unknown noun", "poool list", USAGE, ("no command 'poool'", "did you mean 'pool'?")),
    ("unknown verb", "pool lst", USAGE, ("no command 'lst'", "did you mean 'list'?")),
    ("verb like none", "server bogus", USAGE, ("no command 'bogus'", "possible: start, stop, status")),
    ("unknown option", "pool create n --capcity '{}'", USAGE, ("--capcity", "--capacity")),
    ("missing argument", "pool create", USAGE, ("NAME",)),
    ("argument too many", "server stop now", USAGE, ("unexpected extra argument (now)",)),
    ("unknown format", "pool list -o xml", USAGE, ("'xml'", "'table', 'wide', 'json'")),
    ("unknown column", "pool list --columns nope", USAGE, ("no column 'nope'", "NAME, STATE")),
    ("unknown column to sort by", "pool list --sort-by nope", USAGE, ("cannot sort by 'nope'", "NAME, STATE")),
    ("limit of nothing", "request list --limit 0", USAGE, ("--limit", "x>=1")),
    ("limit in words", "runs list --limit all", USAGE, ("--limit", "'all' is not a valid integer")),
    ("unknown view", "pool requests gpus --view waiting", USAGE, ("'waiting'", "'queued', 'active', 'all'")),
    ("lifetime in words", "token create t --expires soon", USAGE, ("--expires", "'soon' is no duration")),
    ("unknown status", "request list --status waiting", USAGE, ("status: 'waiting'", "queued, allocated")),
    ("label without a value", "request list --label x", USAGE, ("label: 'x'", "key=value")),
    ("deletion that nobody confirms", "pool delete gpus", USAGE, ("no terminal to ask at", "--yes")),
    ("unknown shell", "completion tcsh", USAGE, ("'tcsh'", "'bash', 'zsh', 'fish'")),
    ("no address", "context use nope", USAGE, ("'nope' is no address", "http(s)://HOST:PORT")),
    # amounts
    ("negative amount", "pool create n --capacity '{\"gpu\": -1}'", USAGE, ("capacity.gpu: -1: negative", RANGE)),
    ("too precise", "pool create n --capacity 'gpu: 1.0001'", USAGE, ("capacity.gpu: 1.0001: more than three", RANGE)),
    ("no number", "pool create n --capacity '{gpu: many}'", USAGE, ("capacity.gpu: 'many': not a number", RANGE)),
    ("NaN", "pool create n --capacity '{gpu: .nan}'", USAGE, ("capacity.gpu: nan: not a finite number", RANGE)),
    ("infinity", "pool create n --capacity '{gpu: .inf}'", USAGE, ("capacity.gpu: inf: not a finite number", RANGE)),
    ("over 10^15", "pool create n --capacity '{\"gpu\": 2e15}'", USAGE, ("capacity.gpu", "too large", RANGE)),
    ("over 10^15, of a limit", "policy attach gpus team:x --limit '{gpu: 9999999999999999}'", USAGE, ("limit.gpu",)),
    ("negative weight", "policy attach gpus team:x --weight -1", USAGE, ("weight: '-1': negative", RANGE)),
    ("negative grace", "policy attach gpus team:x --grace -1", USAGE, ("grace_s: -1: too small", "0 or more")),
    ("priority in words", "policy attach gpus team:x --priority high", USAGE, ("--priority", "'high'")),
    ("one and a half GPUs", "run --gpus 1.5 -- true", USAGE, ("demand.gpu", "1.5", "a fraction below one")),
    ("one and a half GPUs in a profile", "profile create p --demand '{gpu: 1.5}' --pool gpus", USAGE, ("demand.gpu",)),
    ("negative GPUs", "run --gpus -1 -- true", USAGE, ("demand.gpu: '-1': negative", RANGE)),
    ("memory in words", "run --memory '16 gigs' -- true", USAGE, ("--memory", "'16 gigs'", "8GB, 512MiB")),
    ("memory of an unknown unit", "run --memory 16XB -- true", USAGE, ("--memory", "'16XB'", "8GB, 512MiB")),
    ("cores of no number", "run --cpus nan -- true", USAGE, ("--cpus", "'nan'", "4 or 0.5")),
    # JSON and YAML
    ("broken JSON", "pool create n --capacity '{\"gpu\": 8'",
     USAGE, ("--capacity", "neither JSON nor YAML", "line 1, column 10")),
    ("broken YAML", "pool create n --capacity 'gpu: 1\n x: - 2'", USAGE, ("--capacity", "line 2, column 3")),
    ("YAML of a program", "pool create n --capacity '!!python/object:os.system {}'",
     USAGE, ("line 1, column 1", "python")),
    ("list for an object", "pool create n --capacity '[1]'", USAGE, ("--capacity is '[1]'", "or an object")),
    ("text for an object", "pool create n --capacity gpu", USAGE, ("--capacity is 'gpu'", "or an object")),
    ("nothing for an object", "pool create n --capacity ''", USAGE, ("--capacity is ''", "or an object")),
    ("key twice", "pool create n --capacity '{\"gpu\": 1, \"gpu\": 2}'", USAGE, ("column 12", "'gpu' is there twice")),
    ("key that is a number", "pool create n --capacity '{1: 1}'", USAGE, ("capacity.1", "not text")),
    ("node of no amounts", "pool create n --nodes '{a: 1}'", USAGE, ("--nodes", "'a' is 1", "{gpu: 8}")),
    ("broken configuration", "component create c --config '['", USAGE, ("--config", "line 1, column 2")),
    # names and keys
    ("name with a space", "pool create 'a b'", USAGE, ("name: pool name 'a b'", "letters, digits")),
    ("name of 64 characters", f"component create {'c' * 64}", USAGE, ("64 characters", "1 to 63")),
    ("name that moves the cursor", "pool create 'a\x1b[2Jb'", USAGE, ("name: pool name 'a\\x1b[2Jb'",)),
    ("empty name", "pool create ''", USAGE, ("name", "empty")),
    ("empty reference", "pool describe ''", USAGE, ("a name, an id or a unique id prefix",)),
    ("key with a space", "pool create n --capacity '{\"a b\": 1}'", USAGE, ("capacity.a b", "letters, digits")),
    ("subject of an unknown kind", "policy attach gpus squad:x", USAGE, ("subject: 'squad'", "component, team")),
    ("subject with a space", "policy attach gpus 'team:a b'", USAGE, ("team name 'a b'", "letters, digits")),
    # contradictions
    ("reserved over limit", "policy attach gpus team:x --reserved '{gpu: 3}' --limit '{gpu: 1}'",
     USAGE, ("reserved.gpu", "at most 1")),
    ("limit over capacity", "policy attach gpus team:x --limit '{gpu: 9}'", USAGE, ("limit.gpu", "at most 8")),
    ("reservations over capacity", "policy attach gpus team:x --reserved '{gpu: 5}'",
     USAGE, ("component:k8s 4, team:x 5", "at most 8")),
    ("key that the pool lacks", "policy attach gpus team:x --limit '{tpu: 1}'", USAGE, ("limit.tpu", "possible: gpu")),
    ("shrinking below reservations", "pool update gpus --capacity '{gpu: 1}'", USAGE, ("capacity.gpu", "4 or more")),
    ("second policy of a subject", "policy attach gpus k8s", CONFLICT, ("exists already", "fairpool policy update")),
    ("pool that is there", "pool create gpus", CONFLICT, ("pool 'gpus' exists already",)),
    # what there is not
    ("pool", "pool describe gpu", NOT_FOUND, ("no pool 'gpu'", "did you mean 'gpus'?", "fairpool pool list")),
    ("pool to delete", "pool delete gpu --yes", NOT_FOUND, ("no pool 'gpu'", "did you mean 'gpus'?")),
    ("pool of a policy", "policy attach gpuss k8s", NOT_FOUND, ("no pool 'gpuss'", "did you mean 'gpus'?")),
    ("pool of a command", "run --pool gpuss -- true", NOT_FOUND, ("no pool 'gpuss'", "did you mean 'gpus'?")),
    ("pool of a list", "request list --pool gpuss", NOT_FOUND, ("no pool 'gpuss'", "did you mean 'gpus'?")),
    ("component", "component describe k8", NOT_FOUND, ("no component 'k8'", "did you mean 'k8s'?")),
    ("component of a policy", "policy attach gpus k9s", NOT_FOUND, ("no component 'k9s'", "did you mean 'k8s'?")),
    ("component of a stack", "stack create s --orchestrator k9s", NOT_FOUND, ("no component 'k9s'", "'k8s'")),
    ("stack", "stack activate defalt", NOT_FOUND, ("no stack 'defalt'", "did you mean 'default'?")),
    ("profile of a command", "run --profile big -- true", NOT_FOUND, ("no profile 'big'", "fairpool profile list")),
    ("policy", "policy detach nope --yes", NOT_FOUND, ("no policy 'nope'", "fairpool policy list")),
    ("request", "request explain nope", NOT_FOUND, ("no request 'nope'", "fairpool request list")),
    ("run", "runs logs nope", NOT_FOUND, ("no run 'nope'", "fairpool runs list")),
    ("node", "node cordon gpus n1", NOT_FOUND, ("no node 'n1'", "fairpool node list")),
    ("program to run", "run --gpus 1 --pool gpus -- ./nope", 127, ("./nope: command not found",)),
    ("program to run, a folder", "run -- /tmp", 126, ("/tmp: not executable",)),
    ("program for the end", "run --on-abort './nope.sh now' -- true", USAGE, ("--on-abort", "./nope.sh is no program")),
    ("program for the end, half quoted", "run --on-abort \"./save 'x\" -- true",
     USAGE, ("--on-abort", "no closing quotation")),
    # files
    ("scenario that is not there", "policy test nope.yaml", USAGE, ("nope.yaml: cannot be read", "No such file")),
    ("scenario of broken YAML", "policy test broken.yaml", USAGE, ("broken.yaml:2", "column 4")),
    ("scenario with an unknown key", "policy test odd.yaml", USAGE, ("odd.yaml:3: stepps", "did you mean 'steps'?")),
    ("scenario that is no text", "policy test bytes.yaml", USAGE, ("bytes.yaml: is no UTF-8 text",)),
    ("scenario of nothing", "policy test empty.yaml", USAGE, ("empty.yaml: holds no scenario",)),
    ("scenario that is a folder", "policy test config", USAGE, ("config: cannot be read", "Is a directory")),
    ("backup into no folder", "db backup nowhere/x.db", 1, ("nowhere/x.db", "No such file or directory")),
]
# fmt: on


def state(machine: Machine) -> object:
    client = machine.client
    declared = (client.pools(), client.policies(), client.components(), client.stacks(), client.profiles())
    return (*declared, list(client.requests(view="all")))


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    made = Machine(tmp_path_factory.mktemp("refusals"))
    made.client.create_pool(PoolCreate(name="gpus", capacity={"gpu": 8}))
    made.client.create_component(ComponentCreate(name="k8s"))
    made.client.attach_policy(PolicyCreate(pool="gpus", subject="k8s", reserved={"gpu": 4}))
    made.file("broken.yaml").write_text("name: x\n  y: [1\n")
    made.file("odd.yaml").write_text("pools:\n  gpus: {gpu: 8}\nstepps: []\n")
    made.file("bytes.yaml").write_bytes(b"\xff\xfe")
    made.file("empty.yaml").touch()
    made.file("config").mkdir(exist_ok=True)
    yield made
    made.close()


@pytest.mark.parametrize("row", ROWS, ids=[row[0] for row in ROWS])
def test_what_is_typed_wrong_is_refused_and_changes_nothing(machine: Machine, row: Row) -> None:
    _, typed, code, told = row
    before = state(machine)
    done = machine(*shlex.split(typed))
    assert (done.code, done.out) == (code, ""), done
    for words in told:
        assert words in done.err
    assert "Traceback" not in done.err
    assert "this is a bug" not in done.err
    assert "\x1b" not in done.err
    assert state(machine) == before

"""Each kind of document through the command line: any file and order, all or nothing, printed and applied again."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
import yaml
from cryptography.fernet import Fernet

from fairpool.cli import main
from fairpool.wire.manifests import schemas
from fairpool.wire.manifests.kinds import KINDS
from tests.documents import FULL
from tests.e2e.cli.conftest import Done, Machine

NEEDS: Mapping[str, tuple[str, ...]] = {
    "component": (),
    "user": (),
    "team": ("user",),
    "service-account": ("team", "user"),
    "pool": (),
    "profile": ("pool",),
    "vault": ("team", "user"),
    "policy": ("pool", "profile", "team", "user"),
    "stack": ("component",),
    "webhook": ("pool", "team", "user"),
}
"""What a document of each kind names, and what that names."""


@pytest.fixture(scope="module")
def keeping(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    """A machine whose server can keep secrets."""
    made = Machine(tmp_path_factory.mktemp("kinds"))
    made.environment["FAIRPOOL_VAULT_KEY"] = Fernet.generate_key().decode()
    yield made
    made.close()


class Typist:
    """Types commands within this process, which is quicker than a process each; the server is a real one."""

    def __init__(self, machine: Machine, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder, self._monkeypatch, self._capsys = machine.folder, monkeypatch, capsys
        monkeypatch.chdir(machine.folder)
        for name, value in machine.environment.items():
            monkeypatch.setenv(name, value)

    def __call__(self, *words: str, stdin: str = "") -> Done:
        self._monkeypatch.setattr("sys.stdin", io.StringIO(stdin))
        self._capsys.readouterr()
        code = main.run(words)
        captured = self._capsys.readouterr()
        return Done(code, captured.out, captured.err)

    def ok(self, *words: str) -> str:
        done = self(*words)
        assert done.code == 0, (words, done)
        return done.out


@pytest.fixture
def typed(keeping: Machine, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Typist:
    return Typist(keeping, monkeypatch, capsys)


def name_of(document: Mapping[str, Any]) -> str:
    return f"{document['pool']}/{document['subject']}" if document["kind"] == "policy" else str(document["name"])


def listed(typed: Typist, kind: str) -> list[str]:
    found = json.loads(typed.ok(kind, "list", "-o", "json"))
    return [f"{each['pool']}/{each['subject']}" if kind == "policy" else each["name"] for each in found]


def write(path: Path, *documents: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump_all(documents, sort_keys=False), "utf-8")


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_comes_through_files_in_any_order_whole_or_not_at_all(kind: str, typed: Typist) -> None:
    document, name = FULL[kind], name_of(FULL[kind])
    rules, needed = typed.folder / kind, [FULL[other] for other in NEEDS[kind]]
    extra = {"kind": "component", "name": f"beside-{kind}"}
    write(rules / "a.yaml", document, extra)  # before everything that it names
    write(rules / "below" / "z.yaml", *needed)
    write(rules / "wrong.yaml", {"kind": "stack", "name": f"w-{kind}", "orchestrator": "nobody"})

    folder, files = ("-f", str(rules)), ("-f", str(rules / "a.yaml"), "-f", str(rules / "below" / "z.yaml"))
    refused = typed("apply", *folder, "--yes")
    assert (refused.code, "wrong.yaml:1:1: stack" in refused.err) == (3, True), refused
    assert (name in listed(typed, kind), extra["name"] in listed(typed, "component")) == (False, False)

    (rules / "wrong.yaml").unlink()
    applied = typed.ok("apply", *files, "--yes")
    assert applied.splitlines()[-1] == f"{2 + len(needed)} to create; 0 unchanged"
    assert (name in listed(typed, kind), extra["name"] in listed(typed, "component")) == (True, True)
    assert typed("diff", *folder).code == 0

    printed = {form: typed.ok(kind, "describe", name, "-o", form) for form in ("yaml", "json")}
    for text in printed.values():
        again = typed("apply", "-f", "-", stdin=text)
        assert (again.code, again.out) == (0, "no changes; 1 unchanged\n"), (text, again)
    every = typed.ok(kind, "list", "-o", "yaml")
    whole = typed("diff", "-f", "-", stdin=every)
    assert (whole.code, whole.out) == (0, ""), "a list of all of them can be applied, too"
    editor = jsonschema_rs.validator_for(schemas.any_kind())
    for text in (printed["yaml"], every):
        assert list(editor.iter_errors(yaml.safe_load(text))) == [], "and an editor finds nothing wrong with it"
    another = {"priority": 4} if kind == "policy" else {"description": "another"}
    changed = {**json.loads(printed["json"]), **another}
    assert typed("diff", "-f", "-", stdin=json.dumps(changed)).code == 1, "a difference would be seen"

    assert typed.ok("delete", *folder, "--yes").splitlines()[-1].startswith(f"{2 + len(needed)} to delete")
    assert name not in listed(typed, kind)


def test_the_secret_of_a_webhook_from_a_file_is_drawn_anew_to_be_shown_once(typed: Typist) -> None:
    hook = {key: value for key, value in FULL["webhook"].items() if key not in ("pool", "team")}
    plan = typed("apply", "-f", "-", "--yes", stdin=json.dumps(hook))
    assert plan.code == 0, plan.err
    assert "    url: https://hooks.example.org/… (sha256 " in plan.out
    assert "kn0wn-by-this" not in plan.out + plan.err
    refused = typed("webhook", "secret", "chat")
    assert (refused.code, "--yes says so" in refused.err) == (2, True)
    first, second = (typed.ok("webhook", "secret", "chat", "--yes").strip() for _ in range(2))
    assert (first.startswith("whsec_"), first == second) == (True, False)
    shown = typed.ok("webhook", "describe", "chat", "-o", "yaml") + typed.ok("history", "--kind", "webhook")
    assert "whsec_" not in shown
    assert "secret drawn anew" in shown
    wrong = typed("apply", "-f", "-", stdin=json.dumps({**hook, "secret": first}))
    assert (wrong.code, first in wrong.err) == (2, False)
    assert wrong.err.startswith("stdin:1:")
    typed.ok("webhook", "delete", "chat", "--yes")


def test_whom_a_webhook_tells_that_they_wait_is_changed_with_the_time_alone(typed: Typist) -> None:
    made = typed("webhook", "create", "w", "--url", "https://hooks.example.org/x", "--event", "request.granted")
    assert made.code == 0, made.err
    for waiting, told in (("60", ["request.granted", "request.waiting"]), ("0", ["request.granted"])):
        typed.ok("webhook", "update", "w", "--waiting-longer-than", waiting)
        found = json.loads(typed.ok("webhook", "describe", "w", "-o", "json"))
        assert (found["events"], found["waiting_longer_than_s"]) == (told, int(waiting))
    typed.ok("webhook", "update", "w", "--waiting-longer-than", "60", "--event", "request.waiting")
    refused = typed("webhook", "update", "w", "--waiting-longer-than", "0")
    assert (refused.code, "told nothing; possible: --event" in refused.err) == (2, True)
    typed.ok("webhook", "delete", "w", "--yes")

"""Vaults: sealed secrets, defaults and locks, told to whoever made a granted request, every read written down."""

from __future__ import annotations

from typing import Any

import pytest
from cryptography.fernet import Fernet

from fairpool.app.authz import Principal, Role
from fairpool.app.errors import CannotOpen, Conflict, Exists, NotAllowed, NoVaultKey
from fairpool.app.records import HistoryQuery, Kind
from fairpool.app.use_cases import requests, teams, users, vaults
from fairpool.app.use_cases.vaults import Keyless, Setting, VaultChange
from fairpool.bootstrap.sealing import FernetSealer, WrongKey, sealer_of
from fairpool.core.errors import InvalidInput, InvalidRules
from fairpool.core.policies import Subject
from tests.unit.app.office import Office, ask, opened

OLD, NEW = Fernet.generate_key().decode(), Fernet.generate_key().decode()
SECRET = "hunter2-nobody-must-see-this"


@pytest.fixture
def office() -> Office:
    return opened()


@pytest.fixture
def sealer() -> FernetSealer:
    return FernetSealer([OLD])


def filled(office: Office, sealer: Any, team: str = "red") -> None:
    change = VaultChange(
        environment={"HF_HOME": Setting(value="/data/hf"), "REGION": Setting(value="eu", locked=True)},
        secrets={"HF_TOKEN": Setting(value=SECRET)},
        single={"image": Setting(value="registry/train:1", locked=True), "storage_url": Setting(value="s3://red")},
    )
    office.do(vaults.create, team, change, sealer)


def told(office: Office) -> str:
    """Everything that history, memory, records and the store hold, as text."""
    page = office.store.reader.history.page(HistoryQuery(), limit=10_000)
    return repr(page) + repr(office.memory.all(Kind.VAULT)) + repr(office.store.load())


# ---- what a step gets ------------------------------------------------------------------------------------------------


def test_the_owner_of_a_granted_request_gets_everything_and_the_read_is_written_down(
    office: Office, sealer: FernetSealer
) -> None:
    filled(office, sealer)
    made = office.submit("team:red")
    found = office.do(vaults.read, made.id, sealer)
    assert (found.request, found.vault) == (made.id, "red")
    assert {name: (variable.value, variable.locked, variable.secret) for name, variable in found.variables.items()} == {
        "FAIRPOOL_IMAGE": ("registry/train:1", True, False),
        "FAIRPOOL_STORAGE_URL": ("s3://red", False, False),
        "HF_HOME": ("/data/hf", False, False),
        "HF_TOKEN": (SECRET, False, True),
        "REGION": ("eu", True, False),
    }
    vault = office.memory.document(Kind.VAULT, "red")
    last = office.store.reader.history.page(HistoryQuery(object=vault.id), newest_first=True).items[0].change
    assert (last.what, last.actor, last.cause) == ("read", "alice", f"for request {made.id}")
    assert last.after["secrets"] == ["HF_TOKEN"]


def test_who_may_ask_as_any_team_reads_the_vaults_of_their_own_alone(office: Office, sealer: FernetSealer) -> None:
    filled(office, sealer)
    office.do(users.create, "olga", role=Role.OPERATOR)
    office.do(users.create, "ada", role=Role.ADMIN)
    for name, role in (("olga", Role.OPERATOR), ("ada", Role.ADMIN)):
        caller = Principal(subject=Subject.parse(f"user:{name}"), role=role)
        made = office.do(requests.submit, ask("team:red", 1), actor=f"user:{name}")
        if role is Role.ADMIN:
            assert office.do(vaults.read, made.id, sealer, actor=f"user:{name}", caller=caller).vault == "red"
            continue
        with pytest.raises(NotAllowed, match="you are not in that team"):
            office.do(vaults.read, made.id, sealer, actor=f"user:{name}", caller=caller)
        office.do(teams.create, "red", members=["olga"])
        assert office.do(vaults.read, made.id, sealer, actor=f"user:{name}", caller=caller).vault == "red"


def test_nobody_else_gets_it_and_nobody_before_or_after(office: Office, sealer: FernetSealer) -> None:
    filled(office, sealer)
    made = office.submit("team:red", gpus=8, lease_s=600)
    waits = office.submit("team:red", gpus=8, lease_s=600)
    with pytest.raises(NotAllowed):
        office.do(vaults.read, made.id, sealer, actor="bob")
    with pytest.raises(Conflict, match="is queued: its environment is told while it holds something"):
        office.do(vaults.read, waits.id, sealer)
    office.do(requests.release, made.id)
    with pytest.raises(Conflict, match="is released"):
        office.do(vaults.read, made.id, sealer)
    assert "read" not in office.history()


def test_of_several_teams_the_one_whose_policy_granted_it_counts(office: Office, sealer: FernetSealer) -> None:
    filled(office, sealer, "red")
    office.do(vaults.create, "blue", VaultChange(environment={"TEAM": Setting(value="blue")}), sealer)
    office.submit("team:red", gpus=2, preemptible=False)  # red's reservation is full
    both = (Subject.parse("team:red"), Subject.parse("team:blue"))
    made = office.submit(subjects=both, gpus=2, preemptible=False)
    assert made.state.grant is not None
    assert made.state.grant.subject == "team:blue"
    assert office.do(vaults.read, made.id, sealer).vault == "blue"


def test_without_a_vault_there_is_nothing_to_get_and_nothing_to_write_down(
    office: Office, sealer: FernetSealer
) -> None:
    made = office.submit("team:red")
    before = office.history()
    assert office.do(vaults.read, made.id, sealer).variables == {}
    assert office.history() == before


# ---- secrets stay secret ---------------------------------------------------------------------------------------------


def test_a_secret_is_nowhere_but_sealed(office: Office, sealer: FernetSealer) -> None:
    filled(office, sealer)
    made = office.submit("team:red")
    found = office.do(vaults.read, made.id, sealer)
    office.do(vaults.update, "red", VaultChange(secrets={"OTHER": Setting(value=SECRET + "2")}), sealer)
    office.do(vaults.delete, "red")
    assert SECRET not in told(office) + repr(found) + repr(Setting(value=SECRET))


def test_a_sealed_secret_opens_only_under_its_own_name_and_in_its_own_vault(
    office: Office, sealer: FernetSealer
) -> None:
    """Who can write into the database cannot move a secret to where another team's steps read it."""
    filled(office, sealer, "red")
    office.do(vaults.create, "blue", VaultChange(secrets={"MINE": Setting(value="x")}), sealer)
    stolen = office.memory.document(Kind.VAULT, "red").spec["secrets"]["HF_TOKEN"]  # type: ignore[call-overload,index]
    blue = office.memory.document(Kind.VAULT, "blue")
    object.__setattr__(blue, "spec", {"secrets": {"MINE": stolen}})
    made = office.submit("team:blue")
    with pytest.raises(Conflict, match="sealed for something else"):
        office.do(vaults.read, made.id, sealer)


def test_without_a_key_no_secret_is_taken_and_all_else_is(office: Office) -> None:
    with pytest.raises(NoVaultKey, match="FAIRPOOL_VAULT_KEY"):
        filled(office, Keyless())
    assert not office.memory.all(Kind.VAULT)
    office.do(vaults.create, "red", VaultChange(environment={"A": Setting(value="1")}), Keyless())
    made = office.submit("team:red")
    assert office.do(vaults.read, made.id, Keyless()).variables["A"].value == "1"


def test_keys_can_be_changed(office: Office, sealer: FernetSealer) -> None:
    filled(office, sealer)
    made = office.submit("team:red")
    with pytest.raises(CannotOpen, match="FAIRPOOL_VAULT_KEY"):
        office.do(vaults.read, made.id, FernetSealer([NEW]))
    assert office.do(vaults.rotate, FernetSealer([NEW, OLD])) == (1, 1)
    assert office.do(vaults.read, made.id, FernetSealer([NEW])).variables["HF_TOKEN"].value == SECRET
    with pytest.raises(CannotOpen):
        office.do(vaults.read, made.id, sealer)
    with pytest.raises(CannotOpen):
        office.do(vaults.rotate, FernetSealer([OLD]))


def test_a_key_that_is_none_is_refused_without_being_told() -> None:
    with pytest.raises(WrongKey, match="key 2 of 2 is no key") as raised:
        sealer_of([OLD, "swordfish"])
    assert "swordfish" not in str(raised.value)
    assert isinstance(sealer_of([]), Keyless)


def test_secrets_survive_a_restart(office: Office, sealer: FernetSealer) -> None:
    filled(office, sealer)
    made = office.submit("team:red", lease_s=600)
    assert office.restarted().do(vaults.read, made.id, sealer).variables["HF_TOKEN"].value == SECRET


# ---- changing --------------------------------------------------------------------------------------------------------


def test_names_change_one_by_one_and_history_says_which(office: Office, sealer: FernetSealer) -> None:
    filled(office, sealer)
    change = VaultChange(
        environment={"REGION": None, "NEW": Setting(value="1")},
        secrets={"HF_TOKEN": Setting(value=None, locked=True)},
        single={"image": None},
    )
    office.do(vaults.update, "red", change, sealer)
    assert vaults.shown(office.memory.document(Kind.VAULT, "red").spec) == {
        "environment": {"HF_HOME": {"value": "/data/hf", "locked": False}, "NEW": {"value": "1", "locked": False}},
        "secrets": {"HF_TOKEN": {"locked": True}},
        "storage_url": {"value": "s3://red", "locked": False},
    }
    made = office.submit("team:red")
    found = office.do(vaults.read, made.id, sealer).variables["HF_TOKEN"]
    assert (found.value, found.locked) == (SECRET, True)  # only whether it is locked was said
    assert any("environment, image, secrets changed" in what for what in office.history())


def test_a_new_value_of_a_secret_is_a_change_though_nothing_shows(office: Office, sealer: FernetSealer) -> None:
    filled(office, sealer)
    before = office.memory.document(Kind.VAULT, "red").version
    office.do(vaults.update, "red", VaultChange(secrets={"HF_TOKEN": Setting(value="other")}), sealer)
    assert office.memory.document(Kind.VAULT, "red").version == before + 1
    assert any("new values" in what for what in office.history())


def test_a_name_is_a_variable_or_a_secret(office: Office, sealer: FernetSealer) -> None:
    filled(office, sealer)
    office.do(vaults.update, "red", VaultChange(secrets={"REGION": Setting(value="x")}), sealer)
    spec = vaults.shown(office.memory.document(Kind.VAULT, "red").spec)
    assert set(spec["secrets"]) == {"HF_TOKEN", "REGION"}  # type: ignore[arg-type]
    assert set(spec["environment"]) == {"HF_HOME"}  # type: ignore[arg-type]


def test_as_a_whole_a_vault_keeps_the_secrets_that_are_only_named(office: Office, sealer: FernetSealer) -> None:
    """What a file under review holds of a secret is its name."""
    filled(office, sealer)
    whole = VaultChange(secrets={"HF_TOKEN": Setting(value=None)}, whole=True)
    office.do(vaults.update, "red", whole, sealer)
    assert vaults.shown(office.memory.document(Kind.VAULT, "red").spec) == {"secrets": {"HF_TOKEN": {"locked": False}}}
    with pytest.raises(InvalidRules, match="secret NEVER_SET has no value yet"):
        office.do(vaults.update, "red", VaultChange(secrets={"NEVER_SET": Setting(value=None)}), sealer)


@pytest.mark.parametrize("name", ["1ST", "with space", "a=b", "", "x" * 129, "ÄÖ"])
def test_what_cannot_name_a_variable_is_refused(office: Office, sealer: FernetSealer, name: str) -> None:
    with pytest.raises(InvalidInput, match="cannot name a variable"):
        office.do(vaults.create, "red", VaultChange(environment={name: Setting(value="1")}), sealer)


@pytest.mark.parametrize(
    "name", ["FAIRPOOL_TOKEN", "CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL"]
)
def test_what_a_step_was_granted_no_vault_says(office: Office, sealer: FernetSealer, name: str) -> None:
    with pytest.raises(InvalidRules, match="tells a step what it was granted"):
        office.do(vaults.create, "red", VaultChange(environment={name: Setting(value="1")}), sealer)


def test_a_value_that_no_environment_can_hold_is_refused_without_being_told(
    office: Office, sealer: FernetSealer
) -> None:
    with pytest.raises(InvalidInput, match="cannot be in a process's environment") as raised:
        office.do(vaults.create, "red", VaultChange(secrets={"A": Setting(value=SECRET + "\0")}), sealer)
    assert SECRET not in repr(vars(raised.value))


def test_a_team_has_one_vault(office: Office, sealer: FernetSealer) -> None:
    filled(office, sealer)
    with pytest.raises(Exists, match="fairpool vault set"):
        filled(office, sealer)


def test_a_vault_follows_its_team_s_new_name_and_goes_with_it(office: Office, sealer: FernetSealer) -> None:
    office.do(teams.create, "red")
    filled(office, sealer)
    office.do(teams.update, "red", teams.TeamChange(name="crimson"))
    made = office.submit("team:crimson", lease_s=600)
    assert office.do(vaults.read, made.id, sealer).variables["HF_TOKEN"].value == SECRET
    office.do(teams.delete, "crimson")
    assert not office.memory.all(Kind.VAULT)


def test_trying_out_changes_nothing(office: Office, sealer: FernetSealer) -> None:
    change = VaultChange(environment={"A": Setting(value="1")})
    assert vaults.shown(office.do(vaults.create, "red", change, sealer, dry_run=True).spec)
    assert not office.memory.all(Kind.VAULT)
    filled(office, sealer)
    office.do(vaults.update, "red", change, sealer, dry_run=True)
    office.do(vaults.delete, "red", dry_run=True)
    assert "A" not in str(office.memory.document(Kind.VAULT, "red").spec["environment"])

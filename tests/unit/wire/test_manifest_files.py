"""Documents in files: what is read, and where in which file a mistake is."""

from __future__ import annotations

import io
from decimal import Decimal
from pathlib import Path

import pytest

from fairpool.wire.manifests.files import read_files
from fairpool.wire.manifests.places import MisplacedText, Place, read_text
from fairpool.wire.policies import PolicyCreate
from fairpool.wire.pools import PoolCreate


def written(folder: Path, text: str, name: str = "rules.yaml") -> str:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    return str(path)


def mistakes(*paths: str) -> list[str]:
    with pytest.raises(MisplacedText) as caught:
        read_files(paths)
    return [f"{place}: {message}" for place, message in caught.value.problems]


def test_a_file_holds_several_documents_or_a_list_and_amounts_stay_exact(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        """
kind: pool
name: gpus
capacity: {gpu: 0.1, example.com/fpga: 2}
---
# nothing but a comment
---
- {kind: policy, pool: gpus, subject: red}
- {kind: step_operator, name: k8s}
""",
    )
    pool, policy, component = (found.document for found in read_files([path]))
    assert isinstance(pool.body, PoolCreate)
    assert pool.body.capacity == {"gpu": Decimal("0.1"), "example.com/fpga": 2}
    assert (policy.kind, policy.name) == ("policy", "gpus/component:red")
    assert (component.kind, component.body.model_dump()["kind"]) == ("component", "step_operator")


def test_a_folder_stands_for_its_yaml_and_json_files_at_any_depth_each_once(tmp_path: Path) -> None:
    written(tmp_path, '{"kind": "pool", "name": "a"}', "a.json")
    inner = written(tmp_path, "{kind: pool, name: b}", "deep/b.yml")
    written(tmp_path, "no document", "readme.md")
    written(tmp_path, "{kind: pool, name: c}", ".hidden/c.yaml")
    assert [found.document.name for found in read_files([str(tmp_path), inner])] == ["a", "b"]


def test_standard_input_is_a_file_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("{kind: pool, name: a}"))
    (found,) = read_files(["-"])
    assert found.placed.place == Place("stdin", 1, 1)


def test_every_mistake_of_every_file_is_told_with_line_and_column(tmp_path: Path) -> None:
    one = written(
        tmp_path,
        """kind: pool
name: gpus
capacty: {gpu: 8}
nodes:
  - name: n1
    capacity: {gpu: 8, example.com/fpga: many}
    stat: ready
""",
        "one.yaml",
    )
    two = written(tmp_path, "- kind: polcy\n- kid: pool\n- just text\n", "two.yaml")
    three = written(tmp_path, "kind: policy\npool: gpus\nsubject: team:red\npools: [gpus, more]\n", "three.yaml")
    told = mistakes(one, two, three)
    assert [line.removeprefix(str(tmp_path) + "/").split(" (")[0] for line in told] == [
        "one.yaml:3:1: capacty: unknown field 'capacty': did you mean 'capacity'?",
        "one.yaml:6:24: nodes.0.capacity.example.com/fpga: 'many': not a number",
        "one.yaml:7:5: nodes.0.stat: unknown field 'stat': did you mean 'state'?",
        "three.yaml:4:1: pools: unknown field 'pools': the first of them is its 'pool', and 'also' lists the others",
        "two.yaml:1:3: kind: no kind 'polcy': did you mean 'policy'?",
        "two.yaml:2:3: 'kind' is missing: did you mean 'kind' by 'kid'?",
        "two.yaml:3:3: not a document",
    ]


def test_a_document_that_is_there_twice_is_refused_with_both_places(tmp_path: Path) -> None:
    one = written(tmp_path, "{kind: policy, pool: p, subject: 'component:a'}", "one.yaml")
    two = written(tmp_path, "\n{kind: policy, pool: p, subject: a}", "two.yaml")
    assert mistakes(one, two) == [f"{two}:2:1: policy 'p/component:a' is here a second time; first at {one}:1:1"]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{kind: pool, name: a, name: b}", "1:23: 'name' is written twice; first in line 1"),
        ("kind: [pool", "not YAML"),
        ("{kind: pool, name: a, capacity: {gpu: 0x10}}", "1:39: '0x10' is no decimal number"),
        ("{kind: pool, name: a, capacity: {gpu: .inf}}", "1:39: '.inf' is no decimal number"),
        ("{kind: pool, name: !!binary aGk=}", "no such type here"),
        ("? [a]\n: b", "1:3: a key should be a text"),
    ],
)
def test_what_yaml_would_pass_over_or_read_otherwise_is_a_mistake(tmp_path: Path, text: str, told: str) -> None:
    assert told in "\n".join(mistakes(written(tmp_path, text)))


def test_files_that_cannot_be_read_are_told_together(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "odd.yaml").write_bytes(b"kind: \xff")
    told = mistakes(str(tmp_path / "gone.yaml"), str(tmp_path / "empty"), str(tmp_path / "odd.yaml"))
    assert [line.rpartition(": ")[2] for line in told] == [
        "no file in this folder ends in .yaml, .yml, .json",
        "no such file or directory",
        "is no UTF-8 text (byte 6)",
    ]


def test_anchors_and_merges_are_read_and_what_stands_for_too_much_is_refused() -> None:
    (_, second) = read_text(
        "- &base {kind: policy, pool: p, subject: a, priority: 1}\n- {<<: *base, subject: b}", "f.yaml"
    )
    assert second.value == {"subject": "b", "kind": "policy", "pool": "p", "priority": 1}
    bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
        f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 9)
    )
    with pytest.raises(MisplacedText, match="at most 1000000 values"):
        read_text(bomb, "f.yaml")


def test_what_only_the_server_says_of_an_object_is_passed_over() -> None:
    from fairpool.wire.manifests.kinds import read_document

    shown = {
        "kind": "pool",
        "id": "p1",
        "version": 3,
        "name": "gpus",
        "capacity": {"gpu": 8, "license": 2},
        "nominal": {"gpu": 16, "license": 2},
        "nodes": [{"name": "n1", "capacity": {"gpu": 8}, "used": {"gpu": 1}, "requests": ["r1"], "state": "ready"}],
        "policies": [{"id": "x"}],
    }
    body = read_document(shown).body
    assert isinstance(body, PoolCreate)
    assert body.capacity == {"license": 2}, "what the nodes bring is counted in by the server"
    assert body.nodes[0].name == "n1"
    assert isinstance(read_document({"kind": "policy", "pool": "p", "subject": "a", "pool_id": "1"}).body, PolicyCreate)

"""`fairpool node`: machines by their names, whatever pool they are in."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e.cli.conftest import Machine

NODES = '{"n1": {"gpu": 4}, "n2": {"gpu": 4}}'


@pytest.fixture(scope="module")
def racks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    """Two pools of machines."""
    made = Machine(tmp_path_factory.mktemp("racks"))
    made.ok("pool", "create", "a", "--nodes", NODES)
    made.ok("pool", "create", "b", "--nodes", '{"m1": {"gpu": 2}}')
    yield made
    made.close()


def test_nodes_are_listed_over_all_pools_or_of_one(racks: Machine) -> None:
    assert racks.ok("node", "list", "-o", "csv", "--columns", "node,pool") == "NODE,POOL\nn1,a\nn2,a\nm1,b\n"
    assert racks.ok("node", "list", "b", "--no-headers").split()[:3] == ["m1", "ready", "gpu"]
    assert [node["name"] for node in racks.json("node", "list")] == ["n1", "n2", "m1"]


def test_a_label_is_set_shown_changed_only_when_that_is_said_and_taken_away(racks: Machine) -> None:
    done = racks("node", "label", "n1", "rack=7", "row=a")
    assert (done.code, done.err) == (0, "node n1 labelled: rack=7, row=a\n")
    refused = racks("node", "label", "n1", "rack=8", "tier=x")
    assert (refused.code, "rack is '7' already; --overwrite changes it" in refused.err) == (2, True)
    assert racks.json("node", "describe", "n1")["labels"] == {"rack": "7", "row": "a"}, "all of it or nothing"
    racks.ok("node", "label", "n1", "rack=8", "row-", "--overwrite", "--dry-run")
    assert racks.json("node", "describe", "n1")["labels"] == {"rack": "7", "row": "a"}
    racks.ok("node", "label", "n1", "rack=8", "row-", "--overwrite")
    shown = racks.ok("node", "describe", "n1")
    assert {"Pool: a", "Used: gpu 0/4", "Labels: rack=8"} <= {" ".join(line.split()) for line in shown.splitlines()}
    assert racks("node", "label", "n1", "rack=8").err == "nothing changes\n"


def test_labels_of_the_servers_own_are_nobodys_to_change(racks: Machine) -> None:
    refused = racks("node", "label", "n2", "fairpool/backend=mine", "--overwrite")
    assert (refused.code, "label 'fairpool/backend' of node 'n2' is the server's to set" in refused.err) == (2, True)
    made = racks("pool", "create", "c", "--nodes", '{"o1": {"capacity": {"gpu": 1}, "labels": {"fairpool/x": "y"}}}')
    assert (made.code, "is the server's to set" in made.err) == (2, True)


def test_what_is_no_label_and_no_node_is_refused_with_what_is_possible(racks: Machine) -> None:
    assert "possible: KEY=VALUE, or KEY-" in racks("node", "label", "n1", "rack").err
    assert "is there twice" in racks("node", "label", "n1", "a=1", "a=2").err
    missing = racks("node", "label", "n11", "a=1")
    assert (missing.code, "no node 'n11': did you mean 'n1'?" in missing.err) == (3, True)


def test_a_node_is_cordoned_by_its_name_alone_or_with_its_pool(racks: Machine) -> None:
    assert racks("node", "cordon", "n2").err == "node n2 of pool a is cordoned\n"
    assert racks("node", "uncordon", "a", "n2").err == "node n2 of pool a is ready\n"
    assert racks("node", "cordon", "b", "n2").code == 3
    assert racks("node", "cordon", "a", "n2", "n1").code == 2

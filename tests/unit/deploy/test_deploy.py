"""What lies in deploy/ is true: metrics and labels exist, settings are known, systemd can read the unit."""

from __future__ import annotations

import configparser
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
import yaml

from fairpool.server.metric_families import FAMILIES
from tests.tidy import tree

DEPLOY = tree.ROOT / "deploy"
UNIT = DEPLOY / "systemd" / "fairpool.service"
DASHBOARD: dict[str, Any] = json.loads(tree.text(DEPLOY / "grafana" / "fairpool.json"))
ALERTS: dict[str, Any] = yaml.safe_load(tree.text(DEPLOY / "prometheus" / "fairpool-alerts.yml"))
PANELS: list[dict[str, Any]] = DASHBOARD["panels"]
GRAPHS = [panel for panel in PANELS if panel["type"] != "row"]
RULES: list[dict[str, Any]] = [rule for group in ALERTS["groups"] for rule in group["rules"]]

METRIC = re.compile(r"\b(?:fairpool|process)_\w+")
SELECTED = re.compile(r"\b((?:fairpool|process)_\w+)(?:\{([^}]*)\})?")
GROUPED = re.compile(r"\bby \(([^)]*)\)")
SCRAPED = {"job", "instance"}  # labels that Prometheus adds


def expressions() -> Iterator[tuple[str, str]]:
    """Every PromQL expression with where it stands."""
    for panel in GRAPHS:
        for target in panel["targets"]:
            yield f"panel {panel['title']!r}", target["expr"]
    for variable in DASHBOARD["templating"]["list"]:
        if variable["type"] == "query":
            yield f"variable {variable['name']!r}", variable["query"]["query"]
    for rule in RULES:
        yield f"alert {rule['alert']}", rule["expr"]


def labels_of(series: str) -> set[str] | None:
    """The labels of a series by its name; None for one that no server has."""
    if series in ("process_resident_memory_bytes",):
        return set()
    family = FAMILIES.get(series)
    if family is not None and family.kind != "histogram":
        return set(family.labels)
    for suffix in ("_bucket", "_count", "_sum"):
        family = FAMILIES.get(series.removesuffix(suffix))
        if series.endswith(suffix) and family is not None and family.kind == "histogram":
            return set(family.labels) | ({"le"} if suffix == "_bucket" else set())
    return None


def test_every_metric_that_a_panel_or_an_alert_names_exists() -> None:
    found = list(expressions())
    assert len(found) > 25
    unknown = [(where, name) for where, text in found for name in METRIC.findall(text) if labels_of(name) is None]
    assert unknown == []


def test_every_label_that_is_selected_or_grouped_by_is_one_of_the_metric() -> None:
    for where, text in expressions():
        known: set[str] = set(SCRAPED)
        for name, selector in SELECTED.findall(text):
            labels = labels_of(name)
            assert labels is not None
            known |= labels
            selected = set(re.findall(r"(\w+)\s*(?:=~|!~|!=|=)", selector))
            assert selected <= labels | SCRAPED, where
        for group in GROUPED.findall(text):
            assert {label.strip() for label in group.split(",")} <= known, where


def test_every_kind_of_metric_is_on_the_dashboard() -> None:
    text = json.dumps(DASHBOARD)
    unseen = {
        "fairpool_build_info",
        "fairpool_decisions_total",
        "fairpool_pool_free",
        "fairpool_pool_reserved",
        "fairpool_pool_borrowed",
    }
    assert sorted(name for name in FAMILIES if name not in text and name not in unseen) == []


def test_the_dashboard_is_one_that_grafana_reads() -> None:
    assert DASHBOARD["schemaVersion"] >= 39
    assert DASHBOARD["uid"] == "fairpool"
    assert len({panel["id"] for panel in PANELS}) == len(PANELS)
    for panel in GRAPHS:
        assert panel["title"]
        assert panel["description"]
        assert panel["fieldConfig"]["defaults"]["unit"]
        assert len({target["refId"] for target in panel["targets"]}) == len(panel["targets"])
        assert all(part["datasource"]["uid"] == "${datasource}" for part in (panel, *panel["targets"]))


def test_no_two_panels_lie_on_each_other_or_beside_the_grid() -> None:
    places = [panel["gridPos"] for panel in PANELS]
    assert all(place["x"] >= 0 and place["x"] + place["w"] <= 24 for place in places)
    overlapping = [
        (one, other)
        for one, other in combinations(places, 2)
        if one["x"] < other["x"] + other["w"]
        and other["x"] < one["x"] + one["w"]
        and one["y"] < other["y"] + other["h"]
        and other["y"] < one["y"] + one["h"]
    ]
    assert overlapping == []


def test_every_variable_that_is_used_is_declared() -> None:
    declared = {variable["name"] for variable in DASHBOARD["templating"]["list"]} | {"__rate_interval"}
    used = set(re.findall(r"\$\{?(\w+)", json.dumps(DASHBOARD)))
    assert used == declared


def test_every_alert_says_what_it_means_and_what_to_look_at() -> None:
    assert len({rule["alert"] for rule in RULES}) == len(RULES) >= 7
    for rule in RULES:
        assert rule["labels"]["severity"] in ("info", "warning", "critical")
        assert rule["annotations"]["summary"]
        assert rule["annotations"]["description"]


def test_prometheus_reads_the_metrics_where_they_are() -> None:
    scrape = yaml.safe_load(tree.text(DEPLOY / "prometheus" / "scrape.yml"))
    (job,) = scrape["scrape_configs"]
    assert (job["job_name"], job["metrics_path"]) == ("fairpool", "/metrics")
    assert scrape["rule_files"] == ["fairpool-alerts.yml"]


def test_every_setting_of_the_example_is_one_that_the_reference_tells() -> None:
    page = tree.text(tree.ROOT / "docs" / "reference" / "settings.md")
    named = re.findall(r"^(FAIRPOOL_\w+)=", tree.text(DEPLOY / "systemd" / "fairpool.env"), re.MULTILINE)
    named += re.findall(r"FAIRPOOL_\w+", tree.text(UNIT))
    assert named
    assert [name for name in named if f"`{name}`" not in page] == []


def unit() -> dict[str, str]:
    read = configparser.ConfigParser(strict=False, interpolation=None)
    read.optionxform = str  # type: ignore[assignment,method-assign]
    read.read_string(tree.text(UNIT))
    return dict(read["Service"])


def test_the_service_has_no_rights_but_to_its_own_folder_and_the_network() -> None:
    service = unit()
    wanted = {
        "DynamicUser": "yes",
        "NoNewPrivileges": "yes",
        "ProtectSystem": "strict",
        "ProtectHome": "yes",
        "PrivateTmp": "yes",
        "CapabilityBoundingSet": "",
        "StateDirectory": "fairpool",
        "UMask": "0077",
    }
    assert {key: service[key] for key in wanted} == wanted
    assert "EnvironmentFile" in service
    assert service["ExecStart"].split()[1:] == ["server", "start", "--foreground"]


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not on this machine")
def test_systemd_reads_the_unit_and_finds_it_well_confined(tmp_path: Path) -> None:
    copy = tmp_path / "fairpool.service"
    copy.write_text(tree.text(UNIT).replace("/opt/fairpool/bin/fairpool", sys.executable))
    verified = subprocess.run(["systemd-analyze", "verify", copy], capture_output=True, text=True, check=False)
    assert (verified.returncode, verified.stderr) == (0, "")
    judged = subprocess.run(
        ["systemd-analyze", "security", "--offline=true", "--threshold=20", copy],
        capture_output=True,
        text=True,
        check=False,
    )
    assert judged.returncode == 0, judged.stdout[-300:]

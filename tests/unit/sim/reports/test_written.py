"""A report as JSON, CSV, tables and a page: whole, self-contained, and safe with whatever a trace calls its jobs."""

import csv
import json
import re
from collections.abc import Sequence
from html.parser import HTMLParser
from itertools import count
from pathlib import Path

import jsonschema_rs
import pytest

from fairpool.core.ids import PolicyId, PoolId
from fairpool.core.policies import Policy, Subject, SubjectKind
from fairpool.sim.owners import Owners, Progress
from fairpool.sim.reports.as_html import as_html
from fairpool.sim.reports.as_json import as_json, schema
from fairpool.sim.reports.figures import SCHEMA_VERSION, Report
from fairpool.sim.reports.making import compare, summarise, tables, write_csv, write_html, write_json
from fairpool.sim.reports.outcome import About, Outcome
from fairpool.sim.rulebook import rulebook
from tests.unit.sim.reports.worlds import ABOUT, a_policy, a_pool, job, outcome, rules

HOSTILE = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "'; background: url(https://example.com)",
    "</style></title></svg>&lt;b&gt;",
    "=HYPERLINK(1)",
    "\x1b[2J\x00 cleared",
    "turned\u202earound",
    "half \ud800 pair",
    "long " * 2_000,
    "line\nbreak\u2028",
)
VOID = {"meta", "br", "img", "hr", "link", "input"}


def hostile_pair() -> tuple[Outcome, Outcome]:
    """Jobs, a team and a profile with names that nobody would give; most of the jobs wait."""
    wild = Subject(SubjectKind.TEAM, HOSTILE[0])
    policy = Policy(id=PolicyId("wild"), pool=PoolId("p"), subject=wild, grace_s=0)
    jobs = [
        job(name, "v", number, 100, subjects=(wild if number % 2 else Subject.parse("team:v"),))
        for number, name in zip(count(), HOSTILE * 3, strict=False)
    ]
    pair = [
        outcome(rulebook([a_pool(gpus)], [a_policy("v", 1), policy]), *jobs, name=name, owners=LOST)
        for gpus, name in ((3, HOSTILE[1]), (1, HOSTILE[3]))
    ]
    return pair[0], pair[1]


LOST = Owners(progress=Progress.LOST)


@pytest.fixture(scope="module")
def hostile() -> Report:
    about = About(title=HOSTILE[0], trace=HOSTILE[1], command=HOSTILE[3], version="1", options={HOSTILE[0]: HOSTILE[2]})
    return compare(*hostile_pair(), about)


@pytest.fixture(scope="module")
def small() -> Report:
    jobs = [job(f"j{n}", "vw"[n % 2], 5 * n, 60, gpus=1 + n % 2) for n in range(20)]
    now, then = outcome(rules(4, v=2, w=1), *jobs, name="now"), outcome(rules(2, v=1, w=1), *jobs, name="then")
    return compare(now, then, ABOUT)


class Page(HTMLParser):
    """What a page is made of; complains of tags that do not match."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.words = ""
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert not self._open, f"never closed: {self._open}"

    def handle_starttag(self, tag: str, attrs: Sequence[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: Sequence[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]

    def handle_endtag(self, tag: str) -> None:
        assert self._open and self._open.pop() == tag, f"</{tag}> closes nothing"

    def handle_data(self, data: str) -> None:
        self.words += data


@pytest.mark.parametrize("which", ["small", "hostile"])
def test_the_page_is_whole_and_needs_nothing_besides(which: str, request: pytest.FixtureRequest) -> None:
    text = as_html(request.getfixturevalue(which))
    page = Page(text)
    assert not {"script", "link", "img", "iframe", "object", "foreignobject", "use", "base", "form"} & set(page.tags)
    names = {name for name, _ in page.attributes}
    assert not {"src", "href", "style", "xlink:href"} & names
    assert not [name for name in names if name.startswith("on")]
    style = text[text.index("<style>") : text.index("</style>")]
    assert not re.search(r"url\(|@import|@font-face|https?:", style)
    assert "default-src 'none'" in dict(page.attributes).values() or "default-src 'none'" in text


def test_no_name_becomes_markup_steers_a_terminal_or_turns_text_around(hostile: Report) -> None:
    text = as_html(hostile)
    assert "<script" not in text and "<img" not in text
    assert not re.search("[\x00-\x08\x0b-\x1f\u202a-\u202e\u2028\ud800-\udfff]", text)
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text
    assert len(max(text.split(">"), key=len)) < 20_000, "nor does a long name fill the page"
    for table in tables(hostile):
        for cell in (table.title, *table.headings, *(cell for row in table.rows for cell in row)):
            assert not re.search("[\x00-\x1f\u202a-\u202e\u2028\ud800-\udfff]", cell)


def test_json_is_what_its_schema_says(small: Report, hostile: Report) -> None:
    validator = jsonschema_rs.validator_for(json.loads(schema()))
    for report in (small, hostile, summarise(outcome(rules(1, v=1), job("a", "v", 0, 1)), ABOUT)):
        told = json.loads(as_json(report))
        validator.validate(told)
        assert told["schema_version"] == SCHEMA_VERSION
    assert Report.model_validate_json(as_json(small)) == small


def test_every_figure_of_the_schema_that_is_not_plain_is_described() -> None:
    told = json.loads(schema())
    described = [
        name
        for kind in ("Waits", "PoolUse", "TeamUse", "Lending", "Fairness")
        for name, field in told["$defs"][kind]["properties"].items()
        if "description" in field
    ]
    assert len(described) > 15
    assert all("description" in told["$defs"][kind] for kind in ("Waits", "Fairness", "Lending", "Change"))


def test_files_are_written_and_read_back(tmp_path: Path, hostile: Report) -> None:
    """One row for each job and replay; figures beside them."""
    jobs, figures = write_csv(tmp_path / "out.csv", hostile, hostile_pair())
    write_json(tmp_path / "out.json", hostile)
    write_html(tmp_path / "out.html", hostile)
    assert figures.name == "out-figures.csv"
    with jobs.open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) == 2 * 3 * len(HOSTILE)
    assert rows[4]["job"] == "'=HYPERLINK(1)", "no spreadsheet takes it for a formula"
    assert {row["fate"] for row in rows} == {"done"}
    with figures.open(encoding="utf-8", newline="") as stream:
        told = {(row["about"], row["name"], row["figure"]): row["value"] for row in csv.DictReader(stream)}
    assert told["all", "", "jobs"] == str(3 * len(HOSTILE))
    assert "wait_mean_s" in {figure for _, _, figure in told}


def test_csv_says_of_each_job_what_the_ledger_does(tmp_path: Path) -> None:
    found = outcome(rules(1, v=1), job("a", "v", 0, 100), job("b", "v", 10, 50), until_s=120)
    path, _ = write_csv(tmp_path / "jobs.csv", summarise(found, ABOUT), [found])
    with path.open(encoding="utf-8", newline="") as stream:
        first, second = csv.DictReader(stream)
    assert (first["wait_s"], first["held_s"], first["fate"], first["pool"]) == ("0.0", "100.0", "done", "p")
    assert first["ended_at"] == "2023-11-14T22:15:00+00:00"
    assert (second["wait_s"], second["fate"], second["ended_at"]) == ("90.0", "running", "")


def test_tables_show_both_rules_of_a_team_one_under_the_other(small: Report) -> None:
    found = {table.name: table for table in tables(small)}
    waits = found["waits-team"]
    assert waits.headings[:3] == ("TEAM", "RULES", "JOBS")
    assert [row[:2] for row in waits.rows] == [(team, name) for team in ("(all)", "v", "w") for name in ("now", "then")]
    assert 0 not in waits.numeric and 2 in waits.numeric
    assert len(found["lose"].details) == len(found["lose"].rows) > 0
    assert all(len(sentences) == 3 for sentences in found["lose"].details)
    assert "waits-pool" not in found, "with one pool it would say the same again"


def test_one_replay_alone_names_no_rules_and_loses_nothing() -> None:
    report = summarise(outcome(rules(2, v=1, w=1), job("a", "v", 0, 10), job("b", "w", 0, 10)), ABOUT)
    assert all("RULES" not in table.headings for table in tables(report))
    assert report.comparison is None
    assert "Who loses" not in Page(as_html(report)).words


def test_the_page_says_what_repeats_it_and_that_it_was_stopped() -> None:
    found = outcome(rules(1, v=1), job("a", "v", 0, 100), until_s=10)
    about = About(
        title="T", trace="t.csv", command="fairpool simulate t.csv --seed 7", version="9.9", seed=7, stopped=True
    )
    words = Page(as_html(summarise(found, about))).words
    for said in ("t.csv", "fairpool simulate t.csv --seed 7", "9.9", "stopped before its jobs were done"):
        assert said in words


def test_a_report_of_nothing_is_still_one() -> None:
    report = summarise(outcome(rules(1, v=1)), ABOUT)
    assert Page(as_html(report)).words
    assert report.replays[0].groups == []
    assert tables(report)

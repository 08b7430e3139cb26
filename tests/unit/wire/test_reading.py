"""Bodies are read strictly: every wrong field is named, with the value and what is possible."""

import time

import pytest
from pydantic import BaseModel

from fairpool.wire.events import HistoryEntry
from fairpool.wire.policies import PolicyCreate, PolicyUpdate
from fairpool.wire.pools import PoolCreate, PoolView
from fairpool.wire.problems import EXIT_CODES, Slug, exit_code
from fairpool.wire.reading import InvalidBody, read, shown
from fairpool.wire.requests import RequestBulkCreate, RequestCreate
from fairpool.wire.stacks import ComponentCreate, ComponentView
from fairpool.wire.text import MalformedText, loads
from fairpool.wire.vaults import VaultUpdate


def refused(model: type[BaseModel], data: object) -> dict[str, tuple[str, str, str]]:
    with pytest.raises(InvalidBody) as caught:
        read(model, data)
    return {problem.field: (problem.message, problem.value, problem.possible) for problem in caught.value.problems}


def test_an_unknown_field_is_refused_with_the_nearest_valid_one() -> None:
    message, value, possible = refused(RequestCreate, {"demand": {"gpu": 1}, "preemptable": False})["preemptable"]
    assert "did you mean 'preemptible'?" in message
    assert value == "preemptable"
    assert "node_count" in possible


def test_an_unknown_field_deep_inside_is_compared_with_its_neighbours() -> None:
    problems = refused(PoolCreate, {"name": "p", "nodes": [{"name": "n", "capacity": {}, "gpu_typ": "a100"}]})
    assert "did you mean 'gpu_type'?" in problems["nodes.0.gpu_typ"][0]
    problems = refused(RequestBulkCreate, {"requests": [{"prioritty": 1}]})
    assert "did you mean 'priority'?" in problems["requests.0.prioritty"][0]


def test_who_writes_the_pools_of_a_policy_as_one_list_is_told_how_they_are_written() -> None:
    message, _, possible = refused(PolicyCreate, {"subject": "team:red", "pools": ["a", "b"]})["pools"]
    assert message == "unknown field 'pools': the first of them is its 'pool', and 'also' lists the others"
    assert "also" in possible
    for word in ("pool", "pools"):
        assert "keeps its pool, and 'also' lists" in refused(PolicyUpdate, {word: "a"})[word][0]


def test_all_wrong_fields_are_named_at_once() -> None:
    problems = refused(PoolCreate, {"capacity": {"gpu": -1}, "ordering": "random", "max_bypass_s": -1})
    assert set(problems) == {"name", "capacity.gpu", "ordering", "max_bypass_s"}
    assert "'fair' or 'fifo'" in problems["ordering"][2]
    assert problems["name"][0] == "missing"


def test_a_large_value_is_shown_by_its_beginning_as_a_small_one_is() -> None:
    many: list[object] = [{"gpu": index, "name": ["a", None]} for index in range(20)]
    values: list[object] = [many, {"parts": many}, [[[["x" * 100]]]], ["x"] * 15, {}, [], {"a": {}}]
    for value in values:
        text = str(value)
        assert shown(value) == (text if len(text) <= 60 else text[:60] + "…")
    began = time.thread_time()
    assert shown([many] * 1_000_000).startswith("[[{'gpu': 0")
    assert time.thread_time() - began < 1.0


def test_of_many_wrong_fields_the_first_are_told_and_long_words_are_like_nothing() -> None:
    assert len(refused(RequestCreate, {f"field{index}": 1 for index in range(1_000)})) == 100
    assert "did you mean" not in refused(RequestCreate, {"demand" * 10_000: 1}).popitem()[1][0]


def test_amounts_of_more_keys_than_anybody_has_are_refused() -> None:
    keys = {f"k{index}": 1 for index in range(65)}
    assert refused(RequestCreate, {"demand": keys})["demand"][1:] == (shown(keys), "at most 64")
    assert refused(RequestCreate, {"demand": {"gpu": 1}, "pool": "p" * 201})["pool"][2] == "at most 200 characters"


def test_control_characters_are_shown_escaped() -> None:
    message, value, _ = refused(RequestCreate, {"\x1b[2Jdemand": 1})["\\x1b[2Jdemand"]
    assert "\x1b" not in message + value


def test_a_body_that_is_no_object_is_refused() -> None:
    assert refused(PoolCreate, [1])[""][0] == "not an object"


def test_an_answer_of_a_newer_server_is_read_without_what_is_unknown() -> None:
    assert read(PoolView, {"id": "1", "name": "p", "version": 1, "capacity": {}, "colour": "blue"}).name == "p"


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        (b'{"a": 1,\n "b": }', 2, 7),
        (b"", 1, 1),
        (b'{"a":\n\xff}', 2, 1),
        (b'{"a": NaN}', 1, 7),
        (b'{"NaN": 1,\n "a": -Infinity}', 2, 7),
        (b'{"a": 1, "a": 2}', 1, 10),
        (b'{"a": {"a": 1},\n "b": [{"c": 1, "\\u0063": 2}]}', 2, 17),
        (b'{"a": "\\ud83d\\ude00",\n "b": "\\\\ud800 \\ud800"}', 2, 16),
        (b'{"a":\n "\\ude00"}', 2, 3),
        (b"[" * 200_000, 1, 102),
        (b'{"a": ' + b"1" * 10_000 + b"}", 1, 7),
        (b"1" * 10_000, 1, 1),
    ],
)
def test_text_that_is_not_json_is_refused_with_line_and_column(text: bytes, line: int, column: int) -> None:
    with pytest.raises(MalformedText) as caught:
        loads(text)
    assert (caught.value.line, caught.value.column) == (line, column)


def test_a_byte_order_mark_is_refused_by_name() -> None:
    with pytest.raises(MalformedText, match="begins with a byte order mark"):
        loads(b"\xef\xbb\xbf{}")


def test_whole_characters_beyond_the_basic_plane_are_read() -> None:
    assert loads(b'{"a": "\\ud83d\\ude00 \\\\ud800"}') == {"a": "\U0001f600 \\ud800"}


@pytest.mark.parametrize(
    ("field", "value", "what", "possible"),
    [
        ("demand", [], "[]: not an object", "an object: {…}"),
        ("parts", {}, "{}: not a list", "a list: […]"),
        ("parts", [1], "1: not an object", "an object: {…}"),
        ("name", 7, "7: not text", "text"),
        ("name", "x" * 201, "too long", "at most 200 characters"),
        ("idempotency_key", "", "'': too short", "1 or more characters"),
        ("node_count", "2", "'2': not a whole number", "a whole number"),
        ("node_count", True, "true: not a whole number", "a whole number"),
        ("node_count", 1.5, "1.5: not a whole number", "a whole number"),
        ("node_count", 0, "0: too small", "1 or more"),
        ("preemptible", "yes", "'yes': neither true nor false", "true or false"),
        ("node_count", None, "null: not a whole number", "a whole number"),
        ("priority", 2**31, "too large", "at most 2147483647"),
        ("max_runtime_s", 10**30, "too large", "at most 1000000000"),
        ("wait_timeout_s", -1, "-1: too small", "0 or more"),
        ("labels", {str(key): "" for key in range(65)}, "too many", "at most 64"),
    ],
)
def test_a_value_of_the_wrong_type_or_size_is_refused_in_words_of_json(
    field: str, value: object, what: str, possible: str
) -> None:
    ((found, (message, _, told)),) = refused(RequestCreate, {"demand": {}, field: value}).items()
    assert found.split(".")[0] == field
    assert what in message
    assert told == possible


def test_a_key_with_a_control_character_is_named_once_and_escaped() -> None:
    assert list(refused(RequestCreate, {"demand": {}, "labels": {"a\nb": "c"}})) == ["labels.a\\nb"]


def test_every_slug_has_an_exit_code_and_an_unknown_one_is_a_failure() -> None:
    assert set(EXIT_CODES) == set(Slug)
    assert exit_code("not-found") == 3
    assert exit_code("from-the-future") == 1


@pytest.mark.parametrize("field", ["name", "labels"])
def test_no_control_character_gets_into_what_terminals_show(field: str) -> None:
    value = {"k": "a\x1b[31m"} if field == "labels" else "a\x1b[31m"
    problems = refused(RequestCreate, {"demand": {}, field: value})
    ((message, shown, possible),) = problems.values()
    assert "control character '\\x1b'" in message
    assert "\x1b" not in message + shown
    assert possible == "printable characters on one line"


def test_one_request_cannot_ask_for_more_parts_than_anybody_has_nodes() -> None:
    assert "node_count" in refused(RequestCreate, {"demand": {}, "node_count": 10**9})


def test_a_configuration_may_hold_fractions_and_no_number_beyond_a_float() -> None:
    sent = loads('{"name": "c", "config": {"a": [1.5, {"b": 0.1}], "c": 2}}')
    assert read(ComponentCreate, sent).config == {"a": [1.5, {"b": 0.1}], "c": 2}
    assert "too large" in refused(ComponentCreate, loads('{"name": "c", "config": {"a": 1e999}}'))["config"][0]
    assert (
        "too deeply"
        in refused(ComponentCreate, {"name": "c", "config": {"a": loads("[" * 60 + "]" * 60)}})["config"][0]
    )


def test_an_answer_may_hold_fractions_wherever_it_holds_anything() -> None:
    told = b'{"id": "", "name": "", "version": 1, "kind": "", "flavor": "", "subject": "", "config": {"a": 0.5}}'
    view = ComponentView.model_validate(loads(told))
    assert view.config == {"a": 0.5}
    entry = (
        b'{"id": 1, "kind": "pool", "object": "p", "at": "2026-01-01T00:00:00Z", "what": "x", "after": {"gpu": 0.5}}'
    )
    assert HistoryEntry.model_validate(loads(entry)).after == {"gpu": 0.5}


@pytest.mark.parametrize(
    "body",
    [
        {"secrets": {"A": {"value": ["s3cret"]}}},
        {"secrets": {"A": {"valeu": "s3cret"}}},
        {"secrets": {"A": "s3cret"}},
        {"secrets": "s3cret"},
        {"environment": {"A": {"value": 1, "locked": "s3cret"}}},
        {"image": {"value": {"s3cret": 1}}},
    ],
)
def test_what_is_wrong_with_a_body_that_holds_secrets_is_told_without_them(body: dict[str, object]) -> None:
    problems = refused(VaultUpdate, body)
    assert problems
    assert "s3cret" not in repr(problems)
    with pytest.raises(InvalidBody) as raised:
        read(VaultUpdate, "s3cret")
    assert "s3cret" not in repr(raised.value.problems)

"""The schemas by which editors check are those by which documents are read."""

from __future__ import annotations

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairpool.wire.manifests import schemas
from fairpool.wire.manifests.kinds import KINDS, read_document
from fairpool.wire.reading import InvalidBody
from tests.documents import FULL


def accepts(name: str, document: object) -> bool:
    return jsonschema_rs.validator_for(schemas.named(name)).is_valid(document)


@pytest.mark.parametrize("kind", KINDS)
def test_a_schema_takes_a_document_that_says_everything_and_refuses_what_nobody_knows(kind: str) -> None:
    jsonschema_rs.meta.validate(schemas.schema(kind))
    for name in (kind, schemas.ANY_KIND):
        assert accepts(name, FULL[kind])
        assert not accepts(name, {**FULL[kind], "reservd": 1})
        assert not accepts(name, {**FULL[kind], "kind": "polcy"})
    assert not accepts(kind, {key: value for key, value in FULL[kind].items() if key != "kind"})


def test_the_schema_for_any_kind_takes_each_by_its_own_rules() -> None:
    assert not accepts(schemas.ANY_KIND, {"kind": "policy", "name": "x"})
    assert accepts(schemas.ANY_KIND, {"kind": "step_operator", "name": "k8s"})


def test_the_schema_for_any_kind_takes_a_list_of_documents_as_files_do() -> None:
    assert accepts(schemas.ANY_KIND, list(FULL.values()))
    assert accepts(schemas.ANY_KIND, [])
    assert not accepts(schemas.ANY_KIND, [FULL["pool"], {**FULL["policy"], "reservd": 1}])
    assert not accepts(schemas.ANY_KIND, [[FULL["pool"]]])
    assert not accepts(schemas.ANY_KIND, [{"name": "x"}])


def test_a_document_without_a_kind_is_one_mistake_to_an_editor() -> None:
    found = jsonschema_rs.validator_for(schemas.any_kind()).iter_errors({"name": "x"})
    assert [error.message for error in found] == ['"kind" is a required property']


def test_what_the_server_shows_besides_is_no_mistake_to_an_editor() -> None:
    assert accepts("policy", {**FULL["policy"], "id": "x", "version": 2, "used": {"gpu": 1}})


def test_editors_show_what_each_field_means() -> None:
    properties = schemas.schema("policy")["properties"]
    assert isinstance(properties, dict)
    weight = properties["weight"]
    assert isinstance(weight, dict)
    assert weight["description"] == "how much of the surplus this policy deserves beside its equals."


@given(
    st.sampled_from(sorted(FULL)),
    st.dictionaries(
        st.sampled_from(sorted({name for document in FULL.values() for name in document} - {"kind", "type"})),
        st.sampled_from([None, True, 0, 1, -1, 0.5, "", "gpus", [], ["a"], {}, {"gpu": 1}, {"gpu": "x"}]),
        max_size=2,
    ),
)
def test_what_is_read_an_editor_takes_too(kind: str, changed: dict[str, object]) -> None:
    """Whatever a document says: the schema is never stricter than the server."""
    document = {**FULL[kind], **changed}
    try:
        read_document(document)
    except InvalidBody:
        return
    assert accepts(kind, document)

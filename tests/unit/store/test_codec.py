"""Values as text and back: nothing is lost, equal values are equal texts."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fairpool.core.amounts import MAX_UNITS, WHOLE, of
from fairpool.core.ids import PolicyId, PoolId, RequestId
from fairpool.core.plan import Claim
from fairpool.core.policies import Subject, SubjectKind
from fairpool.core.reasons import Code, Reason
from fairpool.core.requests import Demand, PartPlacement
from fairpool.store import codec

KEYS = st.from_regex(r"[A-Za-z0-9]([A-Za-z0-9._/-]{0,8}[A-Za-z0-9])?", fullmatch=True)
NAMES = st.from_regex(r"[A-Za-z0-9]([A-Za-z0-9._@+-]{0,8}[A-Za-z0-9])?", fullmatch=True)
THOUSANDTHS = st.integers(1, MAX_UNITS * WHOLE)
VECTORS = st.dictionaries(KEYS.filter(lambda key: key != "gpu"), THOUSANDTHS, max_size=4).map(of)
PLACEMENTS = st.lists(
    st.builds(
        PartPlacement,
        NAMES | st.just(""),
        st.lists(st.tuples(st.integers(0, 7), st.integers(1, 1000)), max_size=3).map(tuple),
    ),
    max_size=4,
).map(tuple)
NUMBERS = st.none() | st.integers(0, MAX_UNITS * WHOLE)
DOCUMENTS = st.dictionaries(
    st.text(),
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
        max_leaves=6,
    ),
    max_size=4,
)


@given(st.lists(VECTORS, min_size=1, max_size=5))
def test_a_demand_comes_back_part_by_part(parts: list[tuple[tuple[str, int], ...]]) -> None:
    demand = Demand(tuple(parts))
    assert codec.load_demand(codec.dump_demand(demand)) == demand


def test_a_thousand_equal_parts_take_no_more_room_than_one() -> None:
    demand = Demand.of(of({"gpu": 8000}), 1000)
    assert codec.dump_demand(demand) == '[[1000,{"gpu":8000}]]'
    assert codec.load_demand(codec.dump_demand(demand)) == demand


@given(st.lists(st.builds(Subject, st.sampled_from(SubjectKind), NAMES), max_size=4).map(tuple))
def test_subjects_come_back_in_their_order(subjects: tuple[Subject, ...]) -> None:
    assert codec.load_subjects(codec.dump_subjects(subjects)) == subjects


@given(PLACEMENTS)
def test_placements_and_claims_come_back(parts: tuple[PartPlacement, ...]) -> None:
    assert codec.load_parts(codec.dump_parts(parts)) == parts
    claim = Claim(request=RequestId("r"), pool=PoolId("p"), policy=PolicyId("q"), parts=parts)
    assert codec.load_claim(RequestId("r"), codec.dump_claim(claim)) == claim


@given(
    st.lists(
        st.builds(
            Reason,
            code=st.sampled_from(Code),
            pool=st.none() | NAMES.map(PoolId),
            policy=st.none() | NAMES.map(PolicyId),
            key=KEYS | st.just(""),
            asked=NUMBERS,
            possible=NUMBERS,
            free=NUMBERS,
            used=NUMBERS,
            reserved=NUMBERS,
            limit=NUMBERS,
            blocker=st.none() | NAMES.map(RequestId),
            degraded=st.booleans(),
        ),
        max_size=3,
    ).map(tuple)
)
def test_reasons_come_back_with_every_number_zero_among_them(reasons: tuple[Reason, ...]) -> None:
    assert codec.load_reasons(codec.dump_reasons(reasons)) == reasons


@given(DOCUMENTS)
def test_any_document_comes_back_and_its_text_is_plain_ascii(document: dict[str, object]) -> None:
    text = codec.dump_document(document)  # type: ignore[arg-type]  # JSON, as the strategy makes it
    assert codec.load_document(text) == document
    assert text is None or text.isascii()  # half a surrogate pair would otherwise be refused by the database


def test_equal_documents_are_equal_texts_whatever_their_order() -> None:
    assert codec.dump_document({"b": 1, "a": 2}) == codec.dump_document({"a": 2, "b": 1}) == '{"a":2,"b":1}'

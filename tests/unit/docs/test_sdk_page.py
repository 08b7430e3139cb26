"""The page on the SDK names all that is public, with its defaults."""

import re

import fairpool
from fairpool import Hold, Job, Pipeline, ResourceSettings, Step, StepContext, StepFuture, StepRetryConfig
from tests.tidy import tree

PAGE = tree.text(tree.ROOT / "docs" / "reference" / "sdk.md")


def named(name: str) -> bool:
    """Whether a code span of the page has the word."""
    return any(re.search(rf"(?<!\w){name}(?!\w)", span) for span in re.findall(r"`([^`]+)`", PAGE))


def test_every_public_name_is_on_the_page() -> None:
    assert [name for name in fairpool.__all__ if not named(name)] == []


def test_every_setting_is_on_the_page() -> None:
    fields = [*ResourceSettings.model_fields, *StepRetryConfig.model_fields]
    assert len(fields) > 15
    assert [name for name in fields if not named(name)] == []


def test_the_defaults_of_a_retry_are_those_of_the_code() -> None:
    fields = StepRetryConfig.model_fields.items()
    assert ", ".join(f"{name}={field.default}" for name, field in fields) in PAGE


def test_every_member_of_what_a_program_holds_is_on_the_page() -> None:
    missing = [
        f"{kind.__name__}.{name}"
        for kind in (StepContext, Hold, Job, Step, Pipeline, StepFuture)
        for name in vars(kind)
        if not name.startswith("_") and not named(name)
    ]
    assert missing == []

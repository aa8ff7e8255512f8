"""`SecretsMasker` of Airflow, as provider packages subclass it."""

from __future__ import annotations

from enum import Enum
from typing import Any

from tradewind.airflow.compat.secrets_masker import SecretsMasker, reset_secrets_masker


class Facet:
    def __init__(self, text: str) -> None:
        self.text = text


class Redactor(SecretsMasker):
    """As in openlineage: objects of the package are redacted by it, everything else by Airflow."""

    @classmethod
    def from_masker(cls, other: SecretsMasker) -> Redactor:
        found = cls()
        found.patterns, found.replacer = other.patterns, other.replacer
        return found

    def _redact(  # type: ignore[override]  # openlineage has these parameters
        self, item: Any, name: str | None, depth: int, max_depth: int, **more: Any
    ) -> Any:
        if isinstance(item, Facet):
            return Facet(self._redact(item.text, name=name, depth=depth + 1, max_depth=max_depth, **more))
        return super()._redact(item, name, depth, max_depth, **more)


def test_a_subclass_sees_the_values_in_values() -> None:
    redactor = Redactor.from_masker(SecretsMasker())
    redactor.add_mask("s3cret-of-the-redactor")
    found = redactor.redact({"a": [Facet("it is s3cret-of-the-redactor")], "password": ["x", {"y": "z"}], "n": 1})
    assert found["a"][0].text == "it is ***"
    assert (found["password"], found["n"]) == (["***", {"y": "***"}], 1)
    assert redactor.patterns == {"s3cret-of-the-redactor"}


def test_values_of_each_kind() -> None:
    class Kind(Enum):
        A = "another-s3cret"

    masker = SecretsMasker()
    masker.add_mask("another-s3cret")
    masker.add_mask("kept-in-sight", "no_name_of_a_thing_to_hide")
    assert masker.redact(("another-s3cret", Kind.A, "kept-in-sight")) == ("***", "***", "kept-in-sight")
    assert masker.redact("x another-s3cret", replacement="[hidden]") == "x [hidden]"
    deep = [[[["another-s3cret"]]]]
    assert masker.redact(deep, max_depth=2) == deep


def test_tests_forget_the_secrets_of_other_tests() -> None:
    masker = SecretsMasker()
    masker.add_mask("s3cret-of-one-test")
    assert masker.redact("s3cret-of-one-test") == "***"
    reset_secrets_masker()
    assert masker.redact("s3cret-of-one-test") == "s3cret-of-one-test"

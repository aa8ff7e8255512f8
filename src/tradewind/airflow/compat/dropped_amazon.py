"""Sensors that the provider package of Amazon dropped, built on its present sensors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from airflow.providers.amazon.aws.sensors.s3 import S3KeySensor

__all__ = ["S3KeySizeSensor", "S3PrefixSensor"]


class S3PrefixSensor(S3KeySensor):  # type: ignore[misc]
    """Waits for a key with each of these prefixes.

    Args:
        prefix: one prefix or several.
        delimiter: accepted without effect; the present sensor needs none.
    """

    def __init__(self, *, prefix: str | Sequence[str], delimiter: str = "/", **kwargs: Any) -> None:
        prefixes = [prefix] if isinstance(prefix, str) else list(prefix)
        kwargs.pop("bucket_key", None)
        super().__init__(bucket_key=[f"{one}*" for one in prefixes], wildcard_match=True, **kwargs)
        self.prefix = prefixes
        self.delimiter = delimiter


class S3KeySizeSensor(S3KeySensor):  # type: ignore[misc]
    """Waits until the keys exist and are not empty, or until `check_fn` accepts them."""

    def __init__(self, *, check_fn: Callable[..., bool] | None = None, **kwargs: Any) -> None:
        super().__init__(check_fn=check_fn or _not_empty, **kwargs)


def _not_empty(files: Sequence[Mapping[str, Any]], **_context: Any) -> bool:
    return all(file.get("Size", 0) > 0 for file in files)

"""`airflow.utils.yaml`: YAML without objects of Python."""

from __future__ import annotations

from typing import Any, cast

import yaml as _yaml

__all__ = ["YAMLError", "dump", "safe_load"]

YAMLError = _yaml.YAMLError

_LOADER = getattr(_yaml, "CSafeLoader", _yaml.SafeLoader)
_DUMPER = getattr(_yaml, "CSafeDumper", _yaml.SafeDumper)


def safe_load(stream: Any) -> Any:
    """The value of the first document."""
    return _yaml.load(stream, _LOADER)


def dump(data: Any, **kwargs: Any) -> str:
    """A value as YAML."""
    return cast("str", _yaml.dump(data, Dumper=_DUMPER, **kwargs))

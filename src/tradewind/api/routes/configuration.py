"""The configuration of the installation. Values of secrets are masked before they reach this process."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import msgspec
from fastapi import APIRouter, Header, Response

from tradewind.api.auth.policy import allow
from tradewind.api.responses import Api, described, json_response
from tradewind.api.routes.dag_files import wants_json
from tradewind.model.errors import NotFound, did_you_mean

router = APIRouter(prefix="/api/v2/config", tags=["Config"])

Accept = Annotated[str, Header()]


class ConfigOption(msgspec.Struct, frozen=True):
    key: str
    value: str


class ConfigSection(msgspec.Struct, frozen=True):
    name: str
    options: list[ConfigOption]


class Config(msgspec.Struct, frozen=True):
    """Sections with their options."""

    sections: list[ConfigSection]


def _described() -> dict[int | str, dict[str, object]]:
    found = described(Config, also=(404, 406))
    found[200]["content"]["text/plain"] = {"schema": {"type": "string"}}
    return found


@router.get("", responses=_described())
@allow("read", "configuration")
def get_config(api: Api, section: str | None = None, accept: Accept = "*/*") -> Response:
    """All settings, or those of one section. With `Accept: text/plain` in the form of an airflow.cfg."""
    options = api.config.options
    if section is not None:
        if section not in options:
            raise NotFound(f"Section {section} not found.{did_you_mean(section, options)}")
        options = {section: options[section]}
    return _answer(options, accept)


@router.get("/section/{section}/option/{option}", responses=_described())
@allow("read", "configuration")
def get_option(api: Api, section: str, option: str, accept: Accept = "*/*") -> Response:
    """One setting, under its name in Tradewind or its name in Airflow."""
    options = api.config.options
    value = options.get(section, {}).get(option)
    if value is None:
        ours = api.config.airflow_names.get(f"{section}.{option}")
        if ours is not None:
            value = options[ours[0]][ours[1]]
    if value is None:
        known = [f"{name}.{key}" for name, part in options.items() for key in part] + list(api.config.airflow_names)
        raise NotFound(f"Option [{section}/{option}] not found.{did_you_mean(f'{section}.{option}', known)}")
    return _answer({section: {option: value}}, accept)


def _answer(options: Mapping[str, Mapping[str, str]], accept: str) -> Response:
    if not wants_json(accept):
        parts = []
        for name, part in options.items():
            parts.append("\n".join([f"[{name}]", *(f"{key} = {value}" for key, value in part.items()), ""]))
        return Response("\n".join(parts), media_type="text/plain")
    return json_response(
        Config([ConfigSection(name, [ConfigOption(*one) for one in part.items()]) for name, part in options.items()])
    )

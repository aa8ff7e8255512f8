"""The provider packages of Airflow that are installed beside Tradewind."""

from __future__ import annotations

from importlib.metadata import distributions

import msgspec
from fastapi import APIRouter, Response

from tradewind.api.auth.policy import allow
from tradewind.api.responses import Api, Limit, Offset, described, json_response, page_size

router = APIRouter(prefix="/api/v2/providers", tags=["Provider"])


class ProviderView(msgspec.Struct, frozen=True):
    """One package."""

    package_name: str
    description: str
    version: str
    documentation_url: str | None


class Providers(msgspec.Struct, frozen=True):
    """A page of provider packages."""

    providers: list[ProviderView]
    total_entries: int


@router.get("", responses=described(Providers))
@allow("read", "provider")
def list_providers(api: Api, limit: Limit = 50, offset: Offset = 0) -> Response:
    """List the installed provider packages by name."""
    found = _installed()
    return json_response(Providers(found[offset : offset + page_size(api, limit)], len(found)))


def _installed() -> list[ProviderView]:
    found: dict[str, ProviderView] = {}
    for one in distributions():
        facts = one.metadata
        name = (facts["Name"] or "").lower()
        if name.startswith(("apache-airflow-providers-", "apache-airflow-backport-providers-")) and name not in found:
            urls = [url.partition(", ") for url in facts.get_all("Project-URL") or ()]
            links = [url for label, _, url in urls if label.lower() == "documentation"]
            found[name] = ProviderView(name, facts["Summary"] or "", one.version, links[0] if links else None)
    return [found[name] for name in sorted(found)]

"""Bulk changes: several creations, updates and deletions in one request. For each action, the answer contains the keys of the
changed entities and the errors.

Source of the rules: Airflow 3.3. If one entity of an action exists already, or does not exist, the action changes nothing and its
error is in the answer; the other actions are executed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Annotated, Any, Generic, Literal, TypeVar

import msgspec
from pydantic import BaseModel, ConfigDict, Field

from tradewind.api.responses import status_of
from tradewind.model.errors import TradewindError

Entity = TypeVar("Entity", bound=BaseModel)
ENTITIES_MAX = 1000
"""Maximum number of entities of one action."""


def fields_to_change(body: BaseModel, update_mask: Sequence[str] | None) -> set[str]:
    """The names of the fields that the client has sent, as they are written in JSON, restricted to the mask."""
    fields = type(body).model_fields
    sent = {fields[name].alias or name for name in body.model_fields_set}
    return sent if update_mask is None else sent.intersection(update_mask)


class BulkCreate(BaseModel, Generic[Entity]):
    model_config = ConfigDict(extra="forbid")

    action: Literal["create"]
    entities: list[Entity] = Field(max_length=ENTITIES_MAX)
    action_on_existence: Literal["fail", "skip", "overwrite"] = "fail"


class BulkUpdate(BaseModel, Generic[Entity]):
    model_config = ConfigDict(extra="forbid")

    action: Literal["update"]
    entities: list[Entity] = Field(max_length=ENTITIES_MAX)
    update_mask: list[str] | None = None
    action_on_non_existence: Literal["fail", "skip"] = "fail"


class BulkDelete(BaseModel, Generic[Entity]):
    model_config = ConfigDict(extra="forbid")

    action: Literal["delete"]
    entities: list[str | Entity] = Field(max_length=ENTITIES_MAX)
    action_on_non_existence: Literal["fail", "skip"] = "fail"


class BulkBody(BaseModel, Generic[Entity]):
    """Actions, which are executed one after the other."""

    model_config = ConfigDict(extra="forbid")

    actions: list[Annotated[BulkCreate[Entity] | BulkUpdate[Entity] | BulkDelete[Entity], Field(discriminator="action")]] = (
        Field(max_length=100)
    )


class BulkActionResult(msgspec.Struct):
    """The keys of the entities that an action changed, and its errors."""

    success: list[str] = []
    errors: list[dict[str, Any]] = []


class BulkResult(msgspec.Struct, frozen=True):
    """The result of each kind of action. Null: the request had no such action."""

    create: BulkActionResult | None = None
    update: BulkActionResult | None = None
    delete: BulkActionResult | None = None


class EntityChanges(Generic[Entity]):
    """How entities of one kind are changed.

    Args:
        key: the key of an entity.
        existing: which of these keys exist.
        create, update, delete: change one entity. Raise TradewindError. `create` None: this kind cannot be created in bulk.
            `update` gets the mask, or None.
    """

    def __init__(
        self,
        key: Callable[[Entity], str],
        existing: Callable[[Iterable[str]], set[str]],
        create: Callable[[Entity], None] | None,
        update: Callable[[Entity, Sequence[str] | None], None],
        delete: Callable[[str], None],
        what: str,
    ) -> None:
        self.key = key
        self.existing = existing
        self.create = create
        self.update = update
        self.delete = delete
        self.what = what


def execute(body: BulkBody[Entity], changes: EntityChanges[Entity]) -> BulkResult:
    """Execute all actions."""
    results: dict[str, BulkActionResult] = {}
    for action in body.actions:
        result = results.setdefault(action.action, BulkActionResult())
        match action:
            case BulkCreate():
                _create(action, changes, result)
            case BulkUpdate():
                _update(action, changes, result)
            case BulkDelete():
                _delete(action, changes, result)
    return BulkResult(**results)


def _create(action: BulkCreate[Entity], changes: EntityChanges[Entity], result: BulkActionResult) -> None:
    if changes.create is None:
        result.errors.append({"error": f"{changes.what} cannot be created in bulk.", "status_code": 405})
        return
    known = changes.existing(changes.key(one) for one in action.entities)
    if known and action.action_on_existence == "fail":
        _add_error(result, f"These {changes.what} exist already: {', '.join(sorted(known))}.", 409)
        return
    for entity in action.entities:
        key = changes.key(entity)
        if key in known and action.action_on_existence == "skip":
            continue
        if key in known:
            _one(result, key, lambda entity=entity: changes.update(entity, None))  # type: ignore[misc]
        else:
            _one(result, key, lambda entity=entity, create=changes.create: create(entity))  # type: ignore[misc]


def _update(action: BulkUpdate[Entity], changes: EntityChanges[Entity], result: BulkActionResult) -> None:
    keys = [changes.key(one) for one in action.entities]
    known = _known(keys, changes, action.action_on_non_existence, result)
    if known is None:
        return
    for key, entity in zip(keys, action.entities, strict=True):
        if key in known:
            _one(result, key, lambda entity=entity: changes.update(entity, action.update_mask))  # type: ignore[misc]


def _delete(action: BulkDelete[Entity], changes: EntityChanges[Entity], result: BulkActionResult) -> None:
    keys = [one if isinstance(one, str) else changes.key(one) for one in action.entities]
    known = _known(keys, changes, action.action_on_non_existence, result)
    if known is None:
        return
    for key in dict.fromkeys(keys):
        if key in known:
            _one(result, key, lambda key=key: changes.delete(key))  # type: ignore[misc]


def _known(keys: Sequence[str], changes: EntityChanges[Any], otherwise: str, result: BulkActionResult) -> set[str] | None:
    """The keys that exist. None: one is missing, and the action fails."""
    known = changes.existing(keys)
    missing = sorted(set(keys) - known)
    if missing and otherwise == "fail":
        _add_error(result, f"These {changes.what} were not found: {', '.join(missing)}.", 404)
        return None
    return known


def _one(result: BulkActionResult, key: str, change: Callable[[], None]) -> None:
    try:
        change()
    except TradewindError as error:
        status = status_of(error)
        if status >= 500:
            raise
        _add_error(result, f"{key}: {error}", status)
    else:
        result.success.append(key)


def _add_error(result: BulkActionResult, sentence: str, status: int) -> None:
    result.errors.append({"error": sentence, "status_code": status})

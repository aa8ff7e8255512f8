"""What people may ask for about assets. One method a command, as in `commands.py`."""

from __future__ import annotations

import secrets
from typing import Any

import msgspec

from tradewind.model.errors import Conflict, NotFound, did_you_mean
from tradewind.model.moments import iso
from tradewind.model.rows import AssetRow, NewAssetEvent
from tradewind.model.states import RunType
from tradewind.platform.clock import Clock
from tradewind.scheduler.assets.answers import asset_names, event_as_dict
from tradewind.scheduler.commands.effects import Effects
from tradewind.store.port import Store

Args = dict[str, Any]


class AssetCommands:
    """Mixed into `Commands`."""

    store: Store
    clock: Clock

    def do_create_asset_event(self, args: Args, actor: str, effects: Effects) -> Args:
        """asset_id, or name and/or uri; extra? → the event. The DAGs that wait for the asset are given it."""
        asset, now = self._asset(args), self.clock.wall()
        extra = args.get("extra") or {}
        if not isinstance(extra, dict):
            raise Conflict(f"extra is {extra!r}; it must be a JSON object")
        event = NewAssetEvent(asset.name, asset.uri, asset.group, msgspec.json.encode(extra) if extra else None, now)
        (number,), consumers = self.store.record_asset_events([event])
        effects.dags |= consumers
        self.store.note_audit("create asset event", actor, now, detail={"asset": asset.name, "uri": asset.uri, "event": number})
        found = self.store.asset_events(name=asset.name, uri=asset.uri, ascending=False, limit=1)
        return event_as_dict(self.store, found[0])

    def do_materialize_asset(self, args: Args, actor: str, effects: Effects) -> Args:
        """asset_id, or name and/or uri; conf?, note? → the run of the DAG that produces it."""
        asset = self._asset(args)
        dags = sorted({dag_id for dag_id, _ in self.store.producers(asset)})
        if not dags:
            raise NotFound(f"no DAG produces the asset {asset.name!r}: none has it among the outlets of its tasks")
        if len(dags) > 1:
            raise Conflict(f"more than one DAG produces the asset {asset.name!r} ({', '.join(dags)}); trigger one of them")
        now = iso(self.clock.wall()) or ""
        wanted = {name: args.get(name) for name in ("conf", "note", "triggered_by")}
        run_id = f"asset_materialization__{now.replace('Z', '+00:00')}_{secrets.token_hex(4)}"
        run_type = RunType.ASSET_MATERIALIZATION
        return self.do_trigger({**wanted, "dag_id": dags[0], "run_id": run_id, "run_type": run_type}, actor, effects)

    def do_drop_queued_events(self, args: Args, actor: str, effects: Effects) -> Args:
        """dag_id?, asset_id?, before? → the DAGs whose waiting events were dismissed. Raises NotFound where none waits."""
        dag_id, asset = args.get("dag_id"), args.get("asset_id")
        if dag_id is None and asset is None:
            raise Conflict("name a DAG, an asset, or both")
        if dag_id is not None:
            self.store.need_dag(dag_id)
        dags = self.store.drop_waiting_events(dag_id, asset, args.get("before"), actor, self.clock.wall())
        if not dags:
            about = [f"DAG {dag_id}"] * (dag_id is not None) + [f"asset {asset}"] * (asset is not None)
            raise NotFound(f"no event waits for {' and '.join(about)}")
        return {"dags": dags}

    def do_trigger(self, args: Args, actor: str, effects: Effects) -> Args:
        raise NotImplementedError

    def _asset(self, args: Args) -> AssetRow:
        """Raises NotFound with the nearest name."""
        number, name, uri = args.get("asset_id"), args.get("name") or "", args.get("uri") or ""
        if number is None and not name and not uri:
            raise Conflict("name an asset: by its id, name or uri")
        found = self.store.find_asset(number=number, name=name, uri=uri)
        if found is None:
            which = f"with id {number}" if number is not None else " and ".join(repr(text) for text in (name, uri) if text)
            raise NotFound(f"there is no asset {which}.{did_you_mean(name, asset_names(self.store))}")
        return found

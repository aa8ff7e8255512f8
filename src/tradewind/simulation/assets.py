"""Assets in the simulation: which tasks update them, which DAGs wait for them, the commands of users, and the checks of events.

As in `checks`, no code is shared with the kernel or the scheduler: which assets a success updates, which DAGs receive the event,
and when a condition is met are implemented a second time.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from tradewind.model.assets import AliasKey, AllOf, AnyOf, AssetKey, AssetSchedule, AssetUse, Condition
from tradewind.model.definition import DagDefinition, NoSchedule
from tradewind.model.moments import MINUTE
from tradewind.simulation.checks import RUNNING, SUCCESS, Checks, by_mark
from tradewind.simulation.shadow import AssetEvent, Change, Delivery, Run, Step
from tradewind.simulation.workload import Plan
from tradewind.wire.commands import CreateAssetEvent, DropQueuedEvents, IncomingCommand, name_of
from tradewind.wire.messages import AssetUpdate, CommandResult, Workload

if TYPE_CHECKING:
    from tradewind.simulation.world import World

SHARE = 0.4
"""Share of the seeds with assets."""
BY_PEOPLE = 0.5
"""Share of these seeds in which users create asset events and discard waiting ones."""
ALIASES = 0.5
"""Share of these seeds with aliases: tasks report updates under an alias, and DAGs wait for aliases."""
WAITS, CONSUMED, SUPERSEDED = range(3)
KIND = "asset_triggered"


class AssetWorkload:
    """Draws which assets the DAGs of this seed update and wait for, from a separate random stream.

    DAGs up to number k update asset number k, and only later DAGs wait for it: otherwise they would trigger each other forever. The
    same holds for alias number k; it may contain the assets up to number k, and one that no DAG names.
    """

    def __init__(self, world: World, drawn: bool) -> None:
        self._world = world
        # with this name of the stream, the older seeds in mutants.py have no assets
        self._rng = rng = world.timeline.stream("feeds")
        self.drawn = rng.random() < SHARE and drawn
        people = world.timeline.stream("the people")  # named for the same reason
        by_people = people.random() < BY_PEOPLE and self.drawn
        self.commands: float = people.choice((4, 20, 60)) if by_people else 0
        """Commands of users per hour."""
        self._said = 0
        self._names = world.timeline.stream("name as for")  # named for the same reason
        self.aliases = self._names.random() < ALIASES and self.drawn
        self.under: dict[str, tuple[AssetKey, ...]] = {}
        """Alias → the assets that may be updated under it."""

    def add_features(self, plan: Plan, place: int, of: int) -> Plan:
        """Add assets to a drawn DAG, if this seed has assets. `place`: the number of the DAG; `of`: the number of DAGs."""
        if not self.drawn:
            return plan
        rng, definition = self._rng, plan.definition
        known = [AssetKey(f"a{number}", f"x://a{number}") for number in range(max(1, of - 1))]
        uses = tuple(
            AssetUse(task.task_id, "outlet", asset)
            for task in definition.tasks
            for asset in known[place:]
            if not task.empty and rng.random() < 0.3
        )
        if self.aliases:
            uses += self._uses_of_aliases(definition, place, known)
        definition = msgspec.structs.replace(definition, asset_uses=uses)
        if place and rng.random() < 0.7:
            condition = self._condition(known[:place])
            if self.aliases:
                condition = self._under_aliases(condition)
            schedule = AssetSchedule(condition, dated=rng.random() < 0.3)
            besides = definition.schedule if rng.random() < 0.3 else NoSchedule()
            definition = msgspec.structs.replace(definition, assets=schedule, schedule=besides)
        return plan._replace(definition=definition)

    def _uses_of_aliases(self, definition: DagDefinition, place: int, known: list[AssetKey]) -> tuple[AssetUse, ...]:
        found = []
        for number in range(place, len(known)):
            unnamed = AssetKey(f"n{number}", f"x://n{number}")
            self.under[f"alias{number}"] = (*known[: number + 1], unnamed)
            found += [
                AssetUse(task.task_id, "outlet", AliasKey(f"alias{number}"))
                for task in definition.tasks
                if not task.empty and self._names.random() < 0.4
            ]
        return tuple(found)

    def _under_aliases(self, condition: Condition) -> Condition:
        """Replace some assets of a condition with the alias of their number."""
        if isinstance(condition, AllOf | AnyOf):
            return type(condition)(tuple(self._under_aliases(part) for part in condition.of))
        return AliasKey(condition.name.replace("a", "alias")) if self._names.random() < 0.5 else condition

    def command(self, rng: random.Random) -> None:
        """A user creates an asset event, or discards waiting events."""
        world = self._world
        if rng.random() < 0.75:
            self._said += 1
            name = f"a{rng.randrange(max(1, len(world.plans) - 1))}"
            which: dict[str, Any] = {"name": name} if rng.random() < 0.5 else {"uri": f"x://{name}"}
            world.timeline.faults["command create_asset_event"] += 1
            world.operator.send("create_asset_event", **which, extra={"said": self._said})
            return
        args: dict[str, Any] = {}
        known = world.assets.numbers()
        if known and rng.random() < 0.5:
            args["asset_id"] = rng.choice(known)
        if not args or rng.random() < 0.5:
            args["dag_id"] = rng.choice(sorted(world.plans))
        if rng.random() < 0.3:
            args["before"] = world.clock.wall() - rng.randrange(10 * MINUTE)
        world.timeline.faults["command drop_queued_events"] += 1
        world.operator.send("drop_queued_events", **args)

    def _condition(self, known: list[AssetKey]) -> Condition:
        rng = self._rng
        chosen = tuple(rng.sample(known, rng.randrange(1, len(known) + 1)))
        if len(chosen) == 1:
            return chosen[0]
        if len(chosen) > 2 and rng.random() < 0.5:
            return AllOf((AnyOf(chosen[:2]), *chosen[2:]))
        return AllOf(chosen) if rng.random() < 0.7 else AnyOf(chosen)

    def updates(self, work: Workload) -> tuple[AssetUpdate, ...]:
        """The asset updates that a success of this attempt reports."""
        row = self._world.checks.shadow.runs.get(work.run)
        if row is None or (self._world.recovering and not self.drawn):  # given DAGs may trigger each other forever
            return ()
        uses = self._world.checks.shape(row.version).definition.asset_uses
        keys = [use.what for use in uses if use.kind == "outlet" and use.task_id == work.task_id]
        plain = [AssetUpdate(key.name, key.uri) for key in keys if isinstance(key, AssetKey) and key.name and key.uri]
        return (*plain, *self._under(work, [key.name for key in keys if isinstance(key, AliasKey)]))

    def _under(self, work: Workload, aliases: list[str]) -> Iterable[AssetUpdate]:
        """The updates of this attempt under aliases: one for each asset with all its aliases, as the task process reports them."""
        rng = self._world.timeline.stream(f"aliases of {work.key}")
        said: dict[AssetKey, list[str]] = {}
        for alias in aliases:
            assets = [asset for asset in self.under.get(alias, ()) if asset.name >= f"a{self._place(work.dag_id)}"]
            for asset in rng.sample(assets, min(len(assets), rng.choice((0, 1, 1, 2)))):
                said.setdefault(asset, []).append(alias)
        return [AssetUpdate(asset.name, asset.uri, aliases=tuple(names)) for asset, names in said.items()]

    def _place(self, dag_id: str) -> int:
        return sorted(self._world.plans).index(dag_id)


class Update(NamedTuple):
    """One asset update of a success."""

    run: int
    task_id: str
    map_index: int
    asset: str
    aliases: tuple[str, ...]


def holds(condition: Condition, updated: set[str]) -> bool:
    """True if a condition is met when the assets and aliases with these names were updated."""
    if isinstance(condition, AllOf | AnyOf):
        parts = [holds(part, updated) for part in condition.of]
        return all(parts) if isinstance(condition, AllOf) else any(parts)
    return _word_of(condition) in updated


def _word_of(leaf: AssetKey | AliasKey) -> str:
    """The name of an asset or alias in a condition."""
    return f"alias {leaf.name}" if isinstance(leaf, AliasKey) else leaf.name


def named(definition: DagDefinition) -> set[str]:
    """The names of assets and aliases that a DAG waits for."""

    def of(condition: Condition) -> set[str]:
        return set().union(*map(of, condition.of)) if isinstance(condition, AllOf | AnyOf) else {_word_of(condition)}

    return set() if definition.assets is None else of(definition.assets.condition)


class AssetChecks:
    """Checks of asset events: one for each update, delivered to every DAG that waits for it, consumed once."""

    def __init__(self, checks: Checks) -> None:
        self._checks = checks
        self._events: dict[int, AssetEvent] = {}
        self._deliveries: dict[str, dict[int, Delivery]] = {}
        """DAG → event → row."""
        self._runs: set[int] = set()
        self._named: set[str] = set()
        """Assets that a DAG has ever named."""
        self._words: dict[str, set[str]] = {}
        """Asset → all names in conditions: its own name, and every alias under which it was updated."""

    def numbers(self) -> list[int]:
        """Numbers of the assets that have events."""
        return sorted({row.number for row in self._events.values()})

    def committed(self, changes: Iterable[Change], by_scheduler: bool, command: IncomingCommand | None) -> None:
        """Called after `Checks.committed`. `by_scheduler`: the commit is a batch of decisions. `command`: the executed command."""
        wanted: Counter[Update] = Counter()
        new: dict[int, AssetEvent] = {}
        gone: list[int] = []
        moved: list[tuple[str, int, Delivery | None, Delivery | None]] = []
        made: dict[int, Run] = {}
        for kind, key, row in changes:
            if kind == "journal" and by_scheduler and row is not None:
                self._step(key[0], row, wanted)
            elif kind == "run" and row is not None and key[0] not in self._runs:
                self._runs.add(key[0])
                made[key[0]] = row
            elif kind == "asset event" and row is None:
                gone.append(key[0])
            elif kind == "asset event" and key[0] not in self._events:
                new[key[0]] = self._events[key[0]] = row
            elif kind == "version" and row is not None:
                self._named |= named(row) | {_word_of(use.what) for use in row.asset_uses}
            elif kind == "delivery":
                rows = self._deliveries.setdefault(key[0], {})
                moved.append((key[0], key[1], rows.get(key[1]), row))
        self._emitted({event: row for event, row in new.items() if row.dag_id is not None}, wanted)
        self._written([row for row in new.values() if row.dag_id is None], command)
        dismissed = self._dismissed(moved, command)
        self._check_new_events(new, {(dag_id, event): row for dag_id, event, _, row in moved})
        before = {dag_id: dict(self._deliveries[dag_id]) for dag_id, _, _, _ in moved}
        for dag_id, event, old, row in moved:
            self._moved(dag_id, event, old, row, made, (dag_id, event) in dismissed)
        for run, one in made.items():
            if one.kind == KIND:
                self._made(run, one, before.get(one.dag_id, {}))
        for event in gone:
            self._retired(event)

    def _step(self, run: int, step: Step, wanted: Counter[Update]) -> None:
        """A success updates the assets that its task process reported."""
        report = self._checks.said.get((run, step.slot, step.fence))
        task = self._checks.shadow.tasks.get(run, {}).get(step.slot)
        if step.before != RUNNING or step.after != SUCCESS or by_mark(step) or report is None or task is None:
            return
        for one in report.assets:
            wanted[Update(run, task.task_id, task.map_index, one.name, tuple(sorted(one.aliases)))] += 1

    def _emitted(self, new: dict[int, AssetEvent], wanted: Counter[Update]) -> None:
        """45: each update has one event, in the commit of its success."""
        shadow = self._checks.shadow
        numbers: dict[tuple[str | None, str | None], int]
        numbers = {(row.dag_id, row.run_id): run for run, row in shadow.runs.items()} if new else {}
        found = Counter(
            Update(numbers.get((row.dag_id, row.run_id), 0), row.task_id, row.map_index, row.asset, row.aliases)
            for row in new.values()
        )
        if found != wanted:
            self._checks.violated("45 assets", f"events {dict(found)} were written, but the successes updated {dict(wanted)}")
        if new:
            self._checks.sometimes("an asset was updated")
        if any(row.aliases for row in new.values()):
            self._checks.sometimes("an asset was updated under an alias")
        if any(row.asset not in self._named for row in new.values()):
            self._checks.sometimes("an asset was updated that no DAG names")

    def _written(self, new: list[AssetEvent], command: IncomingCommand | None) -> None:
        """45: each command that creates an event has one event, without a task."""
        request = command.command if command is not None and isinstance(command.command, CreateAssetEvent) else None
        if len(new) != (request is not None):
            self._checks.violated("45 assets", f"a commit that ends {_name(command)} writes {len(new)} events of no task")
        for row in new:
            said = None if row.extra is None else msgspec.json.decode(row.extra)
            named = request is None or (request.name in (None, row.asset) and request.uri in (None, f"x://{row.asset}"))
            if not named or (request is not None and said != request.extra):
                self._checks.violated("45 assets", f"an event of {row.asset} with {said} was written for {request}")
            self._checks.sometimes("a person wrote that an asset was updated")

    def _matching(self, command: DropQueuedEvents) -> set[tuple[str, int]]:
        """(DAG, event) of all waiting events that this command discards."""
        return {
            (dag_id, event)
            for dag_id, rows in self._deliveries.items()
            for event, one in rows.items()
            if one.outcome == WAITS
            and command.dag_id in (None, dag_id)
            and command.asset_id in (None, self._events[event].number)
            and (command.before is None or self._events[event].at < command.before)
        }

    def _dismissed(
        self, moved: list[tuple[str, int, Delivery | None, Delivery | None]], command: IncomingCommand | None
    ) -> set[tuple[str, int]]:
        """47: a discard by a user removes exactly the named events. Returns (DAG, event) of each."""
        if command is None or not isinstance(command.command, DropQueuedEvents):
            return set()
        wanted = self._matching(command.command)
        found = {(dag_id, event) for dag_id, event, old, row in moved if row is not None and row.outcome == SUPERSEDED}
        if found != wanted or len(moved) != len(found):
            self._checks.violated("47 assets", f"{command.command} dismisses {sorted(found)} of {sorted(wanted)}")
        for dag_id, event in found:
            counted = self._deliveries[dag_id][event].counts
            self._checks.sometimes(f"a person dismissed what {'waited' if counted else 'came while a DAG was paused'}")
        return found

    def answered(self, incoming: IncomingCommand, result: CommandResult) -> None:
        """47, 45: the answer that there is no such asset or event must be correct."""
        command = incoming.command
        if result.error != "NotFound":
            return
        if isinstance(command, CreateAssetEvent):
            name = command.name or (command.uri or "").removeprefix("x://")
            if name in self._named:
                self._checks.violated("45 assets", f"{command}: {result.message}, but there is {name}")
        elif isinstance(command, DropQueuedEvents) and command.dag_id in (None, *self._checks.shadow.dags):
            waits = self._matching(command)
            if waits:
                self._checks.violated("47 assets", f"{command}: {result.message}, but {sorted(waits)} wait")

    def _check_new_events(self, new: dict[int, AssetEvent], moved: dict[tuple[str, int], Delivery | None]) -> None:
        """46: every DAG that waits for the asset receives the event, with the information if it was paused."""
        shadow = self._checks.shadow
        for event, row in sorted(new.items()):
            self._words.setdefault(row.asset, {row.asset}).update(f"alias {alias}" for alias in row.aliases)
            for dag_id, dag in shadow.dags.items():
                by = self._words[row.asset] & named(shadow.versions[dag.version])
                waits = dag.is_active and bool(by)
                if waits and by.isdisjoint({row.asset, *(f"alias {alias}" for alias in row.aliases)}):
                    self._checks.sometimes("a DAG that waits for an alias is told of an asset that came under it before")
                delivery = moved.get((dag_id, event))
                if waits and dag.is_paused:
                    self._checks.sometimes("an asset was updated while a DAG that waits for it was paused")
                if waits and (delivery is None or delivery.counts is dag.is_paused):
                    self._checks.violated("46 assets", f"event {event} of {row.asset} does not wait rightly for {dag_id}")
                if not waits and delivery is not None:
                    self._checks.violated("46 assets", f"event {event} waits for {dag_id}, which does not wait for {row.asset}")

    def _moved(
        self,
        dag_id: str,
        event: int,
        old: Delivery | None,
        row: Delivery | None,
        made: dict[int, Run],
        dismissed: bool,
    ) -> None:
        """47: a waiting event is consumed once, by a run that is created in the same commit.

        `dismissed`: a user discards it now.
        """
        shadow, dag = self._checks.shadow, self._checks.shadow.dags.get(dag_id)
        rows = self._deliveries[dag_id]
        if row is None:
            rows.pop(event, None)
            lost = old is not None and (old.outcome == WAITS or (old.run in shadow.runs and old.outcome == CONSUMED))
            if lost and dag is not None:
                self._checks.violated("47 assets", f"event {event} does not wait for {dag_id} any more")
            return
        rows[event] = row
        if old == row:
            return
        if old is not None and old.outcome != WAITS:
            self._checks.violated("47 assets", f"event {event} was {_word(old)} for {dag_id}, and then {_word(row)}")
        elif row.outcome == CONSUMED and (row.run not in made or made[row.run].dag_id != dag_id):
            self._checks.violated("47 assets", f"event {event} is consumed by {row.run}, which is no new run of {dag_id}")
        elif row.outcome == SUPERSEDED and dag is not None and not dismissed:
            asset = self._events[event].asset
            if self._words[asset] & named(shadow.versions[dag.version]):
                self._checks.violated("47 assets", f"event {event} is dropped, but {dag_id} still waits for {asset}")

    def _made(self, run: int, row: Run, before: dict[int, Delivery]) -> None:
        """48: a run is created when its condition is met, for a DAG that is not paused, and takes all waiting events."""
        shadow, dag = self._checks.shadow, self._checks.shadow.dags[row.dag_id]
        now = self._deliveries.get(row.dag_id, {})
        taken = [event for event, one in now.items() if one.run == run]
        where = f"run {row.run_id} of {row.dag_id}"
        if not taken:
            self._checks.violated("48 assets", f"{where} is made without an event")
        if any(one.outcome == WAITS for one in now.values()):
            self._checks.violated("48 assets", f"{where} leaves events behind")
        if dag.is_paused:
            self._checks.violated("48 assets", f"{where} is made though its DAG is paused")
        schedule = shadow.versions[row.version].assets
        updated = self._updated(before)
        if schedule is None or not holds(schedule.condition, updated):
            self._checks.violated("48 assets", f"{where} is made for {sorted(updated)} only")
        self._checks.sometimes("a run was made for assets")
        if taken and self._events[taken[-1]].dag_id is None:
            self._checks.sometimes("a run was made because a person wrote an event")
        if updated & {word for word in named(shadow.versions[row.version]) if word.startswith("alias ")}:
            self._checks.sometimes("a run was made for what came under an alias")
        if len(taken) > len({self._events[event].asset for event in taken}):
            self._checks.sometimes("a run consumed several events of an asset")

    def _retired(self, event: int) -> None:
        if any(rows[event].outcome == WAITS for rows in self._deliveries.values() if event in rows):
            self._checks.violated("47 assets", f"event {event} was deleted, but a DAG waits for it")
        self._events.pop(event, None)

    def _updated(self, rows: dict[int, Delivery]) -> set[str]:
        """Names of the assets with waiting events that count."""
        waiting = {self._events[event].asset for event, one in rows.items() if one.outcome == WAITS and one.counts}
        return set().union(*(self._words[asset] for asset in waiting))

    def due(self) -> list[str]:
        """DAGs whose condition is met, and which need a run."""
        shadow = self._checks.shadow
        found = []
        for dag_id, rows in self._deliveries.items():
            dag = shadow.dags.get(dag_id)
            schedule = None if dag is None else shadow.versions[dag.version].assets
            if dag is None or schedule is None or dag.is_paused or not dag.is_active:
                continue
            if holds(schedule.condition, self._updated(rows)):
                found.append(dag_id)
        return found


def _name(command: IncomingCommand | None) -> str:
    return "no command" if command is None else f"the command {name_of(command.command)}"


def _word(row: Delivery) -> str:
    return f"{('waiting', 'consumed', 'superseded')[row.outcome]}{'' if row.run is None else f' by run {row.run}'}"

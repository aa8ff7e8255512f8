"""What people and the parser may ask for. One method a command.

The live scheduler calls these for whoever speaks to its socket; with no live scheduler the command line takes the writer's lock
and calls the very same ones. A command runs in one transaction together with its remembered answer, so a repeated command gets
the same answer and has no second effect. `Effects` tells a live scheduler what to look at again.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import msgspec

from tradewind.model import errors
from tradewind.model.errors import Conflict, TradewindError, did_you_mean
from tradewind.model.ids import check_run_id
from tradewind.model.moments import iso
from tradewind.model.states import RunType
from tradewind.observe.log import Log
from tradewind.scheduler.config import SchedulerConfig
from tradewind.scheduler.run_params import check_conf
from tradewind.scheduler.schedule_book import schedule_of
from tradewind.service.clock import Clock
from tradewind.store.nouns import ConnectionRow, ImportProblem, NewRun, ParsedDag, ParsedFile, PoolRow, RunRow, VariableRow
from tradewind.store.port import Store
from tradewind.timetables import manual_interval
from tradewind.wire.messages import Command, CommandResult

Args = dict[str, Any]

log = Log("commands")

_encode = msgspec.msgpack.Encoder().encode
_decode_result = msgspec.msgpack.Decoder(CommandResult).decode


@dataclass(slots=True)
class Effects:
    """What a command changed, for the scheduler's memory."""

    dags: set[str] = field(default_factory=set)
    runs: set[int] = field(default_factory=set)
    pools: bool = False
    gone_pools: set[str] = field(default_factory=set)


class Commands:
    """See the module.

    Args:
        encrypt: turns a text into the bytes that the store keeps (variables, passwords).
    """

    def __init__(self, store: Store, clock: Clock, config: SchedulerConfig, encrypt: Callable[[str], bytes]) -> None:
        self.store = store
        self.clock = clock
        self.config = config
        self.encrypt = encrypt

    def run(self, command: Command) -> tuple[CommandResult, Effects]:
        """Carry out a command once. Errors of ours become its answer; others are the caller's."""
        effects = Effects()
        known = self.store.answered(command.op)
        if known is not None:
            return _decode_result(known), effects
        work: Callable[[Args, str, Effects], Any] | None = getattr(self, f"do_{command.name}", None)
        if work is None:
            names = [name.removeprefix("do_") for name in dir(self) if name.startswith("do_")]
            message = f"there is no command {command.name!r}.{did_you_mean(command.name, names)}"
            return CommandResult(command.op, None, "NotFound", message), effects
        try:
            with self.store.transaction():
                value = work(command.args, command.actor or "unknown", effects)
                result = CommandResult(command.op, value)
                if command.name not in _HARMLESS:
                    self.store.remember(command.op, _encode(result), self.clock.wall())
        except (KeyError, msgspec.ValidationError) as error:
            result = CommandResult(command.op, None, "Conflict", f"{command.name}: an argument is missing or wrong: {error}")
            effects = Effects()
        except TradewindError as error:
            result, effects = CommandResult(command.op, None, type(error).__name__, str(error)), Effects()
        except (TypeError, ValueError, OverflowError) as error:
            # an argument of a type nobody thought of; the asker must get an answer, or it asks for ever
            log.exception("a command could not be carried out", command=command.name)
            message = f"{command.name}: an argument has a wrong type or value: {error}"
            result, effects = CommandResult(command.op, None, "Conflict", message), Effects()
        return result, effects

    # --- DAGs and runs --------------------------------------------------------------------------------------------

    def do_set_paused(self, args: Args, actor: str, effects: Effects) -> Args:
        """dag_id, is_paused → whether it changed."""
        changed = self.store.set_paused(args["dag_id"], bool(args["is_paused"]), actor, self.clock.wall())
        effects.dags.add(args["dag_id"])
        return {"dag_id": args["dag_id"], "is_paused": bool(args["is_paused"]), "changed": changed}

    def do_trigger(self, args: Args, actor: str, effects: Effects) -> Args:
        """dag_id, run_id?, logical_date?, run_after?, interval_start?, interval_end?, conf?, note? → the run."""
        now = self.clock.wall()
        plan = self.store.need_dag(args["dag_id"])
        if not plan.is_active:
            raise Conflict(
                f"DAG {plan.dag_id} is not in the DAG folder any more (its file was {plan.file}); nothing can run it"
            )
        definition = self.store.definition(plan.version)
        conf = args.get("conf") or {}
        check_conf(definition, conf)
        logical_date = args.get("logical_date")
        run_after = args.get("run_after") or max(now, logical_date or 0)
        interval = (args.get("interval_start"), args.get("interval_end"))
        if interval == (None, None):
            interval = manual_interval(schedule_of(plan), logical_date if logical_date is not None else now, now) or (
                None,
                None,
            )
        moment = logical_date if logical_date is not None else run_after
        run_id = args.get("run_id") or f"manual__{(iso(moment) or '').replace('Z', '+00:00')}"
        if logical_date is None and not args.get("run_id"):
            run_id += f"_{secrets.token_hex(4)}"
        check_run_id(run_id)
        row = self.store.create_run(
            NewRun(
                plan.dag_id,
                run_id,
                RunType(args.get("run_type") or RunType.MANUAL),
                plan.version,
                logical_date,
                interval[0],
                interval[1],
                run_after,
                now,
                args.get("triggered_by") or "cli",
                actor,
                msgspec.json.encode(conf) if conf else None,
                args.get("note"),
            )
        )
        effects.dags.add(plan.dag_id)
        return run_as_dict(row)

    def do_clear(self, args: Args, actor: str, effects: Effects) -> Args:
        """dag_id, run_id? (else all runs in [start, end]), task_ids, upstream, downstream, only_failed, only_running, dry_run.

        → the task instances concerned.
        """
        dag_id, store = args["dag_id"], self.store
        chosen = store.select_tasks(
            dag_id,
            args.get("task_ids") or (),
            upstream=bool(args.get("upstream")),
            downstream=bool(args.get("downstream")),
        )
        touched = []
        for row in self._runs_to_clear(args):
            found = store.clearable(
                row,
                chosen,
                only_failed=bool(args.get("only_failed")),
                only_running=bool(args.get("only_running")),
            )
            for _, task_id, map_index, state in found:
                touched.append(
                    {"dag_id": dag_id, "run_id": row.run_id, "task_id": task_id, "map_index": map_index, "state": state}
                )
            if found and not args.get("dry_run"):
                store.clear(row.id, [slot for slot, *_ in found], actor, self.clock.wall(), args.get("reason") or "")
                effects.runs.add(row.id)
                effects.dags.add(dag_id)
        return {"task_instances": touched, "dry_run": bool(args.get("dry_run"))}

    def _runs_to_clear(self, args: Args) -> list[RunRow]:
        if args.get("run_id"):
            return [self.store.need_run(args["dag_id"], args["run_id"])]
        return self.store.runs_between(args["dag_id"], args.get("start"), args.get("end"))

    # --- pools, variables, connections ------------------------------------------------------------------------------

    def do_set_pool(self, args: Args, actor: str, effects: Effects) -> Args:
        """name, slots, description?, include_deferred? → the pool."""
        pool = PoolRow(args["name"], int(args["slots"]), args.get("description"), bool(args.get("include_deferred")))
        self.store.set_pool(pool, actor, self.clock.wall())
        effects.pools = True
        return pool._asdict()

    def do_delete_pool(self, args: Args, actor: str, effects: Effects) -> None:
        """name."""
        self.store.delete_pool(args["name"], actor, self.clock.wall())
        effects.gone_pools.add(args["name"])

    def do_set_variable(self, args: Args, actor: str, effects: Effects) -> Args:
        """key, value (text), description?."""
        if not args["key"]:
            raise Conflict("a variable needs a key")
        row = VariableRow(args["key"], self.encrypt(args["value"]), args.get("description"), True)
        self.store.set_variable(row, actor, self.clock.wall())
        return {"key": args["key"]}

    def do_delete_variable(self, args: Args, actor: str, effects: Effects) -> None:
        """key."""
        self.store.delete_variable(args["key"], actor, self.clock.wall())

    def do_set_connection(self, args: Args, actor: str, effects: Effects) -> Args:
        """conn_id, conn_type, description?, host?, login?, port?, schema?, password?, extra?; replace? (default yes)."""
        secret = {name: self.encrypt(args[name]) if args.get(name) else None for name in ("password", "extra")}
        row = ConnectionRow(
            args["conn_id"],
            args["conn_type"],
            args.get("description"),
            args.get("host"),
            args.get("login"),
            args.get("port"),
            args.get("schema"),
            secret["password"],
            secret["extra"],
        )
        self.store.set_connection(row, actor, self.clock.wall(), replace=args.get("replace", True))
        return {"conn_id": row.conn_id}

    def do_delete_connection(self, args: Args, actor: str, effects: Effects) -> None:
        """conn_id."""
        self.store.delete_connection(args["conn_id"], actor, self.clock.wall())

    # --- the parser ---------------------------------------------------------------------------------------------------

    def do_register_file(self, args: Args, actor: str, effects: Effects) -> Args:
        """What parsing one file came to; see `parsed_file`. → ids of the DAGs that changed."""
        parsed = parsed_file(args)
        changed = self.store.register_file(parsed, paused_at_creation=self.config.paused_at_creation)
        effects.dags.update(changed)
        return {"changed": changed}

    def do_register_files(self, args: Args, actor: str, effects: Effects) -> Args:
        """Several files in one transaction."""
        changed: list[str] = []
        for one in args["files"]:
            changed += self.do_register_file(one, actor, effects)["changed"]
        return {"changed": changed}

    def do_known_files(self, args: Args, actor: str, effects: Effects) -> Args:
        """bundle → {file: [hash, is_dynamic]}."""
        return {file: list(facts) for file, facts in self.store.known_files(args["bundle"]).items()}

    def do_forget_files(self, args: Args, actor: str, effects: Effects) -> Args:
        """bundle, files → ids of the DAGs that went."""
        gone = self.store.forget_files(args["bundle"], list(args["files"]), self.clock.wall())
        effects.dags.update(gone)
        return {"gone": gone}


_HARMLESS = frozenset({"known_files", "register_file", "register_files", "forget_files"})
"""Asking, or saying the same again, has no second effect: their answers need not be remembered."""


def parsed_file(args: Args) -> ParsedFile:
    """bundle, file, file_hash, dags [[id, definition, hash]], problem {message, stack_trace, line}?, duration, is_dynamic, at."""
    problem = args.get("problem")
    return ParsedFile(
        args["bundle"],
        args["file"],
        args["file_hash"],
        tuple(ParsedDag(*dag) for dag in args["dags"]),
        ImportProblem(problem["message"], problem["stack_trace"], problem.get("line")) if problem else None,
        args["duration"],
        bool(args.get("is_dynamic")),
        args["at"],
    )


def run_as_dict(row: RunRow) -> Args:
    """A run for the wire: enums as words, conf as a mapping."""
    found = row._asdict()
    found["state"], found["run_type"] = row.state.value, row.run_type.value
    found["conf"] = msgspec.json.decode(row.conf) if row.conf else {}
    return found


def raise_error(result: CommandResult) -> Any:
    """The value of a result; its error raised as what it was."""
    if result.error is None:
        return result.value
    kind = getattr(errors, result.error, TradewindError)
    raise kind(result.message)

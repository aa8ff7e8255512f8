"""What people and the parser may ask for. One method a command.

The live scheduler calls these for whoever speaks to its socket; with no live scheduler the command line takes the writer's lock
and calls the very same ones. A command runs in one transaction together with its remembered answer, so a repeated command gets
the same answer and has no second effect. Its `Effects` tell a live scheduler what to look at again.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import Any

import msgspec

from tradewind.model import errors
from tradewind.model.definition import CustomSchedule
from tradewind.model.errors import Conflict, InternalError, TradewindError, did_you_mean
from tradewind.model.ids import check_run_id
from tradewind.model.moments import iso
from tradewind.model.rows import (
    ConnectionRow,
    DagPlan,
    ImportProblem,
    NewRun,
    ParsedDag,
    ParsedFile,
    PoolRow,
    RunRow,
    VariableRow,
)
from tradewind.model.states import RunType
from tradewind.platform.clock import Clock
from tradewind.scheduler.commands.arguments import as_fault, check_arguments
from tradewind.scheduler.commands.assets import AssetCommands
from tradewind.scheduler.commands.backfills import BackfillCommands
from tradewind.scheduler.commands.callbacks import CallbackCommands
from tradewind.scheduler.commands.clear import ClearCommands
from tradewind.scheduler.commands.effects import Effects
from tradewind.scheduler.commands.logins import LoginCommands
from tradewind.scheduler.commands.mark import MarkCommands
from tradewind.scheduler.commands.note import NoteCommands
from tradewind.scheduler.commands.run_task import RunTaskCommands
from tradewind.scheduler.config import SchedulerConfig
from tradewind.scheduler.dags.schedule import schedule_of
from tradewind.scheduler.epoch import must_be_newest
from tradewind.scheduler.runs.params import check_conf
from tradewind.store.port import Store
from tradewind.timetables import manual_interval
from tradewind.wire.messages import Command, CommandResult, TimetableAnswer, TimetableQuestion

Args = dict[str, Any]

PLUGINS_BUNDLE = "plugins"
"""Under this name of a folder the import errors show what is wrong with plugins."""

_encode = msgspec.msgpack.Encoder().encode
_decode_result = msgspec.msgpack.Decoder(CommandResult).decode


class Commands(
    AssetCommands,
    BackfillCommands,
    CallbackCommands,
    ClearCommands,
    LoginCommands,
    MarkCommands,
    NoteCommands,
    RunTaskCommands,
):
    """See the module.

    Args:
        encrypt: turns a text into the bytes that the store keeps (variables, passwords).
        ask: asks a custom timetable and waits for what it tells. The live scheduler waits for nobody: it asks beforehand, as
            `question` says, and passes the answer as `told`.
    """

    def __init__(
        self,
        store: Store,
        clock: Clock,
        config: SchedulerConfig,
        encrypt: Callable[[str], bytes],
        ask: Callable[[TimetableQuestion], TimetableAnswer] | None = None,
    ) -> None:
        self.store = store
        self.clock = clock
        self.config = config
        self.encrypt = encrypt
        self.ask = ask
        self.epoch = 0
        """Of the scheduler that carries them out: one that was superseded does not. 0: nobody's."""

    def run(self, command: Command) -> tuple[CommandResult, Effects]:
        """Carry out a command once. Whatever goes wrong becomes its answer, in the end as an `InternalError`.

        Raises:
            StoreError: it cannot be read whether it was carried out already.
        """
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
            check_arguments(command.name, command.args)
            with self.store.transaction():
                must_be_newest(self.store, self.epoch)
                value = work(command.args, command.actor or "unknown", effects)
                result = CommandResult(command.op, value)
                if command.name not in _HARMLESS:
                    self.store.remember(command.op, _encode(result), self.clock.wall())
        except Exception as error:  # the client must get a result, or it repeats the command for ever
            result, effects = refusal(command, error), Effects()
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
            interval = self._manual_interval(plan, args, now) or (None, None)
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
        self.store.note_audit("trigger", actor, now, dag_id=plan.dag_id, run_id=run_id, detail={"conf": conf} if conf else None)
        effects.created.append(row)
        return run_as_dict(row)

    def do_trigger_from_task(self, args: Args, actor: str, effects: Effects) -> Args:
        """dag_id, run_id?, logical_date?, conf?, note?, reset?, fail_when_paused? → what was `done`, and the run's id and date.

        `done`: `created`; `cleared`, the run that exists, with `reset`; else `exists`; `paused`, with `fail_when_paused`.
        """
        plan = self.store.need_dag(args["dag_id"])
        if args.get("fail_when_paused") and plan.is_paused:
            return {"done": "paused", "run_id": args.get("run_id"), "logical_date": args.get("logical_date")}
        found = self._same_run(plan.dag_id, args.get("run_id"), args.get("logical_date"))
        if found is None:
            wanted = {name: args.get(name) for name in ("dag_id", "run_id", "logical_date", "conf", "note", "told")}
            made = self.do_trigger(
                {**wanted, "run_type": RunType.OPERATOR_TRIGGERED, "triggered_by": "operator"}, actor, effects
            )
            return {"done": "created", "run_id": made["run_id"], "logical_date": made["logical_date"]}
        if args.get("reset"):
            reason = f"triggered again by {actor}"
            self.do_clear({"dag_id": plan.dag_id, "run_id": found.run_id, "reason": reason}, actor, effects)
        done = "cleared" if args.get("reset") else "exists"
        return {"done": done, "run_id": found.run_id, "logical_date": found.logical_date}

    def _same_run(self, dag_id: str, run_id: str | None, logical_date: int | None) -> RunRow | None:
        """The run that stands in the way of a new one with this id or date."""
        found = self.store.find_run(dag_id, run_id) if run_id else None
        if found is None and logical_date is not None:
            found = self.store.previous_run(dag_id, logical_date + 1, scheduled_only=False)
            found = found if found is not None and found.logical_date == logical_date else None
        return found

    def do_delete_dag(self, args: Args, actor: str, effects: Effects) -> Args:
        """dag_id → how many runs went, the spill files that nothing refers to any more, and whether the DAG itself is gone.

        A bounded step: repeat it until it is.
        """
        removed, gone = self.store.delete_dag(args["dag_id"], actor, self.clock.wall())
        effects.dags.add(args["dag_id"])
        effects.removed += removed.removed
        return {"runs": removed.runs, "spills": removed.spills, "gone": gone}

    def do_retire(self, args: Args, actor: str, effects: Effects) -> Args:
        """before, dag_id?, keep? (newest runs of each DAG that stay) → how many runs went, and spill files nobody refers to.

        A bounded step: repeat it until none goes.
        """
        now = self.clock.wall()
        removed = self.store.retire(min(args["before"], now), int(args.get("keep") or 0), now, dag_id=args.get("dag_id"))
        if removed.runs:
            self.store.note_audit("retire", actor, now, dag_id=args.get("dag_id"), detail={"runs": removed.runs})
            effects.removed += removed.removed
        return {"runs": removed.runs, "spills": removed.spills}

    def question(self, command: Command, number: int) -> TimetableQuestion | None:
        """What a custom timetable has to be asked before this command can be carried out; None: nothing."""
        args = command.args
        if command.name not in TRIGGERING or args.get("interval_start") is not None or args.get("interval_end") is not None:
            return None
        plan = self.store.dag(str(args.get("dag_id")))
        if plan is None or not plan.is_active or not isinstance(schedule_of(plan), CustomSchedule):
            return None
        return self._manual_question(plan, args, number, self.clock.wall())

    def _manual_question(self, plan: DagPlan, args: Args, number: int, now: int) -> TimetableQuestion:
        at = args.get("logical_date")
        at = at if isinstance(at, int) else now
        folder = self.config.folder(plan.bundle)
        return TimetableQuestion(number, plan.dag_id, folder, plan.file, plan.schedule, manual_at=at)

    def _manual_interval(self, plan: DagPlan, args: Args, now: int) -> tuple[int, int] | None:
        """The data interval of a run by hand that names none.

        Raises:
            Conflict: its custom timetable does not say.
        """
        schedule, at = schedule_of(plan), args.get("logical_date")
        if not isinstance(schedule, CustomSchedule):
            return manual_interval(schedule, now if at is None else at, now)
        told = args.get("told")
        if not isinstance(told, TimetableAnswer):
            told = None  # from outside
        if told is None and self.ask is not None:
            told = self.ask(self._manual_question(plan, args, 0, now))
        if told is None:
            raise Conflict(f"the timetable {schedule.name} of DAG {plan.dag_id} was not asked; give the data interval yourself")
        if told.problem is not None:
            raise Conflict(
                f"the timetable {schedule.name} of DAG {plan.dag_id} gives no data interval for a run by hand: {told.problem}"
            )
        return told.interval

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
        effects.lookups.add(f"variable {row.key}")
        return {"key": args["key"]}

    def do_delete_variable(self, args: Args, actor: str, effects: Effects) -> None:
        """key."""
        self.store.delete_variable(args["key"], actor, self.clock.wall())
        effects.lookups.add(f"variable {args['key']}")

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
        effects.lookups.add(f"connection {row.conn_id}")
        return {"conn_id": row.conn_id}

    def do_delete_connection(self, args: Args, actor: str, effects: Effects) -> None:
        """conn_id."""
        self.store.delete_connection(args["conn_id"], actor, self.clock.wall())
        effects.lookups.add(f"connection {args['conn_id']}")

    # --- the parser ---------------------------------------------------------------------------------------------------

    def do_register_file(self, args: Args, actor: str, effects: Effects) -> Args:
        """What parsing one file came to; see `parsed_file`. → ids of the DAGs that changed."""
        parsed = parsed_file(args)
        changed = self.store.register_file(parsed, paused_at_creation=self.config.paused_at_creation)
        effects.dags.update(changed)
        effects.read.update(dag.dag_id for dag in parsed.dags)
        return {"changed": changed}

    def do_register_files(self, args: Args, actor: str, effects: Effects) -> Args:
        """Several files in one transaction."""
        changed: list[str] = []
        for one in args["files"]:
            changed += self.do_register_file(one, actor, effects)["changed"]
        return {"changed": changed}

    def do_register_plugins(self, args: Args, actor: str, effects: Effects) -> None:
        """plugins [facts], problems [{file, message, stack_trace, line}], at: all there are now."""
        store, at, broken = self.store, args["at"], {problem["file"]: problem for problem in args["problems"]}
        store.set_plugins(msgspec.json.encode(args["plugins"]).decode())
        store.forget_files(PLUGINS_BUNDLE, sorted(set(store.known_files(PLUGINS_BUNDLE)) - set(broken)), at)
        for file, problem in broken.items():
            why = ImportProblem(problem["message"], problem["stack_trace"], problem.get("line"))
            parsed = ParsedFile(PLUGINS_BUNDLE, file, "", (), why, duration=0, is_dynamic=False, at=at)
            store.register_file(parsed, paused_at_creation=True)

    def do_known_files(self, args: Args, actor: str, effects: Effects) -> Args:
        """bundle → {file: [hash, is_dynamic]}."""
        return {file: list(facts) for file, facts in self.store.known_files(args["bundle"]).items()}

    def do_forget_files(self, args: Args, actor: str, effects: Effects) -> Args:
        """bundle, files → ids of the DAGs that went."""
        gone = self.store.forget_files(args["bundle"], list(args["files"]), self.clock.wall())
        effects.dags.update(gone)
        return {"gone": gone}


def refusal(command: Command, error: Exception) -> CommandResult:
    """The answer to a command or question that failed. Call it while the exception is being handled: a fault of ours is logged."""
    if isinstance(error, InternalError) or not isinstance(error, TradewindError):
        error = as_fault(command.name, error)
    return CommandResult(command.op, None, type(error).__name__, str(error))


TRIGGERING = frozenset({"trigger", "trigger_from_task"})
"""Commands that make a run, and so may need the word of a custom timetable."""

_HARMLESS = frozenset(
    {"known_files", "list_callbacks", "list_misses", "register_plugins", "register_file", "register_files", "forget_files"}
)
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

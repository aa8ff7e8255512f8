"""The handlers of commands by type, and the execution of commands.

The live scheduler executes the commands of all clients that connect to its socket. Without a live scheduler the command line takes
the writer's lock and calls the same code. A command runs in one transaction together with its stored result, so a repeated command
gets the same result and has no second effect. Its `Effects` say what a live scheduler must read from the store again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from tradewind.platform.clock import Clock
from tradewind.scheduler.commands import (
    assets,
    backfills,
    callbacks,
    clear,
    connections,
    dag_files,
    dags,
    import_runs,
    input_answers,
    logins,
    mark,
    notes,
    pools,
    run_task,
    runs,
    state_stores,
    trigger,
    variables,
    xcoms,
)
from tradewind.scheduler.commands.context import AskTimetable, CommandContext
from tradewind.scheduler.commands.effects import Effects
from tradewind.scheduler.commands.refusal import refusal
from tradewind.scheduler.config import SchedulerConfig
from tradewind.scheduler.epoch import must_be_newest
from tradewind.store.port import Store
from tradewind.wire import commands as c
from tradewind.wire.messages import CommandResult, TimetableAnswer, TimetableQuestion

Handler = Callable[[CommandContext, Any], Any]
"""Executes a command of one type, and returns the result type of the command."""

NOT_REMEMBERED = (
    c.KnownFiles,
    c.NoteUnreadFiles,
    c.RegisterPlugins,
    c.RegisterFile,
    c.RegisterFiles,
    c.MoveToBundleVersion,
    c.ForgetFiles,
)
"""Commands whose repetition changes nothing: their results need not be stored."""

_encode = msgspec.msgpack.Encoder().encode
_decode_result = msgspec.msgpack.Decoder(CommandResult).decode


def handlers() -> dict[type[c.Command[Any]], Handler]:
    """Return the handlers by type of the command. `scheduler.explain.questions` answers the questions, which change nothing."""
    return {
        c.SetPaused: dags.set_paused,
        c.SetFavorite: dags.set_favorite,
        c.ReadDagFile: dag_files.read_dag_file,
        c.DeleteRun: runs.delete_run,
        c.DeleteTaskInstance: runs.delete_task_instance,
        c.SetXCom: xcoms.set_xcom,
        c.DeleteXCom: xcoms.delete_xcom,
        c.SetTaskState: state_stores.set_task_state,
        c.DeleteTaskState: state_stores.delete_task_state,
        c.SetAssetState: state_stores.set_asset_state,
        c.DeleteAssetState: state_stores.delete_asset_state,
        c.DeleteDag: dags.delete_dag,
        c.Retire: dags.retire,
        c.Trigger: trigger.trigger,
        c.TriggerFromTask: trigger.trigger_from_task,
        c.ClearTasks: clear.clear_tasks,
        c.MarkTasks: mark.mark_tasks,
        c.SetRunState: mark.set_run_state,
        c.NoteRun: notes.note_run,
        c.NoteTask: notes.note_task,
        c.RunTask: run_task.run_task,
        c.AnswerInput: input_answers.answer_input,
        c.CreateBackfill: backfills.create_backfill,
        c.PauseBackfill: backfills.pause_backfill,
        c.CancelBackfill: backfills.cancel_backfill,
        c.CreateAssetEvent: assets.create_asset_event,
        c.MaterializeAsset: assets.materialize_asset,
        c.DropQueuedEvents: assets.drop_queued_events,
        c.RetryCallbacks: callbacks.retry_callbacks,
        c.DropCallbacks: callbacks.drop_callbacks,
        c.SetPool: pools.set_pool,
        c.DeletePool: pools.delete_pool,
        c.SetVariable: variables.set_variable,
        c.DeleteVariable: variables.delete_variable,
        c.SetConnection: connections.set_connection,
        c.DeleteConnection: connections.delete_connection,
        c.ImportRuns: import_runs.import_runs,
        c.ImportPosition: import_runs.import_position,
        c.ImportAssetEvents: import_runs.import_asset_events,
        c.RegisterFile: dag_files.register_file,
        c.RegisterFiles: dag_files.register_files,
        c.RegisterPlugins: dag_files.register_plugins,
        c.KnownFiles: dag_files.known_files,
        c.NoteUnreadFiles: dag_files.note_unread_files,
        c.ForgetFiles: dag_files.forget_files,
        c.MoveToBundleVersion: dag_files.move_to_bundle_version,
        c.NoteLogins: logins.note_logins,
        c.NoteAccountEvent: logins.note_account_event,
        c.RevokeToken: logins.revoke_token,
    }


class Commands:
    """Executes commands.

    Args:
        encrypt: turns a text into the bytes that the store keeps (variables, passwords).
        ask_timetable: asks a custom timetable and waits for its answer. The live scheduler never waits: it asks before it calls
            `run`, as `timetable_question` says.
    """

    def __init__(
        self,
        store: Store,
        clock: Clock,
        config: SchedulerConfig,
        encrypt: Callable[[str], bytes],
        ask_timetable: AskTimetable | None = None,
    ) -> None:
        self.store = store
        self.clock = clock
        self.config = config
        self.encrypt = encrypt
        self.ask_timetable = ask_timetable
        self.epoch = 0
        """Epoch of the scheduler that executes these commands. Commands of an older epoch are refused. 0: no scheduler runs."""
        self._handlers = handlers()

    def run(
        self, incoming: c.IncomingCommand, timetable_answer: TimetableAnswer | None = None
    ) -> tuple[CommandResult, Effects]:
        """Execute a command once. Every error is in its result; a bug in Tradewind is an `InternalError`.

        Raises:
            StoreError: the store cannot tell whether the command was executed before.
        """
        op, command, actor = incoming
        known = self.store.command_result(op)
        if known is not None:
            return _decode_result(known), Effects()
        context = CommandContext(self.store, self.clock, self.config, self.encrypt, actor, self.ask_timetable, timetable_answer)
        try:
            with self.store.transaction():
                must_be_newest(self.store, self.epoch)
                result = c.result_for(op, self._handlers[type(command)](context, command))
                if not isinstance(command, NOT_REMEMBERED):
                    self.store.save_command_result(op, _encode(result), self.clock.wall())
        except Exception as error:  # the client must get a result, or it repeats the command for ever
            return refusal(op, c.name_of(command), error), Effects()
        return result, context.effects

    def timetable_question(self, command: c.Command[Any], number: int) -> TimetableQuestion | None:
        """Return the question that a custom timetable has to answer before this command is executed. None: there is no question."""
        now = self.clock.wall()
        if isinstance(command, c.Trigger | c.TriggerFromTask):
            return trigger.timetable_question(self.store, command, number, now)
        if isinstance(command, c.MaterializeAsset):
            return assets.timetable_question(self.store, command, number, now)
        return backfills.timetable_question(self.store, command, number) if isinstance(command, c.CreateBackfill) else None

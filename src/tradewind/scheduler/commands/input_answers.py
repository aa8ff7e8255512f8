"""The command that answers the question of a task (human in the loop)."""

from __future__ import annotations

import msgspec

from tradewind.model.errors import Conflict, NotFound, WrongArgument, did_you_mean
from tradewind.model.rows import InputAnswer
from tradewind.model.waits import InputWait
from tradewind.scheduler.commands.context import CommandContext
from tradewind.wire import commands as c


def answer_input(context: CommandContext, command: c.AnswerInput) -> c.AnswerInputResult:
    """Write the answer. The task continues as soon as the command is committed.

    Raises:
        NotFound: there is no such run or task instance.
        Conflict: the task instance does not wait for an answer.
        Changed: another person has just answered.
        WrongArgument: an option or a form field does not exist, or several options are given but only one is allowed.
    """
    store, now = context.store, context.clock.wall()
    run = store.need_run(command.dag_id, command.run_id)
    found = store.open_input(run.id, command.task_id, command.map_index)
    if found is None:
        raise _not_waiting(context, run.id, command)
    slot, fence, wait = found
    check_answer(wait, command.chosen, list(command.params))
    chosen = tuple(command.chosen)
    answer = InputAnswer(slot, fence, now, command.user_id, command.user_name, chosen, msgspec.json.encode(command.params))
    store.answer_input(run.id, answer)
    context.effects.answered.add((run.id, slot))
    store.write_audit(
        "answer input",
        context.actor,
        now,
        dag_id=command.dag_id,
        run_id=command.run_id,
        detail={
            "task_id": command.task_id,
            "map_index": command.map_index,
            "chosen_options": command.chosen,
            "fields": sorted(command.params),
        },
    )
    return c.AnswerInputResult(command.chosen, command.params, now)


def check_answer(wait: InputWait, chosen: list[str], fields: list[str]) -> None:
    """Check the names in an answer. The values of the fields are checked by the client and by the task.

    Raises:
        WrongArgument: see `answer_input`.
    """
    unknown = next((option for option in chosen if option not in wait.options), None)
    if unknown is not None:
        near = did_you_mean(unknown, wait.options)
        raise WrongArgument(f"{unknown!r} is not an option; the options are: {', '.join(wait.options)}.{near}")
    if not chosen:
        raise WrongArgument(f"choose an option: {', '.join(wait.options)}")
    if len(chosen) > 1 and not wait.multiple:
        raise WrongArgument(f"{len(chosen)} options are chosen, but the task asks for one of: {', '.join(wait.options)}")
    names = list(msgspec.json.decode(wait.params))
    for name in fields:
        if name not in names:
            raise WrongArgument(
                f"the question has no field {name!r}; its fields are: {', '.join(names) or 'none'}.{did_you_mean(name, names)}"
            )
    missing = [name for name in names if name not in fields]
    if fields and missing:
        raise WrongArgument(f"the answer lacks the field {missing[0]!r}; give all fields or none")


def _not_waiting(context: CommandContext, run: int, command: c.AnswerInput) -> Conflict | NotFound:
    states = context.store.states_of(run, [command.task_id])
    if command.task_id not in states:
        return NotFound(f"the run {command.run_id!r} of DAG {command.dag_id} has no task instance of {command.task_id!r}")
    which = f"[{command.map_index}]" if command.map_index >= 0 else ""
    return Conflict(
        f"{command.task_id}{which} in {command.run_id!r} does not wait for an answer: it was answered already, or its state is "
        "not awaiting_input. See: tradewind hitl list"
    )

"""Commands of the parser about the existing DAG files and plugins, and the command to read a file again."""

from __future__ import annotations

import msgspec

from tradewind.model.errors import NotFound
from tradewind.model.rows import ImportProblem, ParsedDag, ParsedFile, UnreadFiles
from tradewind.scheduler.commands.context import CommandContext
from tradewind.wire import commands as c

PLUGINS_BUNDLE = "plugins"
"""Import errors of plugins are stored and shown under this bundle name."""


def register_file(context: CommandContext, command: c.RegisterFile) -> c.RegisterFileResult:
    parsed = ParsedFile(
        command.bundle,
        command.file,
        command.file_hash,
        tuple(ParsedDag(*dag) for dag in command.dags),
        _import_problem(command.problem),
        command.duration,
        command.is_dynamic,
        command.at,
        command.bundle_version,
    )
    changed = context.store.register_file(parsed, paused_at_creation=context.config.paused_at_creation)
    context.effects.dags.update(changed)
    context.effects.read.update(dag.dag_id for dag in parsed.dags)
    return c.RegisterFileResult(list(changed))


def register_files(context: CommandContext, command: c.RegisterFiles) -> c.RegisterFileResult:
    changed: list[str] = []
    for one in command.files:
        changed += register_file(context, one).changed
    return c.RegisterFileResult(changed)


def read_dag_file(context: CommandContext, command: c.ReadDagFile) -> None:
    """Raises NotFound: there is no such file."""
    if command.file not in context.store.known_files(command.bundle):
        raise NotFound(f"the bundle {command.bundle} has no DAG file {command.file!r}")
    context.effects.files.add(command.file)


def register_plugins(context: CommandContext, command: c.RegisterPlugins) -> None:
    store, broken = context.store, {problem.file: problem for problem in command.problems}
    store.set_plugins(msgspec.json.encode(command.plugins).decode())
    context.effects.plugins = True
    store.forget_files(PLUGINS_BUNDLE, sorted(set(store.known_files(PLUGINS_BUNDLE)) - set(broken)), command.at)
    for file, problem in broken.items():
        why = _import_problem(problem)
        parsed = ParsedFile(PLUGINS_BUNDLE, file, "", (), why, duration=0, is_dynamic=False, at=command.at)
        store.register_file(parsed, paused_at_creation=True)


def known_files(context: CommandContext, command: c.KnownFiles) -> dict[str, c.KnownFile]:
    return {file: c.KnownFile(*facts) for file, facts in context.store.known_files(command.bundle).items()}


def note_unread_files(context: CommandContext, command: c.NoteUnreadFiles) -> None:
    context.store.note_unread_files(command.bundle, UnreadFiles(command.files, command.unread))


def move_to_bundle_version(context: CommandContext, command: c.MoveToBundleVersion) -> c.MoveToBundleVersionResult:
    moved = context.store.move_to_bundle_version(command.bundle, command.version, command.files)
    context.effects.dags.update(moved)
    return c.MoveToBundleVersionResult(list(moved), context.store.used_bundle_versions(command.bundle))


def forget_files(context: CommandContext, command: c.ForgetFiles) -> c.ForgetFilesResult:
    gone = context.store.forget_files(command.bundle, command.files, context.clock.wall())
    context.effects.dags.update(gone)
    return c.ForgetFilesResult(list(gone))


def _import_problem(problem: c.FileProblem | None) -> ImportProblem | None:
    return None if problem is None else ImportProblem(problem.message, problem.stack_trace, problem.line)

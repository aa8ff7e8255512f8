"""The parser: reads a folder of Python files and sends their definitions to the scheduler.

    change in the folder ──▶ scan ──▶ files with a new fingerprint ──▶ parse children ──▶ evaluation ──▶ outbox ──▶ scheduler

A notification of a change (or a timer, in case a notification is lost) starts one scan of the whole folder. A file is read if its
fingerprint differs from the one of its last reading. The result of a child is evaluated before it is sent:

* The file, or a module that it loads, changed during the reading: read it again.
* It has fewer DAGs and was changed a moment ago: it may be only half written; read it again when it has not changed for a while.
* It failed a moment after it was changed: the last valid version is kept (by the scheduler), and it is read once more.
* Nothing changed in it, but the result differs: its import depends on outside data. It is read once more immediately. If both
  readings agree, the outside data have changed, and the new DAGs are used. If they differ, the file gives a different result each
  time (`start_date=datetime.now()`, random ids): it is *unstable*. Its versions are kept, and from then on only its shape (tasks,
  dependencies, schedule) is compared, again with a confirming second reading. So such a file does not create a version at each
  reading.
* It requested a variable or connection while the scheduler was not reachable: the result is ignored, and the file is read again
  when the scheduler is reachable.

Files that depend on outside data, and files with a problem, are read again at each `dynamic_interval`, or less often if they are
slow. Other files are read again only when they change. A file that requested a variable or connection is also read again when this
variable or connection is changed.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from typing import Any

import msgspec

from tradewind import __version__
from tradewind.model.definition import DEFINITION_FORMAT
from tradewind.model.moments import SECOND
from tradewind.observe.log import Log
from tradewind.parser.children import ParseChildren, ReadResult
from tradewind.parser.config import ParserConfig
from tradewind.parser.folder import FolderScan, scan_folder
from tradewind.parser.outbox import Batch, Outbox, Send
from tradewind.parser.parse_result import FileOutcome, Problem, ReadDag, one_problem
from tradewind.parser.plugins import PluginsFolder, as_command
from tradewind.parser.sources import Sources
from tradewind.parser.varying_fields import varying_fields
from tradewind.parser.watch import open_watch
from tradewind.platform import linux
from tradewind.platform.clock import Clock
from tradewind.platform.loop import Loop, TimerHandle
from tradewind.wire.commands import KnownFile, KnownFiles, MoveToBundleVersion, NoteUnreadFiles, result_of
from tradewind.wire.messages import AssetsChanged, CommandResult

log = Log("parser")

DEBOUNCE = SECOND // 25
"""Time to wait after a notification for more changes (an editor's write and rename, a checkout)."""
SETTLE_TIME = 3 * SECOND // 2
"""A file must be unchanged for this long before removed DAGs, or its absence, are accepted."""
RETRY_ONCE_AFTER = SECOND
"""A file that failed soon after a change is read once more, after this time."""
SCAN_SHARE = 10
"""Scans take at most one part in this many of the time."""
UNWATCHED_INTERVAL = 5 * SECOND
"""Time between scans if the folder cannot be watched."""
READINGS_FOR_SLOW = 20
"""Regular readings of a file take at most one part in this many of the time."""
CHANGES_WHILE_READING_MAX = 3
"""After this many readings in a row during which the file changed (its own import may write to the folder), the result is used."""
QUICK_READINGS_MAX, QUICK_GAP = 5, 2 * SECOND
"""After this many readings of one file in quick succession, the next one is delayed, because the file changes all the time."""

_UNUSABLE = "unusable: "
"""The prefix of the fingerprint of a name that ends in `.py` but is not a readable file."""

ASSET_CREATION_LISTENERS = frozenset(
    {"on_asset_created", "on_asset_alias_created", "on_dataset_created", "on_dataset_alias_created"}
)
ASSET_EVENT_LISTENERS = frozenset({"on_asset_changed", "on_dataset_changed", "on_asset_event_emitted"})
PROGRESS_INTERVAL = SECOND // 4
"""While files are being read, the scheduler is told at most this often how many are left."""
UNREPORTED_MAX = 1_000
"""Problems that are kept for listeners until the plugins are loaded."""

IDLE_AFTER = 15 * SECOND
"""After this time without a reading, the zygote is stopped. The next reading starts one, which takes a fifth of a second."""


class File(msgspec.Struct, eq=False):
    """What the parser knows about one file."""

    name: str
    fingerprint: str | None = None
    """The fingerprint of the last finished reading; after a start, the one that the scheduler has stored."""
    dag_ids: tuple[str, ...] | None = None
    """None: the ids that the scheduler has stored; the file was not read since the start."""
    structure: str | None = None
    """A hash of the last result that was sent."""
    shape: str | None = None
    candidate: str | None = None
    """A different structure (or shape) that needs a confirming second reading."""
    candidate_dags: tuple[ReadDag, ...] = ()
    """The DAGs of that reading, to say what differs in the second one."""
    good: bool = True
    unstable: bool = False
    dynamic: bool = False
    known: bool = False
    """True if the scheduler has stored a result, or will do so."""
    extra: tuple[str, ...] = ()
    """Modules that it has loaded in addition to those in its import statements."""
    lookups: frozenset[str] = frozenset()
    """Variables and connections that its last reading requested: `variable bucket`."""
    outdated: bool = False
    """True if one of these variables or connections was changed while the file was being read."""
    reading: bool = False
    readings: int = 0
    """Number of finished readings since the start of the parser."""
    fingerprint_at_start: str | None = None
    """The fingerprint at the start of the current reading."""
    changes_while_reading: int = 0
    retried: str | None = None
    """The fingerprint with which the file was read once more after a failure."""
    last_end: int = 0
    quick_readings: int = 0
    missing_since: int | None = None
    bundle_version: str | None = None
    """The version of the bundle that the scheduler has stored for the file."""
    stored_hash: str = ""
    """The hash that the scheduler has stored for the file."""
    folder: str = ""
    """The folder of the bundle in the current reading."""
    timer: TimerHandle | None = None


class ParserService:
    """See the module's docstring. All methods run on the owner's event loop.

    Args:
        send: sends a command to the scheduler and calls back with the answer.
        children: reads the files; the owner starts and closes it.
    """

    def __init__(self, config: ParserConfig, clock: Clock, loop: Loop, send: Send, children: ParseChildren) -> None:
        self.config = config
        self.clock = clock
        self.loop = loop
        self.send = send
        self.children = children
        self.files: dict[str, File] = {}
        self.outbox = Outbox(config.bundle, loop, send, lambda: children.busy() > 0, self._on_committed)
        self.sources = Sources(config.folder, fingerprint_salt(config), clock.wall)
        self.plugins = PluginsFolder(config.plugins_folder, clock.wall)
        self.scans = 0
        self._listened: frozenset[str] | None = None
        """The events for which plugins have listeners. None: the plugins were not loaded yet."""
        self._unreported: list[tuple[File, Problem, bool]] = []
        """Problems from before the plugins were loaded, at most `UNREPORTED_MAX`."""
        self._changed_assets: list[AssetsChanged] = []
        """Messages of new assets from before the plugins were loaded, at most `UNREPORTED_MAX`."""
        self._moving = False
        self.watch = open_watch(loop, self.on_change) if config.version is None else None
        self._known = False
        self._unanswered: set[str] = set()
        """Files whose last reading was ignored, because the scheduler was not reachable for their lookups."""
        self._next_scan: TimerHandle | None = None
        self._scan_due = 0
        self._not_before = 0
        self._unreadable = ""
        self._progress: TimerHandle | None = None
        self._told_unread: int | None = None
        """The number of unread files that the scheduler knows; None: another number, or none."""
        self._idle_check_planned = False

    # --- progress ---------------------------------------------------------------------------------------------------------

    def _tell_progress_later(self) -> None:
        """Tell the scheduler after a moment how many files are not read yet. A scan that finds little to read tells nothing."""
        if self._progress is None:
            self._progress = self.loop.call_later(PROGRESS_INTERVAL, self._tell_progress)

    def _tell_progress(self) -> None:
        self._progress = None
        unread = sum(file.reading or (file.timer is not None and not file.known) for file in self.files.values()) + len(
            self.outbox
        )
        if unread:
            self._tell_progress_later()
        if unread != self._told_unread:
            self._told_unread = unread
            self.send(NoteUnreadFiles(self.config.bundle, len(self.files), unread), self._on_progress_told)

    def _on_progress_told(self, answer: CommandResult) -> None:
        if answer.error is not None:
            self._told_unread = None
            self._tell_progress_later()

    # --- start and end --------------------------------------------------------------------------------------------------

    def on_scheduler_connected(self) -> None:
        """Called at each connection to the scheduler: request the list of files that the scheduler knows, then scan."""
        self._told_unread = None
        self.send(KnownFiles(self.config.bundle), self._on_known_files)

    def use_version(self, version: str, folder: str) -> None:
        """Read the files of another version of the bundle. A reading that has begun is repeated."""
        if version == self.config.version and folder == self.config.folder:
            return
        self.config = msgspec.structs.replace(self.config, version=version, folder=folder)
        self.sources = Sources(folder, self.sources.salt, self.clock.wall)
        for file in self.files.values():
            file.extra = ()
        self.scan_in(0)

    def _move_unchanged_files(self) -> None:
        """Tell the scheduler which files are the same in this version. Other files are read, or have a problem."""
        version = self.config.version
        if not version or self._moving:
            return
        moving = {
            file.name: file.stored_hash
            for file in self.files.values()
            if file.known and file.good and not file.reading and file.stored_hash and file.bundle_version != version
            if self.sources.fingerprint(file.name, file.extra) == file.fingerprint
        }
        self._moving = True
        command = MoveToBundleVersion(self.config.bundle, version, moving)
        self.send(command, lambda answer: self._on_moved(command, answer))

    def _on_moved(self, command: MoveToBundleVersion, answer: CommandResult) -> None:
        self._moving = False
        if answer.error is not None:
            log.warning("a new version of a bundle cannot be stored now; trying again", why=answer.message)
            self.scan_in(SECOND)
            return
        for name in command.files:
            file = self.files.get(name)
            if file is not None:
                file.bundle_version = command.version
        if command.version != self.config.version:
            self._move_unchanged_files()

    def ask_used_versions(self, version: str, done: Callable[[list[str] | None], None]) -> None:
        """Ask the scheduler for the versions that must stay. `done` is called with them, or with None after an error, however long
        that takes.

        Args:
            version: the newest version of the bundle.
        """
        command = MoveToBundleVersion(self.config.bundle, version, {})
        self.send(command, lambda answer: done(None if answer.error is not None else result_of(answer, command).used))

    def stop(self) -> None:
        """Stop scanning. The results of current readings are ignored."""
        if self.watch is not None:
            self.watch.close()
            self.watch = None
        if self._progress is not None:
            self._progress.cancel()
        if self._next_scan is not None:
            self._next_scan.cancel()
        for file in self.files.values():
            if file.timer is not None:
                file.timer.cancel()

    def idle(self) -> bool:
        """True if everything that a scan found was read, evaluated and sent."""
        return self._known and self.scans > 0 and not self.children.busy() and not len(self.outbox)

    def settled(self) -> bool:
        """Like `idle`, and no file needs a second reading or a confirmation that it is missing."""
        return self.idle() and not any(
            file.candidate is not None or (file.missing_since is not None and not _is_unusable(file))
            for file in self.files.values()
        )

    def read_again_below(self, readings: int) -> bool:
        """Read each DAG file, changed or not, that has fewer finished readings than this. True if there are any."""
        below = [file for file in self.files.values() if file.readings < readings and self._is_readable(file)]
        for file in below:
            if file.name in self._unanswered:
                continue  # it will be read when the scheduler is reachable
            if file.timer is not None:
                file.timer.cancel()
            self._begin(file)
        return bool(below)

    def on_change(self) -> None:
        """Called when something may have changed in the folder."""
        self.scan_in(max(DEBOUNCE, self._not_before - self.clock.monotonic()))

    def lookup_changed(self, what: str) -> None:
        """A variable or connection was set or deleted: read the files again that requested it."""
        for file in list(self.files.values()):
            if file.reading:
                file.outdated = True
            elif what in file.lookups:
                self._read(file)

    def read_file(self, name: str) -> None:
        """Read a file again, changed or not. Without effect for a file that does not exist any more."""
        file = self.files.get(name)
        if file is not None and self._is_readable(file):
            self._read(file)

    def scan_in(self, wait: int) -> None:
        """Schedule a scan after `wait` microseconds, unless an earlier one is scheduled already."""
        due = self.clock.monotonic() + wait
        if self._next_scan is not None and self._next_scan.call is not None:
            if self._scan_due <= due:
                return
            self._next_scan.cancel()
        self._scan_due = due
        self._next_scan = self.loop.call_at(due, self._scan)

    def _on_known_files(self, result: CommandResult) -> None:
        """Handle the list of files that the scheduler knows: initial data after a start, later a check for lost results."""
        if result.error is not None:
            log.error("the scheduler did not return the known files; trying again", why=result.message)
            self.loop.call_later(SECOND, self.on_scheduler_connected)
            return
        held = result_of(result, KnownFiles(self.config.bundle))
        for name, file in self.files.items():
            if file.dag_ids != () and not file.reading and _hash_of(held.get(name)) != file.fingerprint:
                file.fingerprint = file.structure = file.shape = None
        for name, (fingerprint, is_dynamic) in held.items():
            if name not in self.files and self.config.covers(name):
                self.files[name] = File(name, fingerprint or None, dynamic=is_dynamic, known=True, stored_hash=fingerprint)
        self._known = True
        unanswered, self._unanswered = self._unanswered, set()
        for name in unanswered & self.files.keys():
            self._read(self.files[name])
        self.scan_in(0)

    # --- scanning -------------------------------------------------------------------------------------------------------

    def _scan(self) -> None:
        if not self._known or not self.config.folder:
            return
        began, self._next_scan = self.clock.monotonic(), None
        self.sources.clear_listings()
        if self.watch is not None:  # before the scan, because a link may be replaced during the scan
            for folder in filter(None, (self.config.folder, self.config.plugins_folder)):
                self.watch.add_links(folder)
        self._scan_plugins()
        found = scan_folder(self.config.folder, self._watch_folder)
        if self.config.only:
            found.keep(self.config.covers)
        self.scans += 1
        if self.children.metrics is not None:
            self.children.metrics.scanned()
        self._log_unreadable(found)
        new = {self._compare(name, found) for name in found.files}
        for name, why in found.unusable.items():
            self._mark_unusable(name, why)
        for file in [file for name, file in self.files.items() if name not in found.files and name not in found.unusable]:
            self._check_missing(file, found, new)
        self._watch_modules(found)
        is_watched = self.config.version is not None or (self.watch is not None and self.watch.complete)
        blind = not is_watched or "" in found.unreadable
        interval = min(self.config.rescan_interval, UNWATCHED_INTERVAL) if blind else self.config.rescan_interval
        took = self.clock.monotonic() - began
        self._not_before = self.clock.monotonic() + took * SCAN_SHARE
        self.scan_in(max(interval, took * SCAN_SHARE))
        self._move_unchanged_files()
        self._check_idle_later()
        self._tell_progress_later()

    def _check_idle_later(self) -> None:
        if not self._idle_check_planned:
            self._idle_check_planned = True
            self.loop.call_later(IDLE_AFTER, self._stop_idle_zygote)

    def _stop_idle_zygote(self) -> None:
        """Stop the zygote if nothing was read for a while and no reading is scheduled."""
        self._idle_check_planned = False
        if not self.children.is_zygote_stopped and all(file.timer is None for file in self.files.values()):
            if self.children.busy() or self.clock.monotonic() - self.children.last_end < IDLE_AFTER:
                self._check_idle_later()
            else:
                self.children.stop_zygote()

    def _scan_plugins(self) -> None:
        """A change of the plugins folder changes the fingerprint of every DAG file, because any file may import from it."""
        if self.plugins.changed(self._watch_folder):
            self.sources.salt = f"{fingerprint_salt(self.config)}\0{self.plugins.digest}"
            if self.config.reports_plugins:
                self.children.read_plugins(self._send_plugins)

    def _send_plugins(self, read: ReadResult) -> None:
        found = read.report.plugins.plugins if read.report.plugins is not None else ()
        self._listened = frozenset(event for plugin in found for event in plugin.get("listener_events", ()))
        while self._unreported:
            self._notify_listeners(*self._unreported.pop(0))
        while self._changed_assets:
            self.tell_changed_assets(self._changed_assets.pop(0))
        self.send(as_command(read.report, self.clock.wall()), lambda answer: None)

    def _watch_folder(self, path: str) -> None:
        if self.watch is not None:
            self.watch.add(path)
            if os.path.islink(path):
                self.watch.add_links(path)

    def _watch_modules(self, found: FolderScan) -> None:
        """Also watch the folders of modules that an ignore file excludes from the search for DAGs."""
        if self.watch is None:
            return
        paths = {f"{self.config.folder}/{name}" for name in found.files}
        for name in self.files:
            paths.update(self.sources.imported_modules(name))
            paths.update(self.files[name].extra)
        for name in found.linked:
            self.watch.add_links(f"{self.config.folder}/{name}")
            self.watch.add(os.path.dirname(os.path.realpath(f"{self.config.folder}/{name}")))
        for folder in {path.rpartition("/")[0] for path in paths}:
            self.watch.add(folder)
        self.watch.remove_stale()
        self.sources.keep_only(paths)

    def _log_unreadable(self, found: FolderScan) -> None:
        unreadable = "; ".join(f"{where or '.'}: {why}" for where, why in sorted(found.unreadable.items()))
        if unreadable and unreadable != self._unreadable:
            log.error("a part of the DAG folder cannot be read; its DAGs are kept", folder=self.config.folder, why=unreadable)
        self._unreadable = unreadable

    def _compare(self, name: str, found: FolderScan) -> str | None:
        """Read the file if necessary. Returns the hash of its content if the file is new."""
        source = self.sources.source(f"{self.config.folder}/{name}", found.files[name])
        file = self.files.get(name)
        if source is None:
            return None
        if not source.may_hold_dags:
            if file is not None and file.known and not file.reading:
                self._accept_no_dags(file)
            return None
        new = file is None
        if file is None:
            file = self.files[name] = File(name)
        file.missing_since = None
        if not file.reading:  # otherwise the end of the reading compares the fingerprint again
            self._read_if_changed(file)
        return source.digest if new else None

    def _read_if_changed(self, file: File) -> None:
        fingerprint = self.sources.fingerprint(file.name, file.extra)
        if fingerprint is None or (fingerprint == file.fingerprint and not self._first_of_dynamic(file)):
            return
        age = self.clock.wall() - self.sources.last_change(file.name, file.extra)
        if 0 <= age < DEBOUNCE and self.scans > 1:
            self.scan_in(DEBOUNCE)
        else:
            self._read(file, first=self.scans > 1)

    def _first_of_dynamic(self, file: File) -> bool:
        """True for the first reading of a file with changing DAGs: it is read at each start."""
        return file.dynamic and file.dag_ids is None and file.timer is None

    def _mark_unusable(self, name: str, why: str) -> None:
        """A name that ends in `.py` but is not a readable file. If this does not change for a while, it is an import error."""
        file = self.files.get(name)
        if file is None:
            file = self.files[name] = File(name)
        mark = f"{_UNUSABLE}{why}"
        if file.reading or file.fingerprint == mark:
            return
        now = self.clock.monotonic()
        if file.missing_since is None:
            file.missing_since = now
        left = file.missing_since + SETTLE_TIME - now
        if left > 0:
            self.scan_in(left)
            return
        if file.timer is not None:
            file.timer.cancel()
            file.timer = None
        file.good, file.fingerprint, file.structure, file.shape = False, mark, None, None
        problem = Problem(why, why)
        self._send_outcome(file, FileOutcome(self.config.bundle, name, "", (), problem, 0, False, self.clock.wall()))

    def _accept_no_dags(self, file: File) -> None:
        """The file does not mention DAGs any more. Accept this when the file is unchanged for a while."""
        fingerprint = self.sources.fingerprint(file.name)
        if fingerprint is None or (file.dag_ids == () and file.fingerprint == fingerprint):
            return
        left = self._time_to_settle(file)
        if left:
            self.scan_in(left)
            return
        if file.timer is not None:
            file.timer.cancel()
            file.timer = None
        file.good, file.extra, file.dynamic = True, (), False
        self._accept(file, fingerprint, (), "", "")
        self._send_outcome(file, FileOutcome(self.config.bundle, file.name, fingerprint, (), None, 0, False, self.clock.wall()))

    def _check_missing(self, file: File, found: FolderScan, new: set[str | None]) -> None:
        """Forget a file that two scans, some time apart, did not find. Forget it at once if it was only renamed."""
        if file.reading or not found.is_confirmed_absent(file.name):
            file.missing_since = None
            return
        now = self.clock.monotonic()
        if file.missing_since is None:
            file.missing_since = now
        left = file.missing_since + SETTLE_TIME - now
        before = self.sources.last_read(f"{self.config.folder}/{file.name}")
        if left > 0 and file.known and (before is None or before.digest not in new):
            self.scan_in(left)
            return
        if file.timer is not None:
            file.timer.cancel()
        del self.files[file.name]
        if self.children.metrics is not None:
            self.children.metrics.gone(self.config.bundle, file.name)
        if file.known:
            self.outbox.put(file.name, None)

    # --- reading and evaluation -------------------------------------------------------------------------------------------

    def _read(self, file: File, *, first: bool = False) -> None:
        """Read the file now, or a little later if it was read too often in quick succession."""
        if file.reading:
            return
        if file.timer is not None:
            file.timer.cancel()
            file.timer = None
        since = self.clock.monotonic() - file.last_end
        file.quick_readings = file.quick_readings + 1 if file.last_end and since < QUICK_GAP else 0
        if file.quick_readings > QUICK_READINGS_MAX:
            self._read_in(file, QUICK_GAP - since)
        else:
            self._begin(file, first=first)

    def _begin(self, file: File, *, first: bool = False) -> None:
        file.timer = None
        if file.reading or self.files.get(file.name) is not file:
            return
        file.fingerprint_at_start = self.sources.fingerprint(file.name, file.extra)
        if file.fingerprint_at_start is None:
            return
        file.reading, file.outdated, file.folder = True, False, self.config.folder
        self.children.read(file.name, lambda read: self._evaluate(file, read), folder=file.folder, first=first)

    def _read_in(self, file: File, wait: int) -> None:
        if file.timer is not None:
            file.timer.cancel()
        file.timer = self.loop.call_later(wait, lambda: self._begin(file))

    def _evaluate(self, file: File, read: ReadResult) -> None:
        """Evaluate the result of a reading; see the module's docstring."""
        file.reading = False
        file.last_end = self.clock.monotonic()
        if self.children.metrics is not None:
            self.children.metrics.read(self.config.bundle, file.name, read.duration)
        if self.files.get(file.name) is not file:
            return
        if file.folder != self.config.folder:
            self._begin(file)  # the bundle has moved to another version during the reading
            return
        if read.unanswered:
            self._wait_for_scheduler(file)
            return
        self.sources.clear_listings()
        fingerprint_now = self.sources.fingerprint(file.name, file.extra)
        if fingerprint_now is None:
            self.scan_in(DEBOUNCE)  # the file was removed during the reading
            return
        if (
            fingerprint_now != file.fingerprint_at_start or self._loaded_modules_changed(read)
        ) and file.changes_while_reading < CHANGES_WHILE_READING_MAX:
            file.changes_while_reading += 1
            self._read_in(file, DEBOUNCE)
            return
        steady, file.changes_while_reading = file.changes_while_reading < CHANGES_WHILE_READING_MAX, 0
        same = file.fingerprint == fingerprint_now
        self._record_sources(file, read)
        file.lookups = frozenset(read.report.lookups)
        fingerprint = self.sources.fingerprint(file.name, file.extra) or fingerprint_now
        dags = tuple(dag for dag in read.report.dags if not self._is_defined_elsewhere(file, dag))
        problem = one_problem(read.report.problems)
        file.dynamic = read.report.volatile_because is not None or file.unstable
        if problem is None and not same and self._has_fewer_dags(file, dags) and (left := self._time_to_settle(file)):
            self._read_in(file, left)
            return
        file.readings += 1
        structure = _hash(dag.dag_id + dag.hash for dag in dags) if problem is None else _hash([problem.message])
        shape = _hash(dag.dag_id + dag.shape for dag in dags)
        if not same:
            file.unstable, file.candidate, file.candidate_dags = False, None, ()
        elif not self._is_new_result(file, structure, shape, dags, problem is None, read.report.volatile_because):
            self._schedule_next_reading(file, read)
            self._move_unchanged_files()
            return
        if problem is not None:
            self._notify_listeners(file, problem, file.good)
        file.good = problem is None
        self._accept(file, fingerprint, dags, structure, shape)
        stored_hash = fingerprint if steady and file.good else ""
        outcome = FileOutcome(
            *(self.config.bundle, file.name, stored_hash, dags, problem, read.duration, file.dynamic, self.clock.wall()),
            bundle_version=self.config.version,
        )
        if problem is None:
            file.stored_hash, file.bundle_version = stored_hash, self.config.version
        self._send_outcome(file, outcome)
        self._schedule_next_reading(file, read)

    def _notify_listeners(self, file: File, problem: Problem, is_new: bool) -> None:
        """Tell the listeners of plugins of a problem that is new or that has changed."""
        event = "on_new_dag_import_error" if is_new else "on_existing_dag_import_error"
        if self._listened is None and self.config.reports_plugins and len(self._unreported) < UNREPORTED_MAX:
            self._unreported.append((file, problem, is_new))
        elif self._listened is not None and event in self._listened:
            path = os.path.join(file.folder or self.config.folder, file.name)
            self.children.report_import_error(event, path, problem.stack_trace or problem.message)

    def tell_changed_assets(self, message: AssetsChanged) -> None:
        """Tell the listeners of plugins of new assets and aliases, and of events that a person has created."""
        if self._listened is None and self.config.reports_plugins and len(self._changed_assets) < UNREPORTED_MAX:
            self._changed_assets.append(message)
        elif self._listened is not None:
            events = (ASSET_CREATION_LISTENERS if message.created else set()) | (
                ASSET_EVENT_LISTENERS if message.events else set()
            )
            if not self._listened.isdisjoint(events):
                self.children.call_asset_listeners(message)

    def _wait_for_scheduler(self, file: File) -> None:
        """Read the file again when the scheduler is reachable."""
        if not self._unanswered:
            self.on_scheduler_connected()  # the connection sends the request as soon as it is established
        self._unanswered.add(file.name)

    def _is_new_result(
        self, file: File, structure: str, shape: str, dags: tuple[ReadDag, ...], good: bool, why: str | None
    ) -> bool:
        """Decide whether the new result of an unchanged file is accepted and sent."""
        old, new = (file.shape, shape) if file.unstable and good else (file.structure, structure)
        if new == old:
            file.candidate, file.candidate_dags = None, ()
            return False
        if not good or not file.good:
            return True
        if file.candidate is None:
            file.candidate, file.candidate_dags = new, dags
            return False
        agreed, before, file.candidate, file.candidate_dags = file.candidate == new, file.candidate_dags, None, ()
        if agreed:
            return True
        if not file.unstable:
            file.unstable = file.dynamic = True
            log.warning(
                "a DAG file gives a different result at each reading; from now on only changes of its tasks are used",
                file=file.name,
                because=why or "its import is not repeatable",
                differs=", ".join(varying_fields(before, dags)) or "the ids of its DAGs",
            )
        return False

    def _accept(self, file: File, fingerprint: str, dags: tuple[ReadDag, ...], structure: str, shape: str) -> None:
        file.fingerprint, file.structure, file.shape = fingerprint, structure, shape
        if file.good or dags:
            file.dag_ids = tuple(dag.dag_id for dag in dags)

    def _send_outcome(self, file: File, outcome: FileOutcome) -> None:
        file.known = True
        self.outbox.put(file.name, outcome)

    def _on_committed(self, batch: Batch, touched: list[str]) -> None:
        """The scheduler has committed a batch. Other files may have been refused because of DAG ids that are free now."""
        said: set[str] = set()
        warnings: dict[str, list[tuple[str, str]]] = {}
        for name, outcome in batch.items():
            if outcome is None:
                log.info("a DAG file was removed", file=name)
            else:
                said.update(dag.dag_id for dag in outcome.dags)
                for dag in outcome.dags:
                    for warning in dag.warnings:
                        warnings.setdefault(warning, []).append((name, dag.dag_id))
                if outcome.problem is not None:
                    log.warning("a DAG file has a problem", file=name, problem=outcome.problem.message)
        _log_warnings(warnings)
        freed = set(touched) - said
        if freed:
            for other in list(self.files.values()):
                if other.name not in batch and freed.intersection(other.dag_ids or ()):
                    other.fingerprint = None
                    self._read(other)
        if self.idle():
            gc.collect()
            linux.give_back_memory()  # many definitions have been processed
            self._check_idle_later()

    def _schedule_next_reading(self, file: File, read: ReadResult) -> None:
        """Schedule the next reading of an unchanged file, if one is needed."""
        if file.candidate is not None or (file.outdated and file.lookups):
            self._read_in(file, DEBOUNCE if file.candidate is None else 0)
            return
        if file.good and not file.dynamic:
            return
        wait = max(self.config.dynamic_interval, READINGS_FOR_SLOW * read.duration)
        age = self.clock.wall() - self.sources.last_change(file.name, file.extra)
        if not file.good and file.retried != file.fingerprint and age < 3 * RETRY_ONCE_AFTER:
            file.retried, wait = file.fingerprint, min(wait, RETRY_ONCE_AFTER)
        self._read_in(file, wait)

    # --- helper methods -------------------------------------------------------------------------------------------------

    def _is_readable(self, file: File) -> bool:
        """True if there is a Python file with this name that may contain DAGs."""
        source = self.sources.source(f"{self.config.folder}/{file.name}")
        return source is not None and source.may_hold_dags and not _is_unusable(file)

    def _loaded_modules_changed(self, read: ReadResult) -> bool:
        """True if a module that the reading loaded has changed since."""
        for path, mtime_ns, size in read.report.sources:
            source = self.sources.source(path)
            if source is None or (source.signature[2], source.signature[1]) != (mtime_ns, size):
                return True
        return False

    def _record_sources(self, file: File, read: ReadResult) -> None:
        known = {f"{self.config.folder}/{file.name}", *self.sources.imported_modules(file.name)}
        loaded = tuple(path for path, _, _ in read.report.sources if path not in known)
        if loaded or not read.report.problems:
            file.extra = loaded
            for path in loaded if self.watch is not None else ():
                self._watch_folder(path.rpartition("/")[0])

    def _is_defined_elsewhere(self, file: File, dag: ReadDag) -> bool:
        """True if the DAG was only imported from another DAG file, which defines it."""
        if dag.made_in == file.name or dag.made_in not in self.files:
            return False
        source = self.sources.source(f"{self.config.folder}/{dag.made_in}")
        return source is not None and source.may_hold_dags

    def _has_fewer_dags(self, file: File, dags: tuple[ReadDag, ...]) -> bool:
        if file.dag_ids is None:
            return file.known
        return not set(file.dag_ids) <= {dag.dag_id for dag in dags}

    def _time_to_settle(self, file: File) -> int:
        """Time until the file counts as unchanged for long enough; 0 if it does already."""
        age = self.clock.wall() - self.sources.last_change(file.name, file.extra)
        return SETTLE_TIME - age if 0 <= age < SETTLE_TIME else 0


def _is_unusable(file: File) -> bool:
    return file.fingerprint is not None and file.fingerprint.startswith(_UNUSABLE)


def fingerprint_salt(config: ParserConfig) -> str:
    """A text with everything that affects definitions, apart from the files."""
    parts = (
        DEFINITION_FORMAT,
        __version__,
        sys.version_info[:2],
        config.max_tasks_per_dag,
        config.defaults,
        sorted(config.user_settings.items()),
    )
    return msgspec.json.encode(parts).decode()


def _hash(parts: Any) -> str:
    return sha256("\0".join(parts).encode()).hexdigest()


def _hash_of(held: KnownFile | None) -> str:
    return held.file_hash if held is not None else ""


def _log_warnings(warnings: Mapping[str, Sequence[tuple[str, str]]]) -> None:
    """Log each warning once: a folder of old files has the same one in every file. `dags show` has them all.

    Args:
        warnings: warning → (file, DAG id) of each DAG that has it.
    """
    for warning, places in warnings.items():
        file, dag_id = places[0]
        more = {"more_dags": len(places) - 1} if len(places) > 1 else {}
        log.warning("a DAG has a warning", file=file, dag=dag_id, warning=warning, **more)

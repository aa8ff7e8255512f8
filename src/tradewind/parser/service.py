"""The parser: from a folder of Python files to definitions that the scheduler knows.

    change in the folder ─bell─▶ look ─▶ fingerprints that are new ─▶ parse children ─▶ judge ─▶ outbox ─▶ scheduler

A bell (or the safety net's timer) leads to one look at the whole folder; a file is read when its fingerprint is not the one that
it was read under. What comes out of the child is judged before it is said:

* The file, or a module it loads, changed meanwhile: read it again.
* It lost DAGs and was written a moment ago: it may be half-written; read it again when it has been quiet.
* It failed a moment after it was written: the last good version stays (the scheduler sees to that), and it is read once more.
* Nothing changed in it and yet it gives something else: its import looks at the world. It is read once more at once. If both
  readings agree, the world has changed and the new DAGs count. If they do not, the file gives something new each time
  (`start_date=datetime.now()`, random ids): it is *unstable*, the versions it has stay, and from then on only its shape (tasks,
  arrows, schedule) is compared, under the same rule of two. So a restless file never makes a version at each reading.

* It asked for a variable or connection while the scheduler was away: the reading counts for nothing; it is read again when the
  scheduler is back.

Files that look at the world, and files with a problem, are read again every `dynamic_interval`, or more seldom if they are slow;
the others only when they change. One that asked for a variable or connection is also read again when that was changed.
"""

from __future__ import annotations

import gc
import os
import sys
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import msgspec

from tradewind import __version__
from tradewind.model.definition import DEFINITION_FORMAT
from tradewind.model.moments import SECOND
from tradewind.observe.log import Log
from tradewind.parser.children import ParseChildren, Read
from tradewind.parser.config import ParserConfig
from tradewind.parser.folder import Found, look
from tradewind.parser.outbox import Batch, Outbox, Send
from tradewind.parser.parse_result import FileOutcome, Problem, ReadDag, one_problem
from tradewind.parser.plugins import PluginsFolder, as_command
from tradewind.parser.sources import Sources
from tradewind.parser.watch import open_watch
from tradewind.platform import linux
from tradewind.platform.clock import Clock
from tradewind.platform.loop import Loop, TimerHandle
from tradewind.wire.commands import KnownFile, KnownFiles, result_of
from tradewind.wire.messages import CommandResult

log = Log("parser")

QUIET = SECOND // 25
"""After a bell, wait this long for more of the same change (an editor's write and rename, a checkout)."""
SETTLE = 3 * SECOND // 2
"""A file must have been left alone for this long before it is believed that DAGs went out of it, or that it is gone."""
ONCE_MORE = SECOND
"""A file that failed this soon after a change is read once more, this much later."""
LOOK_SHARE = 10
"""Looking takes at most one part in this many of the time."""
BLIND_INTERVAL = 5 * SECOND
"""Look this often where no watch can be had."""
READINGS_FOR_SLOW = 20
"""A file is read again by the clock at most for one part in this many of the time."""
CHANGED_MEANWHILE_MAX = 3
"""After so many readings in a row during which the file changed (its own import may write into the folder), take what came."""
EAGER_MAX, EAGER_GAP = 5, 2 * SECOND
"""After so many readings of one file in quick succession, the next one waits: somebody writes it without end."""

_UNUSABLE = "unusable: "
"""How the fingerprint of a name begins under which no Python file can be read."""

REST_AFTER = 15 * SECOND
"""After so long without a reading, the process that reads is ended. The next reading starts one: a fifth of a second."""


@dataclass(slots=True, eq=False)
class File:
    """What we know about one file."""

    name: str
    fingerprint: str | None = None
    """Of its last finished reading; or the scheduler's word for it, after a start."""
    dag_ids: tuple[str, ...] | None = None
    """None: whatever the scheduler holds; nothing was read in this life."""
    structure: str | None = None
    """Everything that was last said about it."""
    shape: str | None = None
    candidate: str | None = None
    """A different structure (shape) that waits for its second reading."""
    good: bool = True
    unstable: bool = False
    dynamic: bool = False
    known: bool = False
    """The scheduler holds, or will hold, something about it."""
    extra: tuple[str, ...] = ()
    """Modules it was seen to load beyond what its import statements tell."""
    asked: frozenset[str] = frozenset()
    """Variables and connections that its last reading asked for: `variable bucket`."""
    outdated: bool = False
    """What it asked for has changed while it was being read."""
    reading: bool = False
    readings: int = 0
    """Finished readings in this life of the parser."""
    read_under: str | None = None
    """The fingerprint when the reading under way began."""
    meanwhile: int = 0
    retried: str | None = None
    """The fingerprint that was read once more after a failure."""
    last_end: int = 0
    eager: int = 0
    missing_since: int | None = None
    timer: TimerHandle | None = None


class ParserService:
    """See the module. Everything happens on the loop of whoever owns it.

    Args:
        send: has the scheduler carry out a command and calls back with its answer.
        children: reads the files; started and closed by the owner.
    """

    def __init__(self, config: ParserConfig, clock: Clock, loop: Loop, send: Send, children: ParseChildren) -> None:
        self.config = config
        self.clock = clock
        self.loop = loop
        self.send = send
        self.children = children
        self.files: dict[str, File] = {}
        self.outbox = Outbox(config.bundle, loop, send, lambda: children.busy() > 0, self._told)
        self.sources = Sources(config.folder, salt_of(config), clock.wall)
        self.plugins = PluginsFolder(config.plugins_folder, clock.wall)
        self.looks = 0
        self.watch = open_watch(loop, self.ring)
        self._known = False
        self._unanswered: set[str] = set()
        """Files that could not be read, because the scheduler was not there to answer them."""
        self._next_look: TimerHandle | None = None
        self._look_due = 0
        self._not_before = 0
        self._trouble = ""
        self._rest_planned = False

    # --- life -----------------------------------------------------------------------------------------------------------

    def scheduler_is_there(self) -> None:
        """The scheduler (again) takes commands: ask what it knows, then look. Called at each connection."""
        self.send(KnownFiles(self.config.bundle), self._learn)

    def stop(self) -> None:
        """No more looks. What is being read goes unheard."""
        if self.watch is not None:
            self.watch.close()
            self.watch = None
        if self._next_look is not None:
            self._next_look.cancel()
        for file in self.files.values():
            if file.timer is not None:
                file.timer.cancel()

    def idle(self) -> bool:
        """Has everything that was seen been read, judged and told?"""
        return self._known and self.looks > 0 and not self.children.busy() and not len(self.outbox)

    def settled(self) -> bool:
        """As `idle`, and no file waits for a second reading, or for the moment from which its absence is believed."""
        return self.idle() and not any(
            file.candidate is not None or (file.missing_since is not None and not _is_unusable(file))
            for file in self.files.values()
        )

    def read_again_below(self, readings: int) -> bool:
        """Read each DAG file, changed or not, that has fewer finished readings than this; returns whether there are any."""
        below = [file for file in self.files.values() if file.readings < readings and self._is_readable(file)]
        for file in below:
            if file.name in self._unanswered:
                continue  # it is read when the scheduler answers
            if file.timer is not None:
                file.timer.cancel()
            self._begin(file)
        return bool(below)

    def ring(self) -> None:
        """Something may have changed in the folder."""
        self.look_in(max(QUIET, self._not_before - self.clock.monotonic()))

    def lookup_changed(self, what: str) -> None:
        """A variable or connection was set or deleted: read again whatever asked for it."""
        for file in list(self.files.values()):
            if file.reading:
                file.outdated = True
            elif what in file.asked:
                self._read(file)

    def look_in(self, wait: int) -> None:
        """Look at the folder in so many microseconds, or earlier if that was planned already."""
        due = self.clock.monotonic() + wait
        if self._next_look is not None and self._next_look.call is not None:
            if self._look_due <= due:
                return
            self._next_look.cancel()
        self._look_due = due
        self._next_look = self.loop.call_at(due, self._look)

    def _learn(self, result: CommandResult) -> None:
        """What the scheduler holds: at a start, the ground to build on; later, a check that nothing got lost."""
        if result.error is not None:
            log.error("the scheduler does not say which files it knows; trying again", why=result.message)
            self.loop.call_later(SECOND, self.scheduler_is_there)
            return
        held = result_of(result, KnownFiles(self.config.bundle))
        for name, file in self.files.items():
            if file.dag_ids != () and not file.reading and _hash_of(held.get(name)) != file.fingerprint:
                file.fingerprint = file.structure = file.shape = None
        for name, (fingerprint, is_dynamic) in held.items():
            if name not in self.files and self.config.covers(name):
                self.files[name] = File(name, fingerprint or None, dynamic=is_dynamic, known=True)
        self._known = True
        unanswered, self._unanswered = self._unanswered, set()
        for name in unanswered & self.files.keys():
            self._read(self.files[name])
        self.look_in(0)

    # --- looking --------------------------------------------------------------------------------------------------------

    def _look(self) -> None:
        if not self._known:
            return
        began, self._next_look = self.clock.monotonic(), None
        self.sources.new_look()
        if self.watch is not None:  # before the look: a link may be replaced while it goes on
            for folder in filter(None, (self.config.folder, self.config.plugins_folder)):
                self.watch.add_links(folder)
        self._look_at_plugins()
        found = look(self.config.folder, self._watch_folder)
        if self.config.only:
            found.keep(self.config.covers)
        self.looks += 1
        self._say_trouble(found)
        new = {self._compare(name, found) for name in found.files}
        for name, why in found.unusable.items():
            self._refuse(name, why)
        for file in [file for name, file in self.files.items() if name not in found.files and name not in found.unusable]:
            self._maybe_gone(file, found, new)
        self._watch_modules(found)
        blind = self.watch is None or not self.watch.complete or "" in found.unreadable
        interval = min(self.config.rescan_interval, BLIND_INTERVAL) if blind else self.config.rescan_interval
        took = self.clock.monotonic() - began
        self._not_before = self.clock.monotonic() + took * LOOK_SHARE
        self.look_in(max(interval, took * LOOK_SHARE))
        self._rest_later()

    def _rest_later(self) -> None:
        if not self._rest_planned:
            self._rest_planned = True
            self.loop.call_later(REST_AFTER, self._rest)

    def _rest(self) -> None:
        """Nothing was read for a while, and no file is to be read again by the clock: its process is not needed."""
        self._rest_planned = False
        if not self.children.resting and all(file.timer is None for file in self.files.values()):
            if self.children.busy() or self.clock.monotonic() - self.children.last_end < REST_AFTER:
                self._rest_later()
            else:
                self.children.rest()

    def _look_at_plugins(self) -> None:
        """Any DAG file may import from there: another content is another meaning of them all."""
        if self.plugins.changed(self._watch_folder):
            self.sources.salt = f"{salt_of(self.config)}\0{self.plugins.digest}"
            self.children.read_plugins(self._say_plugins)

    def _say_plugins(self, read: Read) -> None:
        self.send(as_command(read.report, self.clock.wall()), lambda answer: None)

    def _watch_folder(self, path: str) -> None:
        if self.watch is not None:
            self.watch.add(path)
            if os.path.islink(path):
                self.watch.add_links(path)

    def _watch_modules(self, found: Found) -> None:
        """Also the folders of modules that an ignore file hides from the search for DAGs."""
        if self.watch is None:
            return
        paths = {f"{self.config.folder}/{name}" for name in found.files}
        for name in self.files:
            paths.update(self.sources.needs(name))
            paths.update(self.files[name].extra)
        for name in found.linked:
            self.watch.add_links(f"{self.config.folder}/{name}")
            self.watch.add(os.path.dirname(os.path.realpath(f"{self.config.folder}/{name}")))
        for folder in {path.rpartition("/")[0] for path in paths}:
            self.watch.add(folder)
        self.watch.settle()
        self.sources.forget_all_but(paths)

    def _say_trouble(self, found: Found) -> None:
        trouble = "; ".join(f"{where or '.'}: {why}" for where, why in sorted(found.unreadable.items()))
        if trouble and trouble != self._trouble:
            log.error(
                "a part of the DAG folder cannot be read; its DAGs stay as they are", folder=self.config.folder, why=trouble
            )
        self._trouble = trouble

    def _compare(self, name: str, found: Found) -> str | None:
        """Have a file read that has to be; the hash of its content if it is a new one."""
        source = self.sources.source(f"{self.config.folder}/{name}", found.files[name])
        file = self.files.get(name)
        if source is None:
            return None
        if not source.may_hold_dags:
            if file is not None and file.known and not file.reading:
                self._emptied(file)
            return None
        new = file is None
        if file is None:
            file = self.files[name] = File(name)
        file.missing_since = None
        if not file.reading:  # else it is judged at its end, when the fingerprint is looked at again
            self._read_if_changed(file)
        return source.digest if new else None

    def _read_if_changed(self, file: File) -> None:
        fingerprint = self.sources.fingerprint(file.name, file.extra)
        if fingerprint is None or (fingerprint == file.fingerprint and not self._first_of_dynamic(file)):
            return
        age = self.clock.wall() - self.sources.youngest(file.name, file.extra)
        if 0 <= age < QUIET and self.looks > 1:
            self.look_in(QUIET)
        else:
            self._read(file, first=self.looks > 1)

    def _first_of_dynamic(self, file: File) -> bool:
        """A file whose DAGs change by themselves is read at each start."""
        return file.dynamic and file.dag_ids is None and file.timer is None

    def _refuse(self, name: str, why: str) -> None:
        """No Python file can be read under this name. Once that has been so for a while, it is an import error."""
        file = self.files.get(name)
        if file is None:
            file = self.files[name] = File(name)
        mark = f"{_UNUSABLE}{why}"
        if file.reading or file.fingerprint == mark:
            return
        now = self.clock.monotonic()
        if file.missing_since is None:
            file.missing_since = now
        left = file.missing_since + SETTLE - now
        if left > 0:
            self.look_in(left)
            return
        if file.timer is not None:
            file.timer.cancel()
            file.timer = None
        file.good, file.fingerprint, file.structure, file.shape = False, mark, None, None
        problem = Problem(why, why)
        self._say(file, FileOutcome(self.config.bundle, name, "", (), problem, 0, False, self.clock.wall()))

    def _emptied(self, file: File) -> None:
        """It mentions no DAG any more. Believe it when it has been left alone for a while."""
        fingerprint = self.sources.fingerprint(file.name)
        if fingerprint is None or (file.dag_ids == () and file.fingerprint == fingerprint):
            return
        young = self._too_young(file)
        if young:
            self.look_in(young)
            return
        if file.timer is not None:
            file.timer.cancel()
            file.timer = None
        file.good, file.extra, file.dynamic = True, (), False
        self._accept(file, fingerprint, (), "", "")
        self._say(file, FileOutcome(self.config.bundle, file.name, fingerprint, (), None, 0, False, self.clock.wall()))

    def _maybe_gone(self, file: File, found: Found, new: set[str | None]) -> None:
        """Forget a file that was seen to be absent, twice, with some time between; at once if it has only another name now."""
        if file.reading or not found.surely_absent(file.name):
            file.missing_since = None
            return
        now = self.clock.monotonic()
        if file.missing_since is None:
            file.missing_since = now
        left = file.missing_since + SETTLE - now
        before = self.sources.remembered(f"{self.config.folder}/{file.name}")
        if left > 0 and file.known and (before is None or before.digest not in new):
            self.look_in(left)
            return
        if file.timer is not None:
            file.timer.cancel()
        del self.files[file.name]
        if file.known:
            self.outbox.put(file.name, None)

    # --- reading ----------------------------------------------------------------------------------------------------------

    def _read(self, file: File, *, first: bool = False) -> None:
        """Have it read, now; a little later when that has happened too often in a row."""
        if file.reading:
            return
        if file.timer is not None:
            file.timer.cancel()
            file.timer = None
        since = self.clock.monotonic() - file.last_end
        file.eager = file.eager + 1 if file.last_end and since < EAGER_GAP else 0
        if file.eager > EAGER_MAX:
            self._read_in(file, EAGER_GAP - since)
        else:
            self._begin(file, first=first)

    def _begin(self, file: File, *, first: bool = False) -> None:
        file.timer = None
        if file.reading or self.files.get(file.name) is not file:
            return
        file.read_under = self.sources.fingerprint(file.name, file.extra)
        if file.read_under is None:
            return
        file.reading, file.outdated = True, False
        self.children.read(file.name, lambda read: self._judge(file, read), first=first)

    def _read_in(self, file: File, wait: int) -> None:
        if file.timer is not None:
            file.timer.cancel()
        file.timer = self.loop.call_later(wait, lambda: self._begin(file))

    def _judge(self, file: File, read: Read) -> None:
        """See the module."""
        file.reading = False
        file.last_end = self.clock.monotonic()
        if self.files.get(file.name) is not file:
            return
        if read.unanswered:
            self._wait_for_scheduler(file)
            return
        self.sources.new_look()
        now_under = self.sources.fingerprint(file.name, file.extra)
        if now_under is None:
            self.look_in(QUIET)  # it went meanwhile
            return
        if (now_under != file.read_under or self._moved(read)) and file.meanwhile < CHANGED_MEANWHILE_MAX:
            file.meanwhile += 1
            self._read_in(file, QUIET)
            return
        steady, file.meanwhile = file.meanwhile < CHANGED_MEANWHILE_MAX, 0
        same = file.fingerprint == now_under
        self._note_sources(file, read)
        file.asked = frozenset(read.report.asked)
        fingerprint = self.sources.fingerprint(file.name, file.extra) or now_under
        dags = tuple(dag for dag in read.report.dags if not self._belongs_elsewhere(file, dag))
        problem = one_problem(read.report.problems)
        file.dynamic = read.report.volatile_because is not None or file.unstable
        if problem is None and not same and self._lost_dags(file, dags) and (young := self._too_young(file)):
            self._read_in(file, young)
            return
        file.readings += 1
        structure = _hash(dag.dag_id + dag.hash for dag in dags) if problem is None else _hash([problem.message])
        shape = _hash(dag.dag_id + dag.shape for dag in dags)
        if not same:
            file.unstable, file.candidate = False, None
        elif not self._is_news(file, structure, shape, problem is None, read.report.volatile_because):
            self._plan(file, read)
            return
        file.good = problem is None
        self._accept(file, fingerprint, dags, structure, shape)
        hash_told = fingerprint if steady and file.good else ""
        outcome = FileOutcome(
            self.config.bundle, file.name, hash_told, dags, problem, read.duration, file.dynamic, self.clock.wall()
        )
        self._say(file, outcome)
        self._plan(file, read)

    def _wait_for_scheduler(self, file: File) -> None:
        """Read it again when the scheduler answers."""
        if not self._unanswered:
            self.scheduler_is_there()  # the line keeps the question until there is somebody to answer
        self._unanswered.add(file.name)

    def _is_news(self, file: File, structure: str, shape: str, good: bool, why: str | None) -> bool:
        """The file did not change. Is what it gives now to be believed and said?"""
        old, new = (file.shape, shape) if file.unstable and good else (file.structure, structure)
        if new == old:
            file.candidate = None
            return False
        if not good or not file.good:
            return True
        if file.candidate is None:
            file.candidate = new
            return False
        agreed, file.candidate = file.candidate == new, None
        if agreed:
            return True
        if not file.unstable:
            file.unstable = file.dynamic = True
            log.warning(
                "a DAG file gives something else each time it is read; only changes of its tasks count from now on",
                file=file.name,
                because=why or "its import is not repeatable",
            )
        return False

    def _accept(self, file: File, fingerprint: str, dags: tuple[ReadDag, ...], structure: str, shape: str) -> None:
        file.fingerprint, file.structure, file.shape = fingerprint, structure, shape
        if file.good or dags:
            file.dag_ids = tuple(dag.dag_id for dag in dags)

    def _say(self, file: File, outcome: FileOutcome) -> None:
        file.known = True
        self.outbox.put(file.name, outcome)

    def _told(self, batch: Batch, touched: list[str]) -> None:
        """The scheduler has committed a batch. Ids that files gave up may be those that other files were refused."""
        said: set[str] = set()
        for name, outcome in batch.items():
            if outcome is None:
                log.info("a DAG file is gone", file=name)
            else:
                said.update(dag.dag_id for dag in outcome.dags)
                for dag in outcome.dags:
                    for warning in dag.warnings:
                        log.warning("a DAG says something that has no effect yet", file=name, dag=dag.dag_id, warning=warning)
                if outcome.problem is not None:
                    log.warning("a DAG file has a problem", file=name, problem=outcome.problem.message)
        freed = set(touched) - said
        if freed:
            for other in list(self.files.values()):
                if other.name not in batch and freed.intersection(other.dag_ids or ()):
                    other.fingerprint = None
                    self._read(other)
        if self.idle():
            gc.collect()
            linux.give_back_memory()  # a thousand definitions went through here
            self._rest_later()

    def _plan(self, file: File, read: Read) -> None:
        """When is it to be read again, with nothing changed?"""
        if file.candidate is not None or (file.outdated and file.asked):
            self._read_in(file, QUIET if file.candidate is None else 0)
            return
        if file.good and not file.dynamic:
            return
        wait = max(self.config.dynamic_interval, READINGS_FOR_SLOW * read.duration)
        age = self.clock.wall() - self.sources.youngest(file.name, file.extra)
        if not file.good and file.retried != file.fingerprint and age < 3 * ONCE_MORE:
            file.retried, wait = file.fingerprint, min(wait, ONCE_MORE)
        self._read_in(file, wait)

    # --- small questions ----------------------------------------------------------------------------------------------

    def _is_readable(self, file: File) -> bool:
        """Is there a Python file under this name that may hold DAGs?"""
        source = self.sources.source(f"{self.config.folder}/{file.name}")
        return source is not None and source.may_hold_dags and not _is_unusable(file)

    def _moved(self, read: Read) -> bool:
        """Does a module that was loaded look different now?"""
        for path, mtime_ns, size in read.report.sources:
            source = self.sources.source(path)
            if source is None or (source.signature[2], source.signature[1]) != (mtime_ns, size):
                return True
        return False

    def _note_sources(self, file: File, read: Read) -> None:
        told = {f"{self.config.folder}/{file.name}", *self.sources.needs(file.name)}
        loaded = tuple(path for path, _, _ in read.report.sources if path not in told)
        if loaded or not read.report.problems:
            file.extra = loaded
            for path in loaded if self.watch is not None else ():
                self._watch_folder(path.rpartition("/")[0])

    def _belongs_elsewhere(self, file: File, dag: ReadDag) -> bool:
        """Was it only imported from another DAG file, which gives it itself?"""
        if dag.made_in == file.name or dag.made_in not in self.files:
            return False
        source = self.sources.source(f"{self.config.folder}/{dag.made_in}")
        return source is not None and source.may_hold_dags

    def _lost_dags(self, file: File, dags: tuple[ReadDag, ...]) -> bool:
        if file.dag_ids is None:
            return file.known
        return not set(file.dag_ids) <= {dag.dag_id for dag in dags}

    def _too_young(self, file: File) -> int:
        """How long until it has been left alone for long enough; 0: it has."""
        age = self.clock.wall() - self.sources.youngest(file.name, file.extra)
        return SETTLE - age if 0 <= age < SETTLE else 0


def _is_unusable(file: File) -> bool:
    return file.fingerprint is not None and file.fingerprint.startswith(_UNUSABLE)


def salt_of(config: ParserConfig) -> str:
    """What decides about definitions besides the files."""
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

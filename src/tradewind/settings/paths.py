"""Every place on the disk, in one file. What is made here only its owner may enter.

A Unix socket's path has room for 107 bytes (Linux; 103 elsewhere). Where the home folder is too deep for that, the sockets
live in a short folder under $XDG_RUNTIME_DIR, else /tmp, named after a hash of the home folder. It must be a folder of
ours with mode 0700, or it is refused. Which one was chosen is written down in `run/socket-folder`, because a process
started by systemd and one in a login shell may see different $XDG_RUNTIME_DIRs and must still meet.
"""

from __future__ import annotations

import os
import sys

from tradewind.model.errors import ConfigError
from tradewind.platform.private_file import exposure, make_private, private_folder
from tradewind.settings.frozen import Frozen

SOCKET_PATH_MAX_BYTES = 107 if sys.platform == "linux" else 103
_SOCKET_NAME_MAX_BYTES = 24
"""Room kept for a socket's own name; `scheduler.sock` needs 14."""
_SHORT_BASE_MAX_BYTES = 30
"""`/run/user/1000` has 14; ours below it takes 38, the socket 25, and the sum stays below the limit."""


class Paths(Frozen):
    """Absolute paths, as text.

    Attributes:
        home: all of the below is inside, but for what settings place elsewhere (dags, database, logs) and short sockets.
        run: what lives only as long as the processes: lock, sockets.
        lock: held by whoever may write the SQLite database.
        socket_folder: `run`, or the short folder.
        spool: verdicts that wait for the scheduler.
        xcom: XComs too large for the database.
        passwords: the generated login.
    """

    home: str
    config: str
    dags: str
    plugins: str
    database: str
    logs: str
    run: str
    lock: str
    socket_folder: str
    spool: str
    xcom: str
    fernet_key: str
    jwt_key: str
    passwords: str

    @property
    def scheduler_socket(self) -> str:
        """Where the live scheduler takes commands."""
        return self.socket("scheduler.sock")

    def progress(self, kind: str) -> str:
        """Where the scheduler, host, parser or api says that its loop turns."""
        return os.path.join(self.run, f"{kind}.progress")

    @property
    def host_socket(self) -> str:
        """Where the worker host is reached."""
        return self.socket("host.sock")

    def socket(self, name: str) -> str:
        """The path of the Unix socket called `name`.

        Raises:
            ValueError: the name is longer than the room that is kept for it.
        """
        if len(os.fsencode(name)) > _SOCKET_NAME_MAX_BYTES:
            raise ValueError(f"socket name {name!r} is longer than {_SOCKET_NAME_MAX_BYTES} bytes")
        return os.path.join(self.socket_folder, name)

    def prepare(self) -> None:
        """Make every folder that is missing, mode 0700, and close to others what is ours and open to them (`close_to_others`).
        May be called by several processes, and again.

        The DAG folder and the plugins folder are made only inside the home folder: what a setting names must be there.

        Raises:
            ConfigError: a folder cannot be made, or the short socket folder is not ours alone.
        """
        folders = [self.home, self.run, self.spool, self.xcom, self.logs, os.path.dirname(self.database)]
        folders += [folder for folder in (self.dags, self.plugins) if os.path.commonpath([self.home, folder]) == self.home]
        for folder in folders:
            try:
                private_folder(folder)
            except OSError as error:
                raise ConfigError(f"Cannot make the folder {folder}: {error.strerror}") from error
        self.close_to_others()
        if self.socket_folder != self.run:
            _claim(self.socket_folder)
            _write_down(self.run, self.socket_folder)

    def close_to_others(self) -> None:
        """Repair folders and files that a strange umask, a copy or a restored backup left open to others.

        The DAG folder and the plugins folder stay as they are: other people may write there. So do folders outside the home
        folder, and the files in folders that are closed. A key that others could read is named in a warning.
        """
        for folder in (self.home, self.run, self.spool, self.xcom):
            make_private(folder)
        if os.path.commonpath([self.home, self.logs]) == self.home:
            make_private(self.logs)
        for ending in ("", "-wal", "-shm"):
            make_private(self.database + ending)
        for key in (self.fernet_key, self.jwt_key, self.passwords):
            if make_private(key):
                from tradewind.observe.log import Log  # lazy import: logging takes time to load, and this is rare

                Log("settings").warning(f"Others could read {key}; now they cannot. If somebody may have read it, replace it.")
        for file in (self.config, os.path.join(self.home, "database.path")):
            make_private(file)


def paths_below(home: str, *, dags: str, plugins: str, database: str, logs: str, runtime_dir: str) -> Paths:
    """The places of the installation at `home` (absolute). Touches nothing; see `Paths.prepare`.

    `runtime_dir` is $XDG_RUNTIME_DIR, empty where there is none; only a home folder too deep for sockets uses it.

    Raises:
        ConfigError: sockets need the short folder, and what stands in its place is not ours alone.
    """
    run = os.path.join(home, "run")
    return Paths(
        home=home,
        config=os.path.join(home, "tradewind.toml"),
        dags=dags,
        plugins=plugins,
        database=database,
        logs=logs,
        run=run,
        lock=os.path.join(run, "lock"),
        socket_folder=_socket_folder(home, run, runtime_dir),
        spool=os.path.join(home, "spool"),
        xcom=os.path.join(home, "xcom"),
        fernet_key=os.path.join(home, "fernet.key"),
        jwt_key=os.path.join(home, "jwt.key"),
        passwords=os.path.join(home, "passwords"),
    )


def _socket_folder(home: str, run: str, runtime_dir: str) -> str:
    if len(os.fsencode(run)) + 1 + _SOCKET_NAME_MAX_BYTES <= SOCKET_PATH_MAX_BYTES:
        return run
    chosen = _written_down(run)
    if chosen is not None and os.path.lexists(chosen) and exposure(chosen) is None:
        return chosen

    import hashlib  # lazy import: only a home folder too deep for sockets needs a hash

    digest = hashlib.sha256(os.fsencode(os.path.realpath(home))).hexdigest()[:16]
    folder = os.path.join(_short_base(runtime_dir), f"tradewind-{os.geteuid()}-{digest}")
    if os.path.lexists(folder):
        _refuse_exposed(folder)
    return folder


def _short_base(runtime_dir: str) -> str:
    short = os.path.isabs(runtime_dir) and len(os.fsencode(runtime_dir)) <= _SHORT_BASE_MAX_BYTES
    return runtime_dir if short and os.path.isdir(runtime_dir) and exposure(runtime_dir) is None else "/tmp"


def _claim(folder: str) -> None:
    try:
        os.mkdir(folder, 0o700)
    except FileExistsError:
        pass  # ours from before, or somebody else's: looked at next
    except OSError as error:
        raise ConfigError(f"Cannot make the folder {folder} for sockets: {error.strerror}") from error
    _refuse_exposed(folder)


def _refuse_exposed(folder: str) -> None:
    reason = exposure(folder)
    if reason is None and not os.path.isdir(folder):
        reason = "it is not a folder"
    if reason is not None:
        raise ConfigError(
            f"The socket folder {folder} cannot be trusted: {reason}. Remove it, or choose a TRADEWIND_HOME whose path "
            f"is shorter than {SOCKET_PATH_MAX_BYTES - _SOCKET_NAME_MAX_BYTES - len('/run/')} bytes"
        )


def _note(run: str) -> str:
    return os.path.join(run, "socket-folder")


def _written_down(run: str) -> str | None:
    try:
        with open(_note(run), encoding="utf-8", errors="surrogateescape") as file:
            return file.read().strip() or None
    except FileNotFoundError:
        return None


def _write_down(run: str, folder: str) -> None:
    draft = f"{_note(run)}.{os.getpid()}.new"
    with open(draft, "w", encoding="utf-8", errors="surrogateescape", opener=_private) as file:
        file.write(folder + "\n")
    os.replace(draft, _note(run))


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)

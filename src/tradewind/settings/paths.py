"""All paths of an installation. Folders that are created here can be read only by their owner.

The path of a Unix socket has at most 107 bytes (Linux; 103 on other systems). If the path of the home folder is too long, the
sockets are in a short folder under $XDG_RUNTIME_DIR, otherwise /tmp, whose name has a hash of the home folder. The folder must
belong to the user and have mode 0700; otherwise it is refused. The chosen folder is written to `run/socket-folder`, because a
process started by systemd and one in a login shell may have different $XDG_RUNTIME_DIRs but must use the same sockets.
"""

from __future__ import annotations

import os
import sys

from tradewind.model.errors import ConfigError
from tradewind.platform.private_file import exposure, make_private, private_folder
from tradewind.settings.frozen import Frozen

SOCKET_PATH_MAX_BYTES = 107 if sys.platform == "linux" else 103
_SOCKET_NAME_MAX_BYTES = 24
"""Bytes reserved for the file name of a socket; `scheduler.sock` has 14."""
_SHORT_BASE_MAX_BYTES = 30
"""`/run/user/1000` has 14; the folder's own name has 38, the socket's 25, and the sum is below the limit."""


class Paths(Frozen):
    """Absolute paths.

    Attributes:
        home: contains all paths below, except those that settings place elsewhere (dags, database, logs) and the short socket
        folder.
        run: files that are needed only while processes run: locks, sockets.
        lock: the writer lock, held by the process that may write to the SQLite database.
        socket_folder: `run`, or the short folder.
        spool: reports that wait for the scheduler.
        worker_key: signs the tokens of remote workers and of their attempts.
        xcom: XComs that are too large for the database.
        home_id: a random number that tells this home folder from others on machines with the same name.
        accounts: the database of users, their tokens and sessions.
        passwords: the file of users of earlier releases, which becomes `accounts`.
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
    worker_key: str
    home_id: str
    accounts: str
    passwords: str

    @property
    def scheduler_socket(self) -> str:
        """The socket on which the running scheduler accepts connections."""
        return self.socket("scheduler.sock")

    def progress(self, kind: str) -> str:
        """The file in which the scheduler, host, parser or api reports its progress."""
        return os.path.join(self.run, f"{kind}.progress")

    @property
    def host_socket(self) -> str:
        """The socket of the worker host."""
        return self.socket("host.sock")

    def socket(self, name: str) -> str:
        """The path of the Unix socket with this name.

        Raises:
            ValueError: the name is too long.
        """
        if len(os.fsencode(name)) > _SOCKET_NAME_MAX_BYTES:
            raise ValueError(f"socket name {name!r} is longer than {_SOCKET_NAME_MAX_BYTES} bytes")
        return os.path.join(self.socket_folder, name)

    def prepare(self) -> None:
        """Create the missing folders with mode 0700, and repair permissions (`close_to_others`). Several processes may call this.

        The DAG folder and the plugins folder are created only inside the home folder: a folder from a setting must exist.

        Raises:
            ConfigError: a folder cannot be created, or others can access the short socket folder.
        """
        folders = [self.home, self.run, self.spool, self.xcom, self.logs, os.path.dirname(self.database)]
        folders += [folder for folder in (self.dags, self.plugins) if os.path.commonpath([self.home, folder]) == self.home]
        for folder in folders:
            try:
                private_folder(folder)
            except OSError as error:
                raise ConfigError(f"cannot create the folder {folder}: {error.strerror}") from error
        self.close_to_others()
        if self.socket_folder != self.run:
            _create_socket_folder(self.socket_folder)
            _record_folder(self.run, self.socket_folder)

    def close_to_others(self) -> None:
        """Remove the permissions of others from files and folders, which a wrong umask, a copy or a restored backup may have left.

        Not changed are the DAG folder and the plugins folder (other people may write there), folders outside the home folder, and
        files in folders that others cannot enter. A key that others could read is named in a warning.
        """
        for folder in (self.home, self.run, self.spool, self.xcom):
            make_private(folder)
        if os.path.commonpath([self.home, self.logs]) == self.home:
            make_private(self.logs)
        for ending in ("", "-wal", "-shm"):
            make_private(self.database + ending)
            make_private(self.accounts + ending)
        for key in (self.fernet_key, self.jwt_key, self.worker_key, self.passwords):
            if make_private(key):
                from tradewind.observe.log import Log  # lazy import: logging takes time to import, and this is rare

                Log("settings").warning(
                    f"others could read {key}; its permissions were repaired. If somebody may have read it, replace the key."
                )
        for file in (self.config, os.path.join(self.home, "database.path")):
            make_private(file)


def paths_below(home: str, *, dags: str, plugins: str, database: str, logs: str, runtime_dir: str) -> Paths:
    """The paths of the installation at `home` (absolute). Creates nothing; see `Paths.prepare`.

    `runtime_dir` is $XDG_RUNTIME_DIR, or ""; it is used only if the path of the home folder is too long for sockets.

    Raises:
        ConfigError: the short socket folder is needed, but others can access it.
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
        worker_key=os.path.join(home, "worker.key"),
        home_id=os.path.join(home, "home.id"),
        accounts=os.path.join(home, "accounts.db"),
        passwords=os.path.join(home, "passwords"),
    )


def _socket_folder(home: str, run: str, runtime_dir: str) -> str:
    if len(os.fsencode(run)) + 1 + _SOCKET_NAME_MAX_BYTES <= SOCKET_PATH_MAX_BYTES:
        return run
    chosen = _recorded_folder(run)
    if chosen is not None and os.path.lexists(chosen) and exposure(chosen) is None:
        return chosen

    import hashlib  # lazy import: only needed if the path is too long for sockets

    digest = hashlib.sha256(os.fsencode(os.path.realpath(home))).hexdigest()[:16]
    folder = os.path.join(_short_base(runtime_dir), f"tradewind-{os.geteuid()}-{digest}")
    if os.path.lexists(folder):
        _refuse_exposed(folder)
    return folder


def _short_base(runtime_dir: str) -> str:
    short = os.path.isabs(runtime_dir) and len(os.fsencode(runtime_dir)) <= _SHORT_BASE_MAX_BYTES
    return runtime_dir if short and os.path.isdir(runtime_dir) and exposure(runtime_dir) is None else "/tmp"


def _create_socket_folder(folder: str) -> None:
    try:
        os.mkdir(folder, 0o700)
    except FileExistsError:
        pass  # its owner and permissions are checked next
    except OSError as error:
        raise ConfigError(f"cannot create the folder {folder} for sockets: {error.strerror}") from error
    _refuse_exposed(folder)


def _refuse_exposed(folder: str) -> None:
    reason = exposure(folder)
    if reason is None and not os.path.isdir(folder):
        reason = "it is not a folder"
    if reason is not None:
        raise ConfigError(
            f"the socket folder {folder} is not safe: {reason}. Remove it, or choose a TRADEWIND_HOME whose path "
            f"is shorter than {SOCKET_PATH_MAX_BYTES - _SOCKET_NAME_MAX_BYTES - len('/run/')} bytes"
        )


def _record_file(run: str) -> str:
    return os.path.join(run, "socket-folder")


def _recorded_folder(run: str) -> str | None:
    try:
        with open(_record_file(run), encoding="utf-8", errors="surrogateescape") as file:
            return file.read().strip() or None
    except FileNotFoundError:
        return None


def _record_folder(run: str, folder: str) -> None:
    draft = f"{_record_file(run)}.{os.getpid()}.new"
    with open(draft, "w", encoding="utf-8", errors="surrogateescape", opener=_private) as file:
        file.write(folder + "\n")
    os.replace(draft, _record_file(run))


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)

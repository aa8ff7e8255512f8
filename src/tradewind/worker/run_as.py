"""`run_as_user`: a task's process becomes another user of the operating system before any code of the author runs."""

from __future__ import annotations

import os
import pwd

from tradewind.platform import HAVE_LINUX

if HAVE_LINUX:
    from tradewind.platform import linux


def become_user(name: str) -> str | None:
    """Change the user of this process, its groups and its HOME. Return None, or a sentence that says why this is impossible.

    Only a worker that runs as root can start tasks as another user.
    """
    try:
        user = pwd.getpwnam(name)
    except KeyError:
        return f"run_as_user is {name!r}: there is no such user on this machine"
    if user.pw_uid == os.geteuid():
        return None
    if os.geteuid() != 0:
        return (
            f"run_as_user is {name!r}, and the worker runs as user {os.geteuid()}: only a worker that runs as root can start tasks "
            "as another user. Start Tradewind as root, or leave run_as_user out and use sudo in the task's command"
        )
    os.initgroups(name, user.pw_gid)
    os.setgid(user.pw_gid)
    os.setuid(user.pw_uid)
    os.environ.update(HOME=user.pw_dir, USER=name, LOGNAME=name)
    if HAVE_LINUX:
        linux.changed_user()
    return None

"""The copy of a git repository on this machine, and the folders of its versions. Uses the command `git`.

    <bundle>/repository.git/         all branches and tags, and a ref for each commit that was used as a version
    <bundle>/versions/<commit>/      the files of a version

The ref keeps a commit after a force-push, so that a deleted folder can be made again without the network. All steps can be
repeated: a process that is killed leaves only drafts.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from tradewind.bundles.specs import BundleSpec, hidden
from tradewind.bundles.version_folders import FetchFailed, VersionFolders, disk_space
from tradewind.model.counts import counted

READ_SECONDS = 10.0
"""Deadline for reading a file from the copy."""
_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_LFS = b"version https://git-lfs.github.com/spec/"
_ASKPASS = """#!/bin/sh
case "$1" in
  *sername*) printf '%s\\n' "$TRADEWIND_GIT_USER" ;;
  *) printf '%s\\n' "$TRADEWIND_GIT_SECRET" ;;
esac
"""
_HOST_KEYS = {"yes": "yes", "no": "no", "off": "no", "accept-new": "accept-new"}


class GitRepository:
    """See the module.

    Args:
        folder: the folder of the bundle, absolute.
        connection: host, login, password and `extra` of the connection; empty: none.
    """

    def __init__(self, folder: str, spec: BundleSpec, connection: Mapping[str, Any]) -> None:
        self._versions = VersionFolders(folder)
        self._spec = spec
        self._connection = connection
        self._git_dir = os.path.join(folder, "repository.git")

    def refresh(self) -> str:
        """Fetch everything, and return the commit of the branch, tag or commit that is followed. Raises FetchFailed."""
        place = self._address()
        if not os.path.isdir(self._git_dir):
            draft = f"{self._git_dir}.new"
            shutil.rmtree(draft, ignore_errors=True)
            self._git("init", "--quiet", "--bare", "--template=", draft, inside=False)
            os.rename(draft, self._git_dir)
        with tempfile.TemporaryDirectory(prefix="tradewind-git-") as private:
            self._git(
                *("fetch", "--quiet", "--prune", "--force", "--no-recurse-submodules", "--", os.path.expanduser(place)),
                *("+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*"),
                environment=self._credentials(private),
            )
        return self._commit()

    def look(self) -> str:
        """Return the commit that the branch or tag has in the repository now. Nothing is fetched. Raises FetchFailed.

        A commit that is followed cannot be looked for: it is returned when the repository answers.
        """
        place, ref = self._address(), self._spec.ref
        with tempfile.TemporaryDirectory(prefix="tradewind-git-") as private:
            listed = self._git(
                *("ls-remote", "--", os.path.expanduser(place), "refs/heads/*", "refs/tags/*"),
                environment=self._credentials(private),
                inside=False,
            )
        found = {name: commit for commit, _, name in (line.partition("\t") for line in listed.splitlines())}
        for name in (f"refs/heads/{ref}", f"refs/tags/{ref}^{{}}", f"refs/tags/{ref}"):
            if name in found:
                return found[name]
        if _COMMIT.fullmatch(ref):
            return ref
        raise _no_ref(ref, [name.removeprefix("refs/heads/") for name in found if name.startswith("refs/heads/")][:10])

    def _address(self) -> str:
        """The address of the repository. Raises FetchFailed."""
        place = self._spec.place or str(self._connection.get("host") or "")
        if not place:
            raise FetchFailed(f"it has no address: set repo_url, or the host of the connection {self._spec.conn_id!r}")
        if place.startswith("-") or "::" in place:
            raise FetchFailed(f"{hidden(place)!r} is no address of a repository")
        return place

    def _commit(self) -> str:
        ref = self._spec.ref
        names = [f"refs/heads/{ref}", f"refs/tags/{ref}", *([ref] if _COMMIT.fullmatch(ref) else [])]
        for name in names:
            found = self._run("rev-parse", "--quiet", "--verify", "--end-of-options", f"{name}^{{commit}}")
            if found.returncode == 0:
                return found.stdout.decode().strip()
        known = self._git("for-each-ref", "--count=10", "--format=%(refname:short)", "refs/heads").split()
        raise _no_ref(ref, known)

    def make(self, version: str) -> None:
        """Make the folder of a version if it is missing. Raises FetchFailed."""
        if not _COMMIT.fullmatch(version):
            raise FetchFailed(f"{version!r} is no commit")
        if self._versions.has(version):
            return
        if self._run("cat-file", "-e", f"{version}^{{commit}}").returncode:
            raise FetchFailed(f"the commit {version} is not in the copy of the repository on this machine")
        self._git("update-ref", f"refs/versions/{version}", version)
        with self._versions.draft(version) as draft:
            try:
                self._git(
                    *("--work-tree", draft, "read-tree", "--reset", "-u", version),
                    environment={"GIT_INDEX_FILE": f"{draft}.index", "GIT_LFS_SKIP_SMUDGE": "1"},
                )
            finally:
                for path in (f"{draft}.index", f"{draft}.index.lock"):
                    if os.path.exists(path):
                        os.unlink(path)

    def read(self, version: str, path: str, at_most: int) -> bytes:
        """Return the content of one file of a version. Raises FetchFailed: there is none, or it is larger than `at_most` bytes."""
        if not _COMMIT.fullmatch(version):
            raise FetchFailed(f"{version!r} is no commit")
        name = f"{version}:{path}"
        size = self._run("cat-file", "-s", name, timeout=READ_SECONDS)
        if size.returncode:
            raise FetchFailed(f"the file {path} of the commit {version} is not in the copy of the repository on this machine")
        if int(size.stdout) > at_most:
            raise FetchFailed(f"the file {path} is larger than {at_most} bytes")
        found = self._run("cat-file", "blob", name, timeout=READ_SECONDS)
        if found.returncode:
            raise FetchFailed(f"{path} is no file in the commit {version}")
        return found.stdout

    def warnings(self, version: str) -> list[str]:
        """What DAG files may miss in a version: submodules, files in Git LFS, the configured folder."""
        root, found = self._versions.path(version), []
        if self._spec.subdir and not os.path.isdir(os.path.join(root, self._spec.subdir)):
            found.append(f"the repository has no folder {self._spec.subdir!r} at this commit, so it has no DAG files")
        if os.path.isfile(os.path.join(root, ".gitmodules")):
            found.append("the repository has submodules, which are not fetched")
        pointers = [path for path in self._large_files(root) if _is_pointer(path)]
        if pointers:
            first = os.path.relpath(pointers[0], root)
            found.append(f"not fetched, because they are in Git LFS: {counted(len(pointers), 'file')}, for example {first}")
        return found

    def _large_files(self, root: str) -> list[str]:
        if self._run("grep", "-q", "filter=lfs", os.path.basename(root), "--", ":(glob)**/.gitattributes").returncode:
            return []
        return [os.path.join(at, name) for at, _, names in os.walk(root) for name in names]

    def size(self) -> int:
        """Disk space of the copy, bytes."""
        return disk_space(self._git_dir)

    def shrink(self, kept: Collection[str]) -> None:
        """Forget the commits that were versions, except `kept`, and delete what no branch and no tag needs. Raises FetchFailed."""
        refs = self._git("for-each-ref", "--format=%(refname)", "refs/versions").split()
        forgotten = [ref for ref in refs if ref.rpartition("/")[2] not in kept]
        for ref in forgotten:
            self._git("update-ref", "-d", ref)
        if forgotten:
            self._git("gc", "--quiet", "--prune=now")

    # --- git --------------------------------------------------------------------------------------------------------

    def _git(self, *arguments: str, environment: Mapping[str, str] | None = None, inside: bool = True) -> str:
        done = self._run(*arguments, environment=environment, inside=inside)
        if done.returncode:
            words = [word for word in arguments if not word.startswith("-")]
            raise FetchFailed(f"git {words[0]} failed: {self._without_secrets(done.stderr.decode(errors='replace'))}")
        return done.stdout.decode(errors="replace")

    def _run(
        self,
        *arguments: str,
        environment: Mapping[str, str] | None = None,
        inside: bool = True,
        timeout: float | None = None,
    ) -> subprocess.CompletedProcess[bytes]:
        kept = {key: value for key, value in os.environ.items() if not key.startswith("GIT_") or key.startswith("GIT_SSL_")}
        fixed = {"GIT_TERMINAL_PROMPT": "0", "GIT_ALLOW_PROTOCOL": "https:http:ssh:git:file", "LC_ALL": "C"}
        place = ["--git-dir", self._git_dir] if inside else []
        try:
            return subprocess.run(
                ["git", "-c", "core.hooksPath=/dev/null", "-c", "gc.autoDetach=false", *place, *arguments],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                env={**kept, **fixed, **(environment or {})},
                check=False,
                timeout=timeout,
            )
        except FileNotFoundError:
            raise FetchFailed("the command git is not installed on this machine") from None
        except subprocess.TimeoutExpired:
            raise FetchFailed(f"git {arguments[0]} took longer than {timeout:g} s") from None

    def _without_secrets(self, text: str) -> str:
        for secret in (self._connection.get("password"), self._extra().get("private_key_passphrase")):
            if secret:
                text = text.replace(str(secret), "***")
        return " ".join(text.split())[-500:]

    def _extra(self) -> dict[str, Any]:
        return dict(self._connection.get("extra") or {})

    def _credentials(self, private: str) -> dict[str, str]:
        """Return the environment that gives git the key or the token of the connection. Secrets are never on a command line."""
        extra, found = self._extra(), dict[str, str]()
        key = str(extra.get("key_file") or "")
        if extra.get("private_key"):
            if key:
                raise FetchFailed(f"the connection {self._spec.conn_id!r} has both key_file and private_key; keep one")
            key = _private_file(private, "key", str(extra["private_key"]).rstrip("\n") + "\n")
        secret = extra.get("private_key_passphrase") if key else self._connection.get("password")
        if secret:
            script = _private_file(private, "askpass", _ASKPASS, 0o700)
            found = {
                "GIT_ASKPASS": script,
                "SSH_ASKPASS": script,
                "SSH_ASKPASS_REQUIRE": "force",
                "DISPLAY": os.environ.get("DISPLAY", ":"),
                "TRADEWIND_GIT_USER": str(self._connection.get("login") or "user"),
                "TRADEWIND_GIT_SECRET": str(secret),
            }
        chosen = str(extra.get("strict_host_key_checking") or "accept-new")
        if chosen not in _HOST_KEYS:
            raise FetchFailed(f"strict_host_key_checking is {chosen!r}; it must be one of {', '.join(_HOST_KEYS)}")
        ssh = ["ssh", "-o", f"StrictHostKeyChecking={_HOST_KEYS[chosen]}", "-o", "ConnectTimeout=20"]
        if not secret:
            ssh += ["-o", "BatchMode=yes"]
        ssh += ["-i", key, "-o", "IdentitiesOnly=yes"] if key else []
        for name, option in (("known_hosts_file", "UserKnownHostsFile"), ("host_proxy_cmd", "ProxyCommand")):
            ssh += ["-o", f"{option}={extra[name]}"] if extra.get(name) else []
        ssh += ["-F", str(extra["ssh_config_file"])] if extra.get("ssh_config_file") else []
        ssh += ["-p", str(int(extra["ssh_port"]))] if extra.get("ssh_port") else []
        return {**found, "GIT_SSH_COMMAND": shlex.join(ssh)}


def _no_ref(ref: str, branches: Sequence[str]) -> FetchFailed:
    return FetchFailed(f"the repository has no branch, tag or commit {ref!r}; its branches: {', '.join(branches) or 'none'}")


def _private_file(folder: str, name: str, content: str, mode: int = 0o600) -> str:
    path = os.path.join(folder, name)
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "w", encoding="utf-8") as file:
        file.write(content)
    return path


def _is_pointer(path: str) -> bool:
    try:
        if os.path.islink(path) or os.path.getsize(path) > 1024:
            return False
        with open(path, "rb") as file:
            return file.read(len(_LFS)) == _LFS
    except OSError:
        return False

"""A git repository for tests: a bare repository to fetch from, and a checkout that pushes commits to it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from tradewind.bundles.specs import BundleSpec, VersionedBundle


class GitServer:
    """A bare git repository and a checkout; see the module's docstring."""

    def __init__(self, folder: Path) -> None:
        self.bare = folder / "repo.git"
        self.work = folder / "checkout"
        self.work.mkdir(parents=True)
        self.git("init", "--quiet", "--bare", "-b", "main", str(self.bare))
        self.git("init", "--quiet", "-b", "main", ".")
        self.git("remote", "add", "origin", str(self.bare))

    def git(self, *words: str) -> str:
        """Run git in the checkout. Returns its output."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        person = {f"GIT_{who}_{what}": "test@example.com" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
        done = subprocess.run(
            ["git", *words], cwd=self.work, env={**kept, **person}, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"git {words}: {done.stderr}"
        return done.stdout.strip()

    def commit(self, files: dict[str, str], *, amend: bool = False) -> str:
        """Write files and push them to the branch. Returns the commit."""
        for name, content in files.items():
            path = self.work / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)
        self.git("add", "--all")
        self.git("commit", "--quiet", "-m", "change", *(["--amend"] if amend else []))
        self.git("push", "--quiet", "--force", "origin", "HEAD")
        return self.git("rev-parse", "HEAD")

    def bundle(self, folder: Path) -> VersionedBundle:
        """A bundle of the folder `dags` of this repository, with its copy in `folder`."""
        return VersionedBundle(BundleSpec("repo", "git", str(self.bare), subdir="dags"), str(folder))

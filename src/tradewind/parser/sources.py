"""Information about the folder's Python files, cached until they change: hash, whether they may contain DAGs, imports.

The *fingerprint* of a file is a hash of its content and of the content of every module of the folder that it imports, as far as its
import statements show, and of further modules that an import has loaded. With an equal fingerprint no second parse is needed, not
even after a restart. It also contains everything else that affects a definition (format, defaults, Python version).
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
import zipfile
from collections.abc import Callable, Iterable
from typing import NamedTuple

from tradewind.parser.folder import Signature, signature
from tradewind.sdk.dag_files import ENDING, content_mark, files_of, is_zipped, may_hold_dags

RACY_NS = 50_000_000
"""Two writes within this time may leave the same signature: the kernel's clock for files ticks every 4 to 10 ms."""


class Source(NamedTuple):
    """One Python file."""

    signature: Signature
    digest: str
    may_hold_dags: bool
    imports: tuple[tuple[int, str, tuple[str, ...]], ...]
    """(leading dots, module, names after `import`)."""
    settled: bool
    """True if the file was old enough when it was read, so that its signature can be trusted."""


class Sources:
    """Reads files only when they have changed.

    Args:
        root: the DAG folder.
        salt: everything else that affects definitions.
        wall: the wall clock in microseconds, which file systems also use for time stamps.
    """

    def __init__(self, root: str, salt: str, wall: Callable[[], int]) -> None:
        self.root = root
        self.salt = salt
        self._wall = wall
        self._known: dict[str, Source] = {}
        self._names: dict[str, frozenset[str]] = {}
        self._imported_by_file: dict[str, tuple[str, ...]] = {}

    def clear_listings(self) -> None:
        """Forget the listings of folders. They are cached only during one scan."""
        self._names.clear()
        self._imported_by_file.clear()

    def source(self, path: str, seen: Signature | None = None) -> Source | None:
        """The current state of a file; None if it cannot be read.

        Args:
            seen: its signature, if the caller has just read it.
        """
        try:
            mark = seen if seen is not None else signature(os.stat(path))
            known = self._known.get(path)
            if known is not None and known.signature == mark and known.settled:
                return known
            if path.endswith(ENDING):
                return self._archive(path, mark)
            # without O_NONBLOCK, opening a FIFO would wait for a writer
            with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
                facts = os.fstat(file.fileno())
                if not stat.S_ISREG(facts.st_mode):
                    raise OSError(f"{path} is not a regular file")
                mark = signature(facts)
                text = file.read()
        except (OSError, zipfile.BadZipFile):
            self._known.pop(path, None)
            return None
        now = self._wall() * 1000
        settled = not now - RACY_NS < mark[3] <= now + RACY_NS
        if known is not None and known.signature == mark and known.digest == _digest(text):
            source = known._replace(settled=settled)
        else:
            source = Source(mark, _digest(text), may_hold_dags(text), imports_of(text), settled)
        self._known[path] = source
        return source

    def _archive(self, path: str, mark: Signature) -> Source:
        """A zip archive. It is not read as a whole: it may be large, and contain no DAGs."""
        texts = [text for _, text in files_of(path)] if is_zipped(path) else []
        settled = not self._wall() * 1000 - RACY_NS < mark[3] <= self._wall() * 1000 + RACY_NS
        digest = _digest(content_mark(path)) if texts else ""
        imports = tuple(dict.fromkeys(found for text in texts for found in imports_of(text)))
        source = self._known[path] = Source(mark, digest, any(map(may_hold_dags, texts)), imports, settled)
        return source

    def last_read(self, path: str) -> Source | None:
        """The state of a file when it was last read."""
        return self._known.get(path)

    def fingerprint(self, file: str, extra: Iterable[str] = ()) -> str | None:
        """A hash of a file (relative path) and of everything that it imports from the folder; None if it cannot be read.

        Args:
            extra: absolute paths of further modules that it has loaded.
        """
        whole = hashlib.sha256(self.salt.encode())
        own = os.path.join(self.root, file)
        for path in [own, *sorted({*self.imported_modules(file), *extra})]:
            source = self.source(path)
            if source is None and path == own:
                return None
            digest = source.digest if source is not None else "absent"
            whole.update(f"\0{os.path.relpath(path, self.root)}\0{digest}".encode(errors="surrogateescape"))
        return whole.hexdigest()[:32]

    def last_change(self, file: str, extra: Iterable[str] = ()) -> int:
        """When the file or a module that it imports was last changed: wall clock in µs; 0 if nothing exists."""
        changed = [0]
        for path in [os.path.join(self.root, file), *self.imported_modules(file), *extra]:
            source = self.source(path)
            if source is not None:
                changed.append(source.signature[3] // 1000)
        return max(changed)

    def imported_modules(self, file: str) -> tuple[str, ...]:
        """Absolute paths of the folder's modules that a file imports, directly or indirectly."""
        found = self._imported_by_file.get(file)
        if found is None:
            path = os.path.join(self.root, file)
            roots = list(dict.fromkeys((self.root, os.path.dirname(path))))
            modules: dict[str, None] = {}
            todo = [path]
            while todo:
                for needed in self._imported(todo.pop(), roots):
                    if needed != path and needed not in modules:
                        modules[needed] = None
                        todo.append(needed)
            found = self._imported_by_file[file] = tuple(modules)
        return found

    def keep_only(self, kept: Iterable[str]) -> None:
        """Forget all other files, because they do not exist any more."""
        wanted = set(kept)
        for path in [path for path in self._known if path not in wanted]:
            del self._known[path]

    def _imported(self, path: str, roots: list[str]) -> Iterable[str]:
        source = self.source(path)
        if source is None:
            return
        for dots, module, names in source.imports:
            starts = roots
            if dots:
                start = os.path.dirname(path)
                for _ in range(dots - 1):
                    start = os.path.dirname(start)
                if not (start + "/").startswith(self.root + "/"):
                    continue
                starts = [start]
            parts = module.split(".") if module else []
            for start in starts:
                yield from self._resolve(start, parts, names)

    def _resolve(self, folder: str, parts: list[str], names: tuple[str, ...]) -> Iterable[str]:
        for part in parts:
            here = self._listed(folder)
            if part + ".py" in here:
                yield os.path.join(folder, part + ".py")
            if part not in here:
                return
            folder = os.path.join(folder, part)
            if "__init__.py" in self._listed(folder):
                yield os.path.join(folder, "__init__.py")
        here = self._listed(folder)
        for name in names:
            if name + ".py" in here:
                yield os.path.join(folder, name + ".py")
            elif name in here and "__init__.py" in self._listed(os.path.join(folder, name)):
                yield os.path.join(folder, name, "__init__.py")

    def _listed(self, folder: str) -> frozenset[str]:
        names = self._names.get(folder)
        if names is None:
            try:
                names = frozenset(os.listdir(folder))
            except OSError:
                names = frozenset()
            self._names[folder] = names
        return names


def _digest(text: bytes) -> str:
    return hashlib.sha256(text).hexdigest()


_IMPORT = re.compile(
    rb"""(?:^|;)[ \t]*(?:
        from[ \t]+(?P<dots>\.*)[ \t]*(?P<module>[\w.]*)[ \t]+import[ \t]*(?P<names>\([^)]*\)|(?:[^\n;\#\\]|\\\r?\n)*)
      | import[ \t]+(?P<modules>(?:[^\n;\#\\]|\\\r?\n)*)
    )""",
    re.MULTILINE | re.VERBOSE,
)
_COMMENT = re.compile(r"#[^\n]*")


def imports_of(text: bytes) -> tuple[tuple[int, str, tuple[str, ...]], ...]:
    """The import statements of a file, found with a regular expression; the file may be invalid. Too many are harmless."""
    found: dict[tuple[int, str, tuple[str, ...]], None] = {}
    for match in _IMPORT.finditer(text):
        if match["modules"] is not None:
            for module in _imported_names(match["modules"]):
                found[0, module, ()] = None
        else:
            found[len(match["dots"]), match["module"].decode(errors="replace"), tuple(_imported_names(match["names"]))] = None
    return tuple(found)


def _imported_names(text: bytes) -> list[str]:
    """The names in a list `a, b as c`, also in parentheses or with continued lines."""
    plain = _COMMENT.sub("", text.decode(errors="replace")).strip("()").replace("\\", " ")
    return [words[0] for part in plain.split(",") if (words := part.split()) and re.fullmatch(r"[\w.]+", words[0])]

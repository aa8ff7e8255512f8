"""`make spec`: which rows are proven by a test that pytest collects, replaced, missing, waiting for other work, or unknown."""

from __future__ import annotations

import sys
from collections import defaultdict

import pytest

from tests.spec.rows import Answer, Row, all_rows, answers


class Collector:
    """A pytest plugin that records which tests prove which rows."""

    def __init__(self) -> None:
        self.proofs: dict[str, list[str]] = defaultdict(list)

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        for item in items:
            name = item.nodeid.partition("[")[0]
            for marker in item.iter_markers("spec"):
                for row_id in marker.args:
                    if name not in self.proofs[row_id]:
                        self.proofs[row_id].append(name)

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        session.items.clear()  # so that pytest lists and runs no tests


def collected() -> dict[str, list[str]]:
    """Row → the tests that prove it. A file that cannot be collected ends the report."""
    collector = Collector()
    code = pytest.main(["--collect-only", "-qq", "--no-header", "--no-summary", "-p", "no:cacheprovider"], plugins=[collector])
    if code not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
        sys.exit(f"The tests could not be collected: pytest ended with {int(code)}.")
    return collector.proofs


def report(rows: dict[str, Row], proofs: dict[str, list[str]], known: dict[str, Answer], everything: bool) -> list[str]:
    """The lines to print; `everything` names the tests of each proven row too."""
    proven = [row for row in rows.values() if row.id in proofs]
    rest = [row for row in rows.values() if row.id not in proofs]
    lines: list[str] = []
    if everything:
        lines += [f"{row.id}  {row.title}\n" + "\n".join(f"      {test}" for test in proofs[row.id]) for row in proven]
    counts = {"proven": len(proven)}
    for kind in ("superseded", "missing", "elsewhere"):
        of_kind = [row for row in rest if row.id in known and known[row.id].kind == kind]
        counts[kind] = len(of_kind)
        lines += ["", f"{kind} ({len(of_kind)})"]
        for reason in dict.fromkeys(known[row.id].reason for row in of_kind):
            lines.append(f"  {reason}")
            lines += [f"      {row.id:<5} {row.title}" for row in of_kind if known[row.id].reason == reason]
    unknown = [row for row in rest if row.id not in known]
    counts["unknown"] = len(unknown)
    lines += ["", f"unknown ({len(unknown)})"]
    lines += [f"  {row.id:<5} {row.group:<2} {row.title} [{row.advice}]" for row in unknown]
    lines += ["", f"{len(rows)} rows: " + ", ".join(f"{count} {kind}" for kind, count in counts.items())]
    return lines


def main() -> None:
    """Prints the report; `--tests` names the proofs too."""
    print("\n".join(report(all_rows(), collected(), dict(answers()), "--tests" in sys.argv[1:])))


main()

"""Shows where the time of one task is spent: `python -m benchmarks.profile_hotpath [--tasks N] [--lines N] [--no-strace]`.

Scheduler and host: cProfile over a fan (it makes Python code slower by about half, so compare shares, not sums). Runner: cProfile
in single attempts, forked from a warm image with the host played by this program. Template and runner: system calls counted by
strace, where it is installed, with one runner's whole sequence.
"""

from __future__ import annotations

import argparse
import json
import os
import pstats
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from benchmarks import dagfiles
from benchmarks.deployment import REPOSITORY, Deployment, template_environment
from benchmarks.measure import median


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.profile_hotpath", description=__doc__)
    parser.add_argument("--tasks", type=int, default=500)
    parser.add_argument("--lines", type=int, default=35)
    parser.add_argument("--no-strace", action="store_true")
    parser.add_argument("--only", choices=("fan", "chain", "runner", "strace"), help="only this part")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="twprof-"))
    if options.only in (None, "fan", "chain"):
        print("# Times without a profiler, and profiles of scheduler and host\n")
        _accounts(options.tasks, options.only)
        for kind in [options.only] if options.only else ["fan", "chain"]:
            _profiled(folder, kind, options.tasks, options.lines)
    if options.only in (None, "runner"):
        _runner(folder, options.lines)
    if options.only in (None, "strace") and not options.no_strace and shutil.which("strace"):
        _strace(folder)
    shutil.rmtree(folder, ignore_errors=True)


def _deployment(kind: str, tasks: int, extra: dict[str, str]) -> tuple[Deployment, int]:
    deployment = Deployment(extra=extra, standalone=False)
    marks = deployment.marks.path
    text = dagfiles.fan("fan", marks, tasks - 2) if kind == "fan" else dagfiles.chain("chain", marks, 40, 10)
    deployment.add_file(f"{kind}.py", text)
    return deployment, tasks if kind == "fan" else 40


def _go(deployment: Deployment, kind: str, tasks: int, repeat: int = 1) -> None:
    for _ in range(repeat):
        deployment.wait(deployment.trigger(kind))
        problem = dagfiles.problem_of(deployment.marks.take(), tasks)
        if problem:
            raise SystemExit(problem)


def _accounts(tasks: int, only: str | None) -> None:
    for kind in [only] if only else ["fan", "chain"]:
        deployment, count = _deployment(kind, tasks, {})
        with deployment:
            _go(deployment, kind, count)
            span = deployment.span()
            _go(deployment, kind, count, 5)
            span.end()
            each = {role: round(seconds / count / 5 * 1e3, 2) for role, seconds in span.cpu.items()}
            print(
                f"{kind}: {span.seconds / count / 5 * 1e3:.2f} ms a task (wall), CPU ms a task {each}, ext {span.ext:.1f} s\n"
            )


def _profiled(folder: Path, kind: str, tasks: int, lines: int) -> None:
    deployment, count = _deployment(kind, tasks, {"TRADEWIND_PROFILE": str(folder)})
    repeat = 3 if kind == "fan" else 12
    with deployment:
        _go(deployment, kind, count, repeat)
    for process in ("scheduler", "host"):
        done = count * repeat
        print(f"\n## {process}, {kind}: microseconds a task (profiled; {done} tasks), by own time\n")
        _table(folder / f"{process}.prof", done, lines)


def _table(path: Path, per: int, lines: int) -> None:
    stats = pstats.Stats(str(path)).stats  # type: ignore[attr-defined]
    rows = []
    for (file, line, name), (_, calls, own, cumulative, _) in stats.items():
        short = re.sub(r".*/(tradewind|lib/python3\.\d+|site-packages)/", "", file)
        where = name if file == "~" else f"{short}:{line} {name}"
        rows.append((own / per * 1e6, cumulative / per * 1e6, calls / per, where))
    waits = [row for row in rows if "poll" in row[3] or "select.epoll" in row[3]]
    busy = sum(row[0] for row in rows) - sum(row[0] for row in waits if row[3].startswith("<method 'poll'"))
    print(f"all but waiting: {busy:.0f} us a task\n\n{'own us':>8} {'cum us':>8} {'calls':>7}")
    for own, cumulative, calls, where in sorted(rows, reverse=True)[:lines]:
        print(f"{own:8.1f} {cumulative:8.1f} {calls:7.2f}  {where}")


# --- the runner ----------------------------------------------------------------------------------------------------------


def _runner(folder: Path, lines: int) -> None:
    """Replay one attempt: its phases without a profiler, then the profile of ten attempts."""
    dags = folder / "dags"
    dags.mkdir()
    (dags / "chain.py").write_text(dagfiles.chain("chain", folder / "marks", 40, 10))
    print("\n## runner: phases of one attempt, forked from a warm image (medians of 50, host played by this program)\n")
    rows = _attempts(dags, "", 60)[10:]
    names = ("fork returned", "report sent", "process reaped", "CPU of child", "page faults")
    for i, name in enumerate(names):
        print(f"{name:>16}: {median([row[i] for row in rows]):.0f}" + (" us" if i < 4 else ""))
    _attempts(dags, str(folder), 40)
    profiles = sorted(folder.glob("runner-*.prof"))
    merged = pstats.Stats(*map(str, profiles))
    path = folder / "runner.prof"
    merged.dump_stats(path)
    print("\n## runner: microseconds a task (profiled), from the fork to _exit\n")
    _table(path, len(profiles), lines)


def _attempts(dags: Path, profiles: str, number: int) -> list[list[float]]:
    command = [sys.executable, "-m", "benchmarks.forker", "attempts", str(dags), "chain.py", profiles, str(number)]
    environment = dict(os.environ, **template_environment())
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=environment, cwd=REPOSITORY)
    return [json.loads(line) for line in done.stdout.splitlines()]


# --- system calls --------------------------------------------------------------------------------------------------------


def _strace(folder: Path) -> None:
    """A chain of 40 tasks under strace -f of each long-lived process: system calls per task, and the sequence of one task
    process.
    """
    deployment, count = _deployment("chain", 40, {})
    with deployment:
        _go(deployment, "chain", count)
        for role in ("scheduler", "host", "templates"):
            _strace_one(deployment, role, folder / f"{role}.strace", count)


def _strace_one(deployment: Deployment, role: str, out: Path, count: int) -> None:
    from benchmarks.measure import ROLES

    pid = next(p.pid for p in deployment.members() if ROLES.get(p.name) == role)
    follow = ["-f"] if role == "templates" else []
    tracer = subprocess.Popen(["strace", *follow, "-r", "-s", "60", "-o", str(out), "-p", str(pid)], stderr=subprocess.DEVNULL)
    time.sleep(0.5)
    _go(deployment, "chain", count)
    time.sleep(0.3)
    tracer.terminate()
    tracer.wait()
    mine: Counter[str] = Counter()
    others: dict[str, list[str]] = {}
    pattern = re.compile(r"^\s*(?:(\d+)\s+)?([\d.]+) (?:<\.\.\. )?(\w+)")
    for line in out.read_text(errors="replace").splitlines():
        found = pattern.match(line)
        if found is None or "resumed>" in line or "---" in line:
            continue
        who = found.group(1) or str(pid)
        if who == str(pid):
            mine[found.group(3)] += 1
        else:
            others.setdefault(who, []).append(line.split(None, 1)[1])
    print(f"\n## system calls of {role}: {sum(mine.values()) / count:.1f} a task (chain)\n")
    print("  ".join(f"{name} {number / count:.2f}" for name, number in mine.most_common(24)))
    if others:
        total = sum(len(calls) for calls in others.values()) / len(others)
        print(f"\n## system calls of a runner: {total:.0f}; the whole sequence of one (seconds since the call before)\n")
        print("\n".join(f"    {line[:170]}" for line in list(others.values())[len(others) // 2]))


if __name__ == "__main__":
    main()

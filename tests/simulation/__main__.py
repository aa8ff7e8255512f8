"""`make simulate`: runs the simulation for any length of time, seed after seed, in several processes.

    make simulate ARGS="--hours 500 --processes 2 --record"     for this number of virtual hours
    make simulate ARGS="--seeds 1000 --first 5000"              these seeds
    make simulate ARGS=--slice                                  five minutes
    make simulate ARGS="--machines --seeds 200"                 several machines: gateways, a standby scheduler, Celery
    make simulate ARGS=--mutants                                only the bugs that were put back
    make simulate ARGS="--seeds 9 --record --after FILE FILE"   as a further part of a run, with corrected code

If a seed finds a violation, the line of code that repeats it is printed, and the exit status is 1.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.simulation.mutants import MUTANTS, hunt
from tradewind.simulation.simulate import Simulated, explain, simulate

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
RESULTS = BENCHMARKS / "RESULTS.md"
HEADING = "## The simulation"
MUTANTS_HEADING = "## Bugs put back into production"
SLICE_SECONDS = 300
PART = 10
"""Seeds of one unit of work."""


Part = dict[str, Any]
"""The result of a run, as stored in `benchmarks/raw/simulation`: see `Tally.part`."""


class Tally:
    """The results of all seeds."""

    def __init__(self, machines: bool = False) -> None:
        self.machines = machines
        self.seeds = 0
        self.hours = 0.0
        self.cpu = 0.0
        self.faults: Counter[str] = Counter()
        self.sometimes: Counter[str] = Counter()
        self.with_three_kinds = 0
        self.found: list[Simulated] = []

    def take(self, done: list[Simulated], cpu: float) -> None:
        self.cpu += cpu
        for one in done:
            self.seeds += 1
            self.hours += one.hours
            self.faults.update(one.faults)
            self.sometimes.update(one.sometimes)
            self.with_three_kinds += len(one.faults) >= 3
            if one.found:
                self.found.append(one)
                print(f"\n{explain(one, machines=self.machines)}", flush=True)

    def line(self) -> str:
        rate = self.hours / self.cpu if self.cpu else 0
        return (
            f"{self.seeds} seeds, {self.hours:.0f} simulated hours, {rate:.1f} of them per CPU second, {len(self.found)} found"
        )

    def part(self, first: int) -> Part:
        return {
            "at": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
            "commit": commit(),
            "first": first,
            "seeds": self.seeds,
            "hours": round(self.hours, 1),
            "cpu_s": round(self.cpu, 1),
            "with_three_kinds": self.with_three_kinds,
            "found": [
                {"seed": one.seed, "what": [f"[{found.rule}] {found.text}" for found in one.found]} for one in self.found
            ],
            "faults": dict(sorted(self.faults.items())),
            "sometimes": dict(sorted(self.sometimes.items())),
        }


def pending(first: int, count: int, machines: bool) -> tuple[list[Simulated], float]:
    """Simulate some seeds in a child process. Returns the results and their CPU seconds."""
    begun = time.process_time()
    done = [simulate(seed, strict=False, machines=machines) for seed in range(first, first + count)]
    return done, time.process_time() - begun


def live(args: argparse.Namespace) -> Tally:
    tally, begun = Tally(args.machines), time.monotonic()
    following: int = args.first
    last: int | None = args.first + args.seeds if args.seeds else None

    def more() -> bool:
        if last is not None:
            return following < last
        if args.slice:
            return time.monotonic() - begun < SLICE_SECONDS
        return bool(tally.hours < args.hours or tally.cpu < args.cpu_hours * 3600)

    with ProcessPoolExecutor(args.processes) as pool:
        under_way: set[Future[tuple[list[Simulated], float]]] = set()
        while under_way or more():
            while more() and len(under_way) < 2 * args.processes:
                count = PART if last is None else min(PART, last - following)
                under_way.add(pool.submit(pending, following, count, args.machines))
                following += count
            ended, under_way = wait(under_way, return_when=FIRST_COMPLETED)
            for one in ended:
                tally.take(*one.result())
            print(f"\r{tally.line()}", end="" if sys.stdout.isatty() else "\n", flush=True)
    return tally


def kill_mutants(budget: int) -> tuple[list[str], list[str]]:
    """Returns the mutants that were not found, and a table row for each mutant."""
    alive, rows = [], []
    for mutant in MUTANTS:
        begun = time.process_time()
        done = hunt(mutant, budget)
        if done is None:
            alive.append(mutant.name)
            print(f"ALIVE   {mutant.name}: {mutant.what}", flush=True)
        else:
            rule, seconds = done.found[0].rule, time.process_time() - begun
            print(f"killed  {mutant.name}: seed {done.seed}, [{rule}], {seconds:.1f} s", flush=True)
        seed, rule = ("none", "not found") if done is None else (str(done.seed), done.found[0].rule)
        rows.append(f"| {mutant.name} | {mutant.what} | {seed} | {rule} |")
    return alive, rows


def commit() -> str:
    return subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False).stdout.strip()


def head(heading: str, command: str, at: str) -> list[str]:
    how = "How it works: docs/explanation/simulation.md."
    return [heading, "", f"`{command}`, {datetime.now(UTC):%Y-%m-%d}, commit {at}. {how}", ""]


def report_of_mutants(alive: list[str], rows: list[str], budget: int) -> str:
    lines = [
        *head(MUTANTS_HEADING, "make simulate ARGS=--mutants", commit()),
        f"{len(MUTANTS)} bugs, {len(MUTANTS) - len(alive)} of them found with at most {budget} seeds each.",
        "",
        "| bug | what is wrong | seed | promise that it breaks |",
        "|---|---|---:|---|",
        *rows,
    ]
    return "\n".join(lines) + "\n"


def report(parts: list[Part], broken_again: list[int]) -> str:
    """The report of all parts of one run. `broken_again`: failing seeds of earlier parts that also fail with this code."""
    seeds, hours, cpu = (sum(part[name] for part in parts) for name in ("seeds", "hours", "cpu_s"))
    counted = [part for part in parts if part["faults"]]
    share = 100 * sum(part["with_three_kinds"] for part in counted) / max(1, sum(part["seeds"] for part in counted))
    lines = [
        *head(HEADING, "make simulate", parts[-1]["commit"]),
        f"- {seeds:,} seeds, {hours:,.0f} simulated hours in {cpu / 3600:.2f} CPU hours: {hours / max(cpu, 1):.1f} a second.",
        f"- Broken promises in the last part: {len(parts[-1]['found'])}.",
        f"- Seeds with at least three kinds of faults: {share:.1f} %.",
        "",
        "| commit | from seed | seeds | hours | CPU hours | seeds with broken promises |",
        "|---|---:|---:|---:|---:|---|",
        *(
            f"| {part['commit']} | {part['first']} | {part['seeds']:,} | {part['hours']:,.0f} | {part['cpu_s'] / 3600:.2f} "
            f"| {', '.join(str(one['seed']) for one in part['found']) or 'none'} |"
            for part in parts
        ),
    ]
    if len(parts) > 1:
        earlier = sum(len(part["found"]) for part in parts[:-1])
        again = ", ".join(map(str, broken_again)) or "none"
        lines += [
            "",
            f"Of the {earlier} seeds in which earlier parts had found something, broken on {parts[-1]['commit']}, too: {again}.",
        ]
    if len(counted) < len(parts):
        missing = ", ".join(part["commit"] for part in parts if not part["faults"])
        lines += [f"The part on {missing} was cut short, and left no counts of what follows."]
    for title, name in (("Faults", "faults"), ("Situations that were reached", "sometimes")):
        counts = sum((Counter(part[name]) for part in counted), Counter[str]())
        lines += ["", f"{title}:", "", "| what | how often |", "|---|---:|"]
        lines += [f"| {what} | {count:,} |" for what, count in sorted(counts.items())]
    return "\n".join(lines) + "\n"


def keep(part: Part) -> None:
    """Store the raw numbers."""
    path = BENCHMARKS / "raw" / "simulation" / f"{part['at'][:10]}-{part['commit']}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(part, indent=1) + "\n")


def record(text: str) -> None:
    """Replace the existing section, or append a new one."""
    heading = text.partition("\n")[0]
    old = RESULTS.read_text() if RESULTS.exists() else ""
    before, found, after = old.partition(f"{heading}\n")
    rest = after.partition("\n## ")
    RESULTS.write_text(before.rstrip() + "\n\n" + text + (f"\n## {rest[2]}" if found and rest[1] else ""))


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="make simulate", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=0, help="number of seeds")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--hours", type=float, default=100, help="virtual hours; not used with --seeds")
    parser.add_argument("--cpu-hours", type=float, default=0, help="minimum CPU hours; not used with --seeds")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--slice", action="store_true", help="run for five minutes")
    parser.add_argument("--machines", action="store_true", help="simulate several machines")
    parser.add_argument("--mutants", action="store_true", help="run only the mutants")
    parser.add_argument("--budget", type=int, default=400, help="maximum number of seeds for each mutant")
    parser.add_argument("--record", action="store_true", help="write a section of benchmarks/RESULTS.md, and the raw numbers")
    parser.add_argument("--after", nargs="*", type=Path, default=[], help="raw numbers of earlier parts of this run")
    args = parser.parse_args()
    if args.mutants:
        alive, rows = kill_mutants(args.budget)
        if args.record:
            record(report_of_mutants(alive, rows, args.budget))
        return bool(alive)
    tally = live(args)
    print(f"\n{tally.line()}")
    part = tally.part(args.first)
    before = [json.loads(path.read_text()) for path in args.after]
    seeds = sorted({one["seed"] for earlier in before for one in earlier["found"]})
    broken_again = [seed for seed in seeds if simulate(seed, strict=False, machines=args.machines).found]
    text = report([*before, part], broken_again)
    if args.record and not args.machines:
        keep(part)
        record(text)
    print(text)
    return bool(tally.found or broken_again)


if __name__ == "__main__":
    sys.exit(main())

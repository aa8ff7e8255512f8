"""`make simulate`: the simulation for as long as one likes, seed after seed, on several processes.

    make simulate ARGS="--hours 500 --processes 2 --record"     until so many virtual hours have gone by
    make simulate ARGS="--seeds 1000 --first 5000"              these seeds
    make simulate ARGS=--slice                                  five minutes
    make simulate ARGS=--mutants                                only the bugs that were put back

A seed that finds something is printed with the line that shows it again, and the exit status is 1.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from datetime import UTC, datetime
from pathlib import Path

from tests.simulation.mutants import MUTANTS, hunt
from tradewind.testing.simulated import Simulated, explain, simulate

RESULTS = Path(__file__).parents[2] / "benchmarks" / "RESULTS.md"
HEADING = "## The simulation"
SLICE_SECONDS = 300
PART = 10
"""Seeds of one errand."""


class Tally:
    """What all seeds came to."""

    def __init__(self) -> None:
        self.seeds = 0
        self.hours = 0.0
        self.cpu = 0.0
        self.faults: Counter[str] = Counter()
        self.sometimes: Counter[str] = Counter()
        self.stores: Counter[str] = Counter()
        self.with_three_kinds = 0
        self.found: list[Simulated] = []

    def take(self, done: list[Simulated], cpu: float) -> None:
        self.cpu += cpu
        for one in done:
            self.seeds += 1
            self.hours += one.hours
            self.faults.update(one.faults)
            self.sometimes.update(one.sometimes)
            self.stores[one.store] += 1
            self.with_three_kinds += len(one.faults) >= 3
            if one.found:
                self.found.append(one)
                print(f"\n{explain(one)}", flush=True)

    def line(self) -> str:
        rate = self.hours / self.cpu if self.cpu else 0
        return (
            f"{self.seeds} seeds, {self.hours:.0f} simulated hours, {rate:.1f} of them per CPU second, {len(self.found)} found"
        )


def errand(first: int, count: int) -> tuple[list[Simulated], float]:
    """In a process of its own: some seeds, and the CPU seconds they took."""
    begun = time.process_time()
    done = [simulate(seed, strict=False) for seed in range(first, first + count)]
    return done, time.process_time() - begun


def live(args: argparse.Namespace) -> Tally:
    tally, begun, following = Tally(), time.monotonic(), args.first
    last = args.first + args.seeds if args.seeds else None

    def more() -> bool:
        if last is not None:
            return following < last
        if args.slice:
            return time.monotonic() - begun < SLICE_SECONDS
        return tally.hours < args.hours or tally.cpu < args.cpu_hours * 3600

    with ProcessPoolExecutor(args.processes) as pool:
        under_way: set[Future[tuple[list[Simulated], float]]] = set()
        while under_way or more():
            while more() and len(under_way) < 2 * args.processes:
                count = PART if last is None else min(PART, last - following)
                under_way.add(pool.submit(errand, following, count))
                following += count
            ended, under_way = wait(under_way, return_when=FIRST_COMPLETED)
            for one in ended:
                tally.take(*one.result())
            print(f"\r{tally.line()}", end="" if sys.stdout.isatty() else "\n", flush=True)
    return tally


def kill_mutants(budget: int) -> list[str]:
    """Those that were not found."""
    alive = []
    for mutant in MUTANTS:
        begun = time.process_time()
        done = hunt(mutant, budget)
        if done is None:
            alive.append(mutant.name)
            print(f"ALIVE   {mutant.name}: {mutant.what}", flush=True)
        else:
            rule, seconds = done.found[0].rule, time.process_time() - begun
            print(f"killed  {mutant.name}: seed {done.seed}, [{rule}], {seconds:.1f} s", flush=True)
    return alive


def report(tally: Tally, alive: list[str] | None) -> str:
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False).stdout.strip()
    share = 100 * tally.with_three_kinds / max(1, tally.seeds)
    lines = [
        HEADING,
        "",
        f"`make simulate`, {datetime.now(UTC):%Y-%m-%d}, commit {commit}. How it works: docs/explanation/simulation.md.",
        "",
        f"- {tally.seeds} seeds ({', '.join(f'{count} on {name}' for name, count in sorted(tally.stores.items()))}), "
        f"{tally.hours:.0f} simulated hours in {tally.cpu / 3600:.2f} CPU hours: {tally.hours / max(tally.cpu, 1):.1f} a second.",
        f"- Broken promises: {len(tally.found)}.",
        f"- Seeds with at least three kinds of faults: {share:.1f} %.",
    ]
    if alive is not None:
        lines.append(f"- Bugs put back into production: {len(MUTANTS)}, found {len(MUTANTS) - len(alive)}.")
    for title, counts in (("Faults", tally.faults), ("Situations that were reached", tally.sometimes)):
        lines += ["", f"{title}:", "", "| what | how often |", "|---|---:|"]
        lines += [f"| {name} | {count:,} |" for name, count in sorted(counts.items())]
    return "\n".join(lines) + "\n"


def record(text: str) -> None:
    """In the place of the section that is there, or at the end."""
    old = RESULTS.read_text() if RESULTS.exists() else ""
    before, found, after = old.partition(HEADING)
    rest = after.partition("\n## ")
    RESULTS.write_text(before.rstrip() + "\n\n" + text + (f"\n## {rest[2]}" if found and rest[1] else ""))


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="make simulate", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=0, help="so many seeds")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--hours", type=float, default=100, help="virtual hours, unless seeds are given")
    parser.add_argument("--cpu-hours", type=float, default=0, help="CPU hours at least, unless seeds are given")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--slice", action="store_true", help="five minutes")
    parser.add_argument("--mutants", action="store_true", help="only the bugs that were put back")
    parser.add_argument("--budget", type=int, default=400, help="seeds at most for each of these bugs")
    parser.add_argument("--record", action="store_true", help="write a section of benchmarks/RESULTS.md")
    args = parser.parse_args()
    if args.mutants:
        return bool(kill_mutants(args.budget))
    tally = live(args)
    print(f"\n{tally.line()}")
    alive = kill_mutants(args.budget) if args.record else None
    text = report(tally, alive)
    if args.record:
        record(text)
    print(text)
    return bool(tally.found or alive)


if __name__ == "__main__":
    sys.exit(main())

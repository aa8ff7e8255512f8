"""`python -m tests.chaos --kills N --seed S [--minutes M] [--keep FOLDER]`: the kill test for any number of kills."""

from __future__ import annotations

import argparse
import datetime
import random
import tempfile
from pathlib import Path

import benchmarks
from benchmarks.bench import Bench
from benchmarks.measure import Result
from benchmarks.report import write, write_raw

from tests.chaos.killer import KINDS, Killer, Outcome, report


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--kills", type=int, default=300)
    parser.add_argument(
        "--seed", type=int, default=None, help="decides which process is killed when; default: random (printed)"
    )
    parser.add_argument("--minutes", type=float, default=0.0, help="stop killing after this many minutes; 0: after --kills")
    parser.add_argument("--workers", type=int, default=1, help="worker hosts that run the tasks")
    parser.add_argument(
        "--keep", type=Path, default=None, help="work in this folder, which is emptied first, and do not delete it"
    )
    parser.add_argument("--record", action="store_true", help="write the result into benchmarks/RESULTS.md")
    options = parser.parse_args()
    seed = options.seed if options.seed is not None else random.randrange(1_000_000)
    print(f"seed {seed}", flush=True)
    with tempfile.TemporaryDirectory(prefix="tradewind-chaos-") as folder:
        home = options.keep or Path(folder) / "w"
        killer = Killer(home, options.kills, seed, lambda line: print(line, flush=True), options.minutes, options.workers)
        outcome = killer.run()
    report(outcome, lambda line: print(line, flush=True))
    if options.record:
        _record(outcome, seed, options.workers)
    if outcome.verdict.problems:
        print(f"again: python -m tests.chaos --kills {options.kills} --seed {seed}")
        return 1
    print("nothing lost, nothing doubled, nothing left behind")
    return 0


def _record(outcome: Outcome, seed: int, workers: int) -> None:
    folder = Path(benchmarks.__file__).parent
    result = Result(
        "kill_test" if workers == 1 else f"kill_test_{workers}_workers", problem="; ".join(outcome.verdict.problems) or None
    )
    result.facts.update(
        seed=seed,
        workers=workers,
        kills={kind: outcome.counts[kind] for kind in KINDS},
        seconds=outcome.seconds,
        runs=len(outcome.runs),
        attempts=outcome.verdict.attempts,
        killed_attempts=outcome.verdict.unended,
        repeated=len(outcome.verdict.repeated),
    )
    write_raw(folder / "raw", datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d"), result, Bench())
    write(folder)


if __name__ == "__main__":
    raise SystemExit(main())

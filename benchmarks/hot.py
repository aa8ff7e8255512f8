"""The workloads of the hot path on one deployment: chains, fans, layers, bash, the first task after a trigger.

The machine's limits are measured between the repetitions, from the template image of the same DAG file.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Sequence

from benchmarks import dagfiles, limits
from benchmarks.bench import Bench
from benchmarks.dagfiles import Mark
from benchmarks.deployment import Deployment
from benchmarks.measure import Result, median


def run_checked(deployment: Deployment, dag: str, tasks: int, result: Result, every: float = 0.01) -> tuple[list[Mark], float]:
    """Run once and check the marks.

    Returns the marks by start, and the seconds from the trigger to the end of the code of the last task.
    """
    began = time.monotonic_ns()
    state = deployment.wait(deployment.trigger(dag), timeout=1800, every=every)
    marks = sorted(deployment.marks.take(), key=lambda mark: mark.started)
    problem = f"the run ended in state {state}" if state != 2 else dagfiles.problem_of(marks, tasks)
    if problem is not None:
        result.problem = result.problem or f"{dag}: {problem}"
        return marks, float("nan")
    return marks, (max(mark.ended for mark in marks) - began) / 1e9


def _hops(marks: Sequence[Mark]) -> list[float]:
    return [(after.started - before.ended) / 1e6 for before, after in itertools.pairwise(marks)]


def chain(bench: Bench) -> list[Result]:
    """A chain of 40 × fib(10): each hop, compared with the bare hop; then 10 × fib(33)."""
    result, long = Result("chain"), Result("chain_long")
    deployment = Deployment()
    deployment.add_file("chain.py", dagfiles.chain("chain", deployment.marks.path, 40, 10))
    deployment.add_file("long.py", dagfiles.chain("long", deployment.marks.path, 10, 33))
    with deployment:
        run_checked(deployment, "chain", 40, result)
        for repetition in range(bench.pick(8, 3)):
            bare = limits.bare_hops(deployment.dags / "chain.py", 40, result)
            span = deployment.span()
            marks, total = run_checked(deployment, "chain", 40, result)
            span.end().into(result, f"{repetition}.", 40)
            hops = _hops(marks)
            result.add("hop_ms", hops)
            result.add("hop_median_ms", [median(hops)])
            result.add("ratio", [median(hops) / bare])
            result.add("total_s", [total])
            bench.say(f"chain {repetition + 1}: hop {median(hops):.2f} ms, bare {bare:.2f} ms, ext {span.ext:.1f} CPU s")
        run_checked(deployment, "long", 10, long)
        for _ in range(bench.pick(2, 1)):
            span = deployment.span()
            marks, total = run_checked(deployment, "long", 10, long)
            span.end().into(long, tasks=10)
            compute = sum(mark.ended - mark.started for mark in marks) / 1e9
            long.add("total_s", [total])
            long.add("compute_s", [compute])
            long.add("overhead_s", [total - compute])
        bench.say(f"10 × fib(33): {long.median('total_s'):.2f} s, of which {long.median('overhead_s'):.3f} s overhead")
    return [result, long]


def fan(bench: Bench) -> list[Result]:
    """1 → 1,000 → 1 tasks, compared with the bare fork rate of one parent per core."""
    width = bench.pick(1000, 300)
    result = Result("fan")
    result.facts["width"] = width
    deployment = Deployment()
    deployment.add_file("fan.py", dagfiles.fan("fan", deployment.marks.path, width))
    with deployment:
        run_checked(deployment, "fan", width + 2, result)
        limits.forks(deployment.dags / "fan.py", 200, result)
        for repetition in range(bench.pick(5, 2)):
            bare = limits.bare_rate(deployment.dags / "fan.py", 500, result)
            span = deployment.span()
            _, total = run_checked(deployment, "fan", width + 2, result)
            span.end().into(result, f"{repetition}.", width + 2)
            result.add("total_s", [total])
            result.add("rate_per_s", [(width + 2) / total])
            result.add("ratio", [(width + 2) / total / bare])
            result.add("cpu_ms_per_task", [span.total / (width + 2) * 1e3])
            bench.say(f"fan {repetition + 1}: {(width + 2) / total:.0f} tasks/s, bare {bare:.0f}/s, ext {span.ext:.1f} CPU s")
    return [result]


def layered(bench: Bench) -> list[Result]:
    """Runs of growing size with processes: CPU time per task."""
    result = Result("layered")
    sizes = [100, 500, 2000] if bench.quick else [100, 500, 2000, 10_000] + ([100_000] if bench.full else [])
    deployment = Deployment()
    for size in sizes:
        deployment.add_file(f"l{size}.py", dagfiles.layered(f"l{size}", deployment.marks.path, size))
    with deployment:
        for size in sizes:
            run_checked(deployment, f"l{size}", size, result, every=0.05)
            if size >= 100_000:
                continue
            for _ in range(max(1, min(3, 2000 // size))):
                span = deployment.span()
                _, total = run_checked(deployment, f"l{size}", size, result, every=0.05)
                span.end().into(result, f"{size}.", size)
                result.add(f"cpu_ms_per_task_{size}", [span.total / size * 1e3])
                result.add(f"house_ms_per_task_{size}", [sum(span.cpu.get(r, 0.0) for r in ("scheduler", "host")) / size * 1e3])
                result.add(f"rate_per_s_{size}", [size / total])
            bench.say(f"layered {size}: {result.median(f'cpu_ms_per_task_{size}'):.2f} ms CPU a task")
    return [result]


def bash(bench: Bench) -> list[Result]:
    """200 bash tasks without dependencies."""
    result, tasks = Result("bash"), 200
    deployment = Deployment()
    deployment.add_file("bash.py", dagfiles.bash("bash", deployment.marks.path, tasks))
    with deployment:
        _run_bash(deployment, tasks, result)
        for _ in range(bench.pick(3, 1)):
            span = deployment.span()
            total = _run_bash(deployment, tasks, result)
            span.end().into(result, tasks=tasks)
            result.add("rate_per_s", [tasks / total])
            result.add("cpu_ms_per_task", [span.total / tasks * 1e3])
        bench.say(f"bash: {result.median('rate_per_s'):.0f} tasks/s")
    return [result]


def _run_bash(deployment: Deployment, tasks: int, result: Result) -> float:
    """bash cannot read the monotonic clock, so the end of the run is measured."""
    began = time.monotonic()
    state = deployment.wait(deployment.trigger("bash"))
    total = time.monotonic() - began
    problem = f"the run ended in state {state}" if state != 2 else dagfiles.problem_of(deployment.marks.take(), tasks)
    if problem is not None:
        result.problem = result.problem or problem
    return total


def latency(bench: Bench) -> list[Result]:
    """Trigger one task: time from the call to its code and to the end of the run; warm, and for the first task of the DAG."""
    result = Result("latency")
    deployment = Deployment()
    deployment.add_file("one.py", dagfiles.single("one", deployment.marks.path))
    with deployment:
        for i in range(bench.pick(31, 11)):
            began = time.monotonic_ns()
            state = deployment.wait(deployment.trigger("one"), every=0.002)
            ended = time.monotonic_ns()
            marks = deployment.marks.take()
            result.problem = result.problem or (f"state {state}" if state != 2 else dagfiles.problem_of(marks, 1))
            if result.problem:
                break
            kind = "first_" if i == 0 else ""
            result.add(f"{kind}to_code_ms", [(marks[0].started - began) / 1e6])
            result.add(f"{kind}to_end_ms", [(ended - began) / 1e6])
            time.sleep(0.02)
    bench.say(f"trigger → user code: {result.median('to_code_ms'):.1f} ms (first: {result.median('first_to_code_ms'):.0f} ms)")
    return [result]

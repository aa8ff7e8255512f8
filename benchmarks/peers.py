"""Figures of other orchestrators, measured separately on a similar machine. They are cited, not measured in this run."""

from __future__ import annotations

CONDITIONS = (
    "Peers were measured separately, before Tradewind, on 2 vCPU (AMD EPYC, KVM), Debian 12, CPython 3.11: apache-airflow 3.3.2, "
    "prefect 3.8.8, dagster 1.13.27, luigi 3.8.1, byte code compiled, other load on the machine noted. Windmill, Temporal and "
    "Hatchet are their makers' published figures on 4 vCPU. They show orders of magnitude, because the conditions differ."
)

FIGURES = {
    "chain": (
        "Airflow stock 1,110 ms, tuned 250 ms; Prefect process pool 120 ms; Dagster multiprocess 2,000 ms; Luigi, "
        "forked, without task state 10 ms; published: Windmill 9.8, Temporal 19, Hatchet 31 ms"
    ),
    "chain_long": "overhead: Airflow tuned 2.8–4.0 s; Prefect 4.2 s; Luigi, forked 0.33 s",
    "fan": "Airflow 3–7 tasks/s; Luigi, forked 57–72/s; Prefect threads 20/s until the server has all; Dagster 0.65/s",
    "bash": "Airflow 5.7 tasks/s, 281 ms CPU a task",
    "latency": "Airflow stock 0.9–1.05 s, tuned 0.47 s; Prefect 8.1 s; Dagster 3.7 s; Luigi's command line 0.15 s",
    "layered": "Airflow, 500 tasks: 310 ms CPU a task",
    "scale": "Airflow, empty tasks: 5.5 ms at 500, 37.7 ms at 2,000; the trigger takes > 120 s at 10,000",
    "files_known": "Airflow 109 s",
    "files_idle": "Airflow 170 % of a core",
    "files_pss": "Airflow 985 MB, 1,645 MB once tasks have run",
    "minute": "Airflow p95 29 s",
    "healthy": "Airflow 12.8 s; Prefect 14.3 s; Dagster 7.1 s",
    "help": "Airflow 1,990 ms; Prefect 1,490; Dagster 1,380; Luigi 210",
    "import": "Airflow 2,240 ms; Prefect 1,450; Dagster 1,150; Luigi 220",
    "dags_list": "Airflow 2.3 s",
    "history": "Airflow 3.0.3: loops of 15 s at 3 million (published issue)",
}

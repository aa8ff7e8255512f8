"""The generation (major release) of Airflow for which a DAG file was written.

A file that uses names that Airflow 3 removed was written for Airflow 1 or 2; every other file is read as one for Airflow 3. The
file is read with the rules of its generation: in 1 and 2, runs cover the interval before they start; in 1, an unknown argument of
an operator is only a warning.
"""

from __future__ import annotations

import re

CURRENT = 3

_MODULES = (
    r"airflow\.contrib",
    r"airflow\.operators\.\w+_operator",
    r"airflow\.operators\.(?:dummy|sensors|subdag|sql)",
    r"airflow\.operators +import",
    r"airflow\.sensors\.(?:\w+_sensor_operator|base_sensor_operator|\w+_(?:task|key|partition|sql|http|time|delta)_sensor)",
    r"airflow\.hooks\.\w+_hook",
    r"airflow\.hooks +import",
    r"airflow\.utils\.(?:dates|decorators|helpers +import +(?:chain|cross_downstream))",
    r"airflow\.utils +import +(?:dates|apply_defaults)",
    r"airflow\.datasets",
    r"airflow +import +Dataset",
)
_BEFORE_3 = re.compile(
    r"^\s*(?:from|import) +(?:" + "|".join(_MODULES) + r")\b"
    r"|\b(?:schedule_interval|provide_context|default_view|sla_miss_callback|fail_stop|task_concurrency)['\"]?\s*[=:](?!=)"
    r"|\b(?:days_ago|DummyOperator|SubDagOperator|SimpleHttpOperator)\(",
    re.MULTILINE,
)
_OF_1 = re.compile(
    r"^\s*(?:from|import) +airflow\.(?:contrib|operators\.\w+_operator|operators +import|hooks\.\w+_hook|hooks +import"
    r"|sensors\.base_sensor_operator|operators\.sensors)\b",
    re.MULTILINE,
)
_OF_2 = re.compile(
    r"^\s*(?:from|import) +airflow\.(?:decorators|providers|datasets|utils\.task_group|timetables|models\.param"
    r"|operators\.(?:bash|python|empty|dummy|email|trigger_dagrun|branch)|sensors\.(?:base|external_task|python|bash|filesystem))\b"
    r"|^\s*from +airflow +import +Dataset\b",
    re.MULTILINE,
)
_OF_3 = re.compile(r"^\s*(?:from|import) +airflow\.sdk\b", re.MULTILINE)


_GIVEN = re.compile(r"^# *tradewind: *airflow([123])\b", re.MULTILINE)
"""The comment `# tradewind: airflow2` fixes the generation of a file."""


def generation_of(source: str) -> int:
    """The generation of Airflow for which a DAG file was written: 1, 2 or 3. It is 3 if the file uses no names of only 1 or 2.

    A comment `# tradewind: airflow2` at the start of a line decides it.

    Args:
        source: text of the file.
    """
    given = _GIVEN.search(source)
    if given is not None:
        return int(given.group(1))
    if "airflow" not in source or _OF_3.search(source) or not _BEFORE_3.search(source):
        return CURRENT
    return 1 if _OF_1.search(source) and not _OF_2.search(source) else 2


def mark_of(source: str) -> tuple[str, int] | None:
    """The first name in a file that Airflow 3 removed, and its line number. None: there is no such name."""
    found = None if _OF_3.search(source) else _BEFORE_3.search(source)
    if found is None:
        return None
    return found.group().strip(" =:'\"(").replace("  ", " "), source.count("\n", 0, found.start(0) + 1) + 1

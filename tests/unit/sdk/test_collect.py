"""Which DAGs a file creates, and in which lines."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

import pytest

from tradewind.sdk import open_dags
from tradewind.sdk.dag import DAG
from tradewind.sdk.open_dags import Found, collecting


def read(path: Path, text: str) -> Found:
    path.write_text(textwrap.dedent(text))
    namespace: dict[str, Any] = {"__name__": "a_dag_file"}
    with collecting() as collection:
        exec(compile(path.read_text(), str(path), "exec"), namespace)
    return collection.found(namespace)


def ids(found: Found) -> list[str]:
    return [dag.dag_id for dag in found.dags]


def test_dags_are_found_in_top_level_names_and_with_blocks(tmp_path: Path) -> None:
    found = read(
        tmp_path / "f.py",
        """
        from tradewind import DAG, dag
        def hidden():
            with DAG("by_block"): pass
            DAG("lost")
            with DAG("not_registered", auto_register=False): pass
        hidden()
        second = DAG("second")
        again = second
        with DAG("third", auto_register=False) as third: pass
        @dag
        def fourth(): pass
        fourth()
        for n in range(2):
            globals()[f"x{n}"] = DAG(f"loop_{n}")
        """,
    )
    assert ids(found) == ["by_block", "second", "third", "fourth", "loop_0", "loop_1"]
    assert found.duplicates == ()
    assert [dag.location.line for dag in found.dags[:2]] == [7, 8]


def test_a_dag_created_by_a_helper_belongs_to_the_file_that_calls_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "dag_factory_for_test.py").write_text(
        "from tradewind import DAG\n\ndef make(name):\n    return DAG(name)\n\nown = DAG('own')\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    file = tmp_path / "f.py"
    found = read(file, "from dag_factory_for_test import make, own\n\nmine = make('mine')\n")
    places = {dag.dag_id: (dag.fileloc, dag.location.line) for dag in found.dags}
    assert places == {"own": (str(tmp_path / "dag_factory_for_test.py"), 6), "mine": (str(file), 3)}


def test_duplicate_dag_ids_are_reported_with_their_lines(tmp_path: Path) -> None:
    found = read(tmp_path / "f.py", "from tradewind import DAG\na = DAG('same')\nb = DAG('same')\nc = DAG('c')\n")
    assert ids(found) == ["same", "same", "c"]
    (duplicate,) = found.duplicates
    assert [place.line for place in duplicate.places] == [2, 3]
    assert str(duplicate) == (
        f"dag_id 'same' is used more than once: line 2 of {tmp_path / 'f.py'} and line 3 of {tmp_path / 'f.py'}. "
        "Only the last of these DAGs exists, as in Airflow"
    )


def test_blocks_that_a_failing_file_left_open_are_closed(tmp_path: Path) -> None:
    with DAG("around") as around:
        with pytest.raises(ZeroDivisionError):
            read(tmp_path / "f.py", "from tradewind import DAG\nDAG('d').__enter__()\n1 / 0\n")
        assert open_dags.current_dag() is around


def test_collecting_starts_without_an_open_dag(tmp_path: Path) -> None:
    with DAG("around"):
        found = read(
            tmp_path / "f.py",
            """
            from tradewind import BaseOperator, DAG
            free = BaseOperator("t")
            assert not free.has_dag()
            d = DAG("d")
            """,
        )
    assert ids(found) == ["d"]

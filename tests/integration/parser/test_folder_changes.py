"""Changes in the DAG folder reach the scheduler, through the real file watch and the real zygote."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from tests.integration.parser.running_parser import RunningParser, Store, dag_text
from tradewind.model.moments import SECOND
from tradewind.parser import service

MakeRunningParser = Callable[..., RunningParser]

BROKEN = "# a dag of tradewind\nx = (\n"


@pytest.mark.spec("S231", "S234")
def test_a_start_reads_only_files_that_may_contain_dags(running: RunningParser) -> None:
    running.write("a.py", dag_text("a"))
    running.write("deep/er/b.py", dag_text("b1", "b2"))
    running.write("plain.py", "print('no word of it')\n")
    running.write(".hidden/c.py", dag_text("hidden"))
    running.write("__pycache__/d.py", dag_text("cached"))
    running.write("ignored/e.py", dag_text("ignored"))
    running.write(".airflowignore", "ignored/\n")
    running.start()
    assert running.store.dags() == {"a", "b1", "b2"}
    assert sorted(running.read) == ["a.py", "deep/er/b.py"]


def test_an_edit_is_read_within_a_second_without_a_rescan(running: RunningParser) -> None:
    running.write("a.py", dag_text("a"))
    running.start()
    running.write("a.py", dag_text("a", tasks=5))
    registration = running.until_registered("a.py")
    assert [dag[0] for dag in registration["dags"]] == ["a"]
    assert len(running.store.hashes["a"]) == 2
    assert running.read == ["a.py", "a.py"]


def test_a_changed_comment_creates_no_new_version(running: RunningParser) -> None:
    running.write("a.py", dag_text("a"))
    running.start()
    running.replace("a.py", dag_text("a") + "# a comment\n")
    running.until_registered("a.py")
    assert len(running.store.hashes["a"]) == 1


def test_a_touched_file_is_not_read_again(running: RunningParser) -> None:
    path = running.write("a.py", dag_text("a"))
    running.start()
    scans = running.service.scans
    os.utime(path)
    running.until(lambda: running.service.scans > scans and running.service.idle())
    assert running.read == ["a.py"]


@pytest.mark.spec("S465")
def test_new_files_in_new_folders_are_found(running: RunningParser) -> None:
    running.start()
    running.write("x/y/z/a.py", dag_text("a"))
    running.until(lambda: running.store.dags() == {"a"})
    running.write("x/y/z/b.py", dag_text("b"))
    running.until(lambda: running.store.dags() == {"a", "b"})


@pytest.mark.spec("S229")
def test_a_deleted_file_is_removed_and_can_come_back(running: RunningParser) -> None:
    path = running.write("a.py", dag_text("a"))
    running.write("b.py", dag_text("b"))
    running.start()
    path.unlink()
    running.until(lambda: running.store.dags() == {"b"})
    running.write("a.py", dag_text("a"))
    running.until(lambda: running.store.dags() == {"a", "b"})
    assert len(running.store.hashes["a"]) == 1


def test_the_files_of_a_deleted_folder_are_removed(running: RunningParser) -> None:
    running.write("x/a.py", dag_text("a"))
    running.write("x/y/b.py", dag_text("b"))
    running.start()
    shutil.rmtree(running.folder / "x")
    running.until(lambda: running.store.dags() == set() and running.store.files == {})


def test_a_folder_that_cannot_be_listed_removes_nothing(running: RunningParser) -> None:
    running.write("a.py", dag_text("a"))
    running.start()
    away = running.folder.with_name("away")
    running.folder.rename(away)
    scans = running.service.scans
    running.until(lambda: running.service.scans >= scans + 1)
    running.service.scan_in(0)
    running.until(lambda: running.service.scans >= scans + 2)
    assert running.store.dags() == {"a"}
    away.rename(running.folder)
    running.service.scan_in(0)
    running.write("b.py", dag_text("b"))
    running.until(lambda: running.store.dags() == {"a", "b"})


def test_a_renamed_file_keeps_its_dag(running: RunningParser) -> None:
    running.write("old.py", dag_text("a"))
    running.start()
    os.rename(running.folder / "old.py", running.folder / "new.py")
    running.until(lambda: running.store.owner == {"a": "new.py"} and running.store.problems == {})


def test_the_first_file_keeps_a_dag_id_until_it_is_deleted(running: RunningParser) -> None:
    first = running.write("first.py", dag_text("same"))
    running.start()
    running.write("second.py", dag_text("same") + "# another\n")
    running.until(lambda: "second.py" in running.store.problems)
    assert running.store.owner == {"same": "first.py"}
    first.unlink()
    running.until(lambda: running.store.owner == {"same": "second.py"} and running.store.problems == {})


def test_a_changed_dependency_counts_as_a_change(running: RunningParser) -> None:
    running.write("shared/__init__.py", "")
    running.write("shared/names.py", "NAME = 'one'\n")
    running.write("shared/deeper.py", "from .names import NAME\n")
    running.write("a.py", dag_text(head="from shared.deeper import NAME") + "with DAG(NAME): pass\n")
    running.write("other.py", dag_text("other"))
    running.start()
    assert running.store.dags() == {"one", "other"}
    running.write("shared/names.py", "NAME = 'two'\n")  # same second, same size: a compiled file would hide it
    running.until(lambda: running.store.dags() == {"two", "other"})
    assert running.read.count("other.py") == 1


def test_a_dependency_without_an_import_statement_is_found(running: RunningParser) -> None:
    running.write("hidden_helper.py", "NAME = 'one'\n")
    text = "import importlib\nfrom tradewind import DAG\nd = DAG(importlib.import_module('hidden' + '_helper').NAME)\n"
    running.write("a.py", text)
    running.start()
    running.write("hidden_helper.py", "NAME = 'two'\n")
    running.until(lambda: running.store.dags() == {"two"})


def test_a_file_is_read_again_when_its_missing_module_appears(running: RunningParser) -> None:
    running.write("a.py", dag_text("a", head="import late"))
    running.start()
    assert "No module named 'late'" in running.store.problems["a.py"]["message"]
    running.write("late.py", "")
    running.until(lambda: running.store.dags() == {"a"} and running.store.problems == {})


def test_a_module_in_an_ignored_folder_is_a_dependency_too(running: RunningParser) -> None:
    running.write(".tradewindignore", "lib\n")
    running.write("lib/names.py", "NAME = 'one'\n")
    running.write("a.py", dag_text(head="from lib.names import NAME") + "with DAG(NAME): pass\n")
    running.start()
    running.write("lib/names.py", "NAME = 'two'\n")
    running.until(lambda: running.store.dags() == {"two"})


def test_a_changed_ignore_file_takes_effect(running: RunningParser) -> None:
    running.write("a.py", dag_text("a"))
    running.write("b.py", dag_text("b"))
    running.start()
    running.write(".airflowignore", "b.py\n")
    running.until(lambda: running.store.dags() == {"a"})


def test_a_broken_edit_keeps_the_last_good_version(running: RunningParser) -> None:
    running.write("a.py", dag_text("a"))
    running.start()
    running.write("a.py", BROKEN)
    registration = running.until_registered("a.py")
    assert registration["dags"] == []
    assert registration["problem"]["line"] == 2
    assert running.store.dags() == {"a"}
    running.write("a.py", dag_text("a"))
    running.until(lambda: running.store.problems == {})


@pytest.mark.parametrize("share", [0.0, 0.2, 0.45, 0.55, 0.8, 0.97])
def test_a_partly_written_file_removes_no_dag(running: RunningParser, share: float) -> None:
    text = "# a dag of tradewind\n" + dag_text("a", "b", "c")
    path = running.write("f.py", text)
    running.start()
    longer = text + dag_text("d")
    with open(path, "w") as file:
        file.write(longer[: int(len(longer) * share)])
        file.flush()
        scans = running.service.scans
        running.service.on_change()
        running.until(lambda: running.service.scans > scans and not running.children.busy() and not len(running.service.outbox))
        assert running.store.dags() >= {"a", "b", "c"}
        file.write(longer[int(len(longer) * share) :])
    running.until(lambda: running.store.dags() == {"a", "b", "c", "d"} and running.store.problems == {})
    assert all(
        {dag[0] for dag in last["dags"]} >= {"a", "b", "c"} or last["problem"] for last in running.registrations_of("f.py")
    )


def test_a_dag_removed_from_a_file_is_removed_when_the_file_is_quiet(running: RunningParser) -> None:
    running.write("f.py", dag_text("a", "b"))
    running.start()
    running.write("f.py", dag_text("a"))
    running.until(lambda: running.store.dags() == {"a"})


def test_the_dags_of_an_emptied_file_are_removed(running: RunningParser) -> None:
    running.write("f.py", dag_text("a"))
    running.start()
    running.write("f.py", "")
    running.until(lambda: running.store.dags() == set())
    assert running.registrations_of("f.py")[-1]["dags"] == []


def test_a_file_that_changes_while_it_is_read_is_read_again(running: RunningParser) -> None:
    running.write("helper.py", "N = 1\n")
    head = (
        "import os, helper\npath = os.path.join(os.path.dirname(__file__), 'helper.py')\n"
        "if helper.N == 1: open(path, 'w').write('N = 23')\n"
    )
    running.write("a.py", dag_text(head=head) + "with DAG(f'n{helper.N}'): pass\n")
    running.start()
    running.until(lambda: running.store.dags() == {"n23"})
    assert [dag[0] for registration in running.store.registrations for dag in registration["dags"]] == ["n23"]


def test_a_file_that_changes_its_folder_at_each_import_is_accepted(running: RunningParser) -> None:
    running.write("helper.py", "")
    head = "import helper, time\nopen(helper.__file__, 'w').write(f'# {time.time_ns()}')"
    running.write("a.py", dag_text("a", head=head))
    running.start()
    running.until(lambda: running.store.dags() == {"a"})
    assert len(running.read) <= 10


def test_symbolic_links_are_followed_once(running: RunningParser, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "b.py").write_text(dag_text("b"))
    running.write("x/a.py", dag_text("a"))
    (running.folder / "link").symlink_to(outside)
    (running.folder / "x" / "loop").symlink_to(running.folder)
    (running.folder / "again").symlink_to(running.folder / "x")
    (running.folder / "nothing.py").symlink_to(tmp_path / "nowhere.py")
    running.start()
    assert running.store.owner == {"a": "x/a.py", "b": "link/b.py"}
    (outside / "c.py").write_text(dag_text("c"))
    running.until(lambda: running.store.dags() == {"a", "b", "c"})


def test_a_volume_with_a_replaced_link_is_read_again(running: RunningParser) -> None:
    running.write("..v1/a.py", dag_text("one"))
    running.write("..v2/a.py", dag_text("two"))
    (running.folder / "..data").symlink_to("..v1")
    (running.folder / "a.py").symlink_to("..data/a.py")
    running.start()
    assert running.store.dags() == {"one"}
    (running.folder / "..data_tmp").symlink_to("..v2")
    os.rename(running.folder / "..data_tmp", running.folder / "..data")
    running.until(lambda: running.store.dags() == {"two"})


def _replace_link(link: Path, target: Path | str) -> None:
    """Replace a link like git-sync: create a new link, then rename it to the old name."""
    new = link.with_name(f"{link.name}.tmp.{os.getpid()}")
    new.symlink_to(target)
    os.rename(new, link)


@pytest.mark.parametrize("where", ["the folder", "a parent", "a link in a link"])
def test_a_replaced_link_to_the_dag_folder_is_noticed_without_a_rescan(
    rigs: MakeRunningParser, tmp_path: Path, where: str
) -> None:
    for revision, dag_id in (("rev-1", "one"), ("rev-2", "two")):
        (tmp_path / revision / "dags").mkdir(parents=True)
        (tmp_path / revision / "dags" / "a.py").write_text(dag_text(dag_id))
    (tmp_path / "git").mkdir()
    link = tmp_path / "git" / "link-1.0"
    if where == "the folder":
        link.symlink_to("../rev-1/dags")
        folder, after = link, "../rev-2/dags"
    elif where == "a parent":
        link.symlink_to(tmp_path / "rev-1")
        folder, after = link / "dags", str(tmp_path / "rev-2")
    else:
        link.symlink_to("../rev-1")
        folder, after = tmp_path / "linked", "../rev-2"
        folder.symlink_to("git/link-1.0/dags")
    running = rigs(at=folder, rescan_interval=3600 * SECOND).start()
    assert running.store.dags() == {"one"}

    def has_only(dag_id: str) -> bool:
        return running.store.dags() == {dag_id}

    for target, dag_id in ((after, "two"), (after.replace("rev-2", "rev-1"), "one")):
        _replace_link(link, target)
        running.until(partial(has_only, dag_id))


def test_a_linked_file_whose_target_changes_is_read_without_a_rescan(rigs: MakeRunningParser, tmp_path: Path) -> None:
    for revision, dag_id in (("rev-1", "one"), ("rev-2", "two")):
        (tmp_path / revision).mkdir()
        (tmp_path / revision / "a.py").write_text(dag_text(dag_id))
    (tmp_path / "current").symlink_to("rev-1")
    folder = tmp_path / "dags"
    (folder / "a.py").symlink_to("../current/a.py")
    running = rigs(rescan_interval=3600 * SECOND).start()
    _replace_link(tmp_path / "current", "rev-2")
    running.until(lambda: running.store.dags() == {"two"})
    (tmp_path / "rev-2" / "a.py").write_text(dag_text("three"))
    running.until(lambda: running.store.dags() == {"three"})


def test_an_unreadable_python_file_is_an_import_error_with_the_reason(running: RunningParser, tmp_path: Path) -> None:
    running.write("good.py", dag_text("good"))
    (running.folder / "nothing.py").symlink_to(tmp_path / "nowhere.py")
    (running.folder / "circle.py").symlink_to("circle.py")
    os.mkfifo(running.folder / "pipe.py")
    running.write("folder.py/inside.py", dag_text("inside"))
    running.start()
    running.until(lambda: len(running.store.problems) == 4)
    messages = {name: problem["message"] for name, problem in running.store.problems.items()}
    assert messages["nothing.py"] == f"nothing.py is a symbolic link to '{tmp_path / 'nowhere.py'}', which does not exist"
    assert "leads to itself" in messages["circle.py"]
    assert "a FIFO (named pipe), not a Python file" in messages["pipe.py"]
    assert "folder.py is a folder, not a Python file" in messages["folder.py"]
    assert running.store.dags() == {"good", "inside"}
    (tmp_path / "nowhere.py").write_text(dag_text("there"))
    (running.folder / "circle.py").unlink()
    (running.folder / "pipe.py").unlink()
    running.until(lambda: set(running.store.problems) == {"folder.py"})
    assert running.store.dags() == {"good", "inside", "there"}


def test_an_imported_dag_belongs_to_the_file_that_creates_it(running: RunningParser) -> None:
    running.write("maker.py", dag_text("made") + "made = DAG('top')\n")
    running.write("user.py", dag_text("own", head="from maker import made"))
    running.start()
    assert running.store.owner == {"made": "maker.py", "top": "maker.py", "own": "user.py"}
    assert running.store.problems == {}


# --- files that look at the world ---------------------------------------------------------------------------------------


SOON = 200_000


def test_a_file_that_depends_on_data_is_read_again_at_intervals(rigs: MakeRunningParser) -> None:
    running = rigs(dynamic_interval=SOON)
    running.write("names.txt", "one")
    text = dag_text() + "for name in open(__file__[:-4] + 'names.txt').read().split():\n    with DAG(name): pass\n"
    running.write("a.py", text)
    running.start()
    assert running.store.dags() == {"one"}
    running.write("names.txt", "one two")
    running.until(lambda: running.store.dags() == {"one", "two"})
    registration = running.registrations_of("a.py")[-1]
    assert registration["is_dynamic"]


def test_an_unstable_file_does_not_create_a_version_at_each_import(
    rigs: MakeRunningParser, caplog: pytest.LogCaptureFixture
) -> None:
    running = rigs(dynamic_interval=SOON)
    head = "from datetime import datetime"
    running.write("a.py", dag_text(head=head) + "with DAG('now', start_date=datetime.now()):\n    EmptyOperator(task_id='t')\n")
    running.start()
    running.until(lambda: len(running.read) > 6)
    assert len(running.registrations_of("a.py")) == 1
    assert running.service.files["a.py"].unstable
    (said,) = [record.__dict__["values"] for record in caplog.records if "different result" in record.getMessage()]
    assert said["differs"] == "start_date of DAG now"
    # changes are still noticed: a further task creates a further version
    running.write("a.py", dag_text(head=head) + "with DAG('now', start_date=datetime.now()):\n    EmptyOperator(task_id='u')\n")
    running.until_registered("a.py")
    assert len(running.store.hashes["now"]) == 2


def test_new_tasks_of_an_unstable_file_create_a_version(rigs: MakeRunningParser) -> None:
    running = rigs(dynamic_interval=SOON)
    running.write("names.txt", "one")
    text = dag_text(head="from datetime import datetime") + (
        "with DAG('now', start_date=datetime.now()):\n"
        "    for name in open(__file__[:-4] + 'names.txt').read().split():\n        EmptyOperator(task_id=name)\n"
    )
    running.write("a.py", text)
    running.start()
    running.until(lambda: running.service.files["a.py"].unstable)
    running.write("names.txt", "one two")
    assert b"two" in running.until_registered("a.py")["dags"][0][1]


def test_random_task_ids_are_registered_once(rigs: MakeRunningParser) -> None:
    running = rigs(dynamic_interval=SOON)
    running.write("a.py", dag_text(head="import uuid") + "with DAG('r'):\n    EmptyOperator(task_id=f't{uuid.uuid4().hex}')\n")
    running.start()
    running.until(lambda: len(running.read) > 6)
    assert len(running.registrations_of("a.py")) == 1


def test_a_static_file_is_not_read_at_intervals(rigs: MakeRunningParser) -> None:
    running = rigs(dynamic_interval=10_000, rescan_interval=20_000)
    running.write("a.py", dag_text("a"))
    running.start()
    scans = running.service.scans
    running.until(lambda: running.service.scans > scans + 5)
    assert running.read == ["a.py"]


def test_a_file_with_an_external_problem_is_read_again_at_intervals(rigs: MakeRunningParser, tmp_path: Path) -> None:
    running = rigs(dynamic_interval=SOON)
    running.write("a.py", dag_text("a", head=f"import os\nassert os.path.exists({str(tmp_path / 'there')!r}), 'not there'"))
    running.start()
    assert "not there" in running.store.problems["a.py"]["message"]
    (tmp_path / "there").write_text("")
    running.until(lambda: running.store.problems == {} and running.store.dags() == {"a"})


# --- restarts -----------------------------------------------------------------------------------------------------------


def test_a_second_start_reads_only_what_changed(rigs: MakeRunningParser) -> None:
    first = rigs()
    first.write("lib.py", "")
    for name in ("a", "b", "c", "d"):
        first.write(f"{name}.py", dag_text(name, head="import lib" if name == "c" else ""))
    first.write("world.py", dag_text("w", head="import os\nos.getenv('HOME')"))
    first.start()
    first.close()
    first.write("a.py", dag_text("a", tasks=4))
    first.write("lib.py", "X = 1\n")
    (first.folder / "b.py").unlink()
    second = rigs(first.store).start()
    second.until(lambda: second.store.dags() == {"a", "c", "d", "w"} and len(second.store.hashes["a"]) == 2)
    assert second.read.count("world.py") == 2  # one import to see the change, one to confirm it
    assert set(second.read) == {"a.py", "c.py", "world.py"}
    assert all(len(versions) == 1 for dag_id, versions in second.store.hashes.items() if dag_id != "a")


def test_a_changed_default_makes_a_new_version(rigs: MakeRunningParser) -> None:
    from tradewind.model.definition import DefinitionDefaults

    first = rigs()
    first.write("a.py", dag_text("a"))
    first.start()
    first.close()
    second = rigs(first.store, defaults=DefinitionDefaults(retries=3)).start()
    second.until(lambda: len(second.store.hashes["a"]) == 2)


def test_a_scheduler_that_lost_its_dags_receives_them_again(running: RunningParser) -> None:
    running.write("a.py", dag_text("a"))
    running.start()
    running.store.files.clear()
    running.store.owner.clear()
    running.service.on_scheduler_connected()
    running.until(lambda: running.store.dags() == {"a"})


def test_many_files_are_registered_in_few_commits(rigs: MakeRunningParser) -> None:
    running = rigs(processes=4)
    for number in range(120):
        running.write(f"f{number}.py", dag_text(f"d{number}"))
    running.start()
    assert len(running.store.dags()) == 120
    assert running.store.commands.count("register_files") <= 30


def test_an_empty_folder_has_no_dags(rigs: MakeRunningParser) -> None:
    assert rigs(Store()).start().store.dags() == set()


def test_the_zygote_ends_while_there_is_nothing_to_read(running: RunningParser, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "IDLE_AFTER", SECOND // 20)
    running.write("a.py", dag_text("a"))
    running.start()
    running.until(lambda: running.children.is_zygote_stopped)
    running.write("b.py", dag_text("b"))
    assert running.until_registered("b.py")["problem"] is None
    running.until(lambda: running.children.is_zygote_stopped)
    running.write("b.py", BROKEN)
    running.until(lambda: "b.py" in running.store.problems)
    assert not running.children.is_zygote_stopped
    running.write("b.py", dag_text("b", tasks=3))  # before, the file was read at intervals; now no file is
    running.until(lambda: running.children.is_zygote_stopped)
    assert running.children.zygote_deaths == 0


def test_the_scheduler_knows_how_many_files_are_not_read_yet(running: RunningParser) -> None:
    slow = "import time, os\nwhile not os.path.exists(os.path.join(os.path.dirname(__file__), 'go')): time.sleep(0.01)"
    running.write("a.py", dag_text("a"))
    running.write("b.py", dag_text("b", head=slow))
    running.service.on_scheduler_connected()
    running.until(lambda: running.store.dags() == {"a"} and running.store.unread[-1:] == [(2, 1)])
    running.write("go", "")
    running.until(lambda: running.store.dags() == {"a", "b"} and running.store.unread[-1] == (2, 0))

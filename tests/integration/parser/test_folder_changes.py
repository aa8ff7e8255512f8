"""Changes in the DAG folder reach the scheduler, through the real file watch and the real zygote."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.integration.parser.rig import Rig, Store, dag_text
from tradewind.model.moments import SECOND
from tradewind.parser import service

MakeRig = Callable[..., Rig]

BROKEN = "# a dag of tradewind\nx = (\n"


@pytest.mark.spec("S231", "S234")
def test_a_start_reads_only_files_that_may_contain_dags(rig: Rig) -> None:
    rig.write("a.py", dag_text("a"))
    rig.write("deep/er/b.py", dag_text("b1", "b2"))
    rig.write("plain.py", "print('no word of it')\n")
    rig.write(".hidden/c.py", dag_text("hidden"))
    rig.write("__pycache__/d.py", dag_text("cached"))
    rig.write("ignored/e.py", dag_text("ignored"))
    rig.write(".airflowignore", "ignored/\n")
    rig.start()
    assert rig.store.dags() == {"a", "b1", "b2"}
    assert sorted(rig.read) == ["a.py", "deep/er/b.py"]


def test_an_edit_is_read_within_a_second_without_a_rescan(rig: Rig) -> None:
    rig.write("a.py", dag_text("a"))
    rig.start()
    rig.write("a.py", dag_text("a", tasks=5))
    registration = rig.until_registered("a.py")
    assert [dag[0] for dag in registration["dags"]] == ["a"]
    assert len(rig.store.hashes["a"]) == 2
    assert rig.read == ["a.py", "a.py"]


def test_a_changed_comment_creates_no_new_version(rig: Rig) -> None:
    rig.write("a.py", dag_text("a"))
    rig.start()
    rig.replace("a.py", dag_text("a") + "# a comment\n")
    rig.until_registered("a.py")
    assert len(rig.store.hashes["a"]) == 1


def test_a_touched_file_is_not_read_again(rig: Rig) -> None:
    path = rig.write("a.py", dag_text("a"))
    rig.start()
    scans = rig.service.scans
    os.utime(path)
    rig.until(lambda: rig.service.scans > scans and rig.service.idle())
    assert rig.read == ["a.py"]


@pytest.mark.spec("S465")
def test_new_files_in_new_folders_are_found(rig: Rig) -> None:
    rig.start()
    rig.write("x/y/z/a.py", dag_text("a"))
    rig.until(lambda: rig.store.dags() == {"a"})
    rig.write("x/y/z/b.py", dag_text("b"))
    rig.until(lambda: rig.store.dags() == {"a", "b"})


@pytest.mark.spec("S229")
def test_a_deleted_file_is_removed_and_can_come_back(rig: Rig) -> None:
    path = rig.write("a.py", dag_text("a"))
    rig.write("b.py", dag_text("b"))
    rig.start()
    path.unlink()
    rig.until(lambda: rig.store.dags() == {"b"})
    rig.write("a.py", dag_text("a"))
    rig.until(lambda: rig.store.dags() == {"a", "b"})
    assert len(rig.store.hashes["a"]) == 1


def test_the_files_of_a_deleted_folder_are_removed(rig: Rig) -> None:
    rig.write("x/a.py", dag_text("a"))
    rig.write("x/y/b.py", dag_text("b"))
    rig.start()
    shutil.rmtree(rig.folder / "x")
    rig.until(lambda: rig.store.dags() == set() and rig.store.files == {})


def test_a_folder_that_cannot_be_listed_removes_nothing(rig: Rig) -> None:
    rig.write("a.py", dag_text("a"))
    rig.start()
    away = rig.folder.with_name("away")
    rig.folder.rename(away)
    scans = rig.service.scans
    rig.until(lambda: rig.service.scans >= scans + 1)
    rig.service.scan_in(0)
    rig.until(lambda: rig.service.scans >= scans + 2)
    assert rig.store.dags() == {"a"}
    away.rename(rig.folder)
    rig.service.scan_in(0)
    rig.write("b.py", dag_text("b"))
    rig.until(lambda: rig.store.dags() == {"a", "b"})


def test_a_renamed_file_keeps_its_dag(rig: Rig) -> None:
    rig.write("old.py", dag_text("a"))
    rig.start()
    os.rename(rig.folder / "old.py", rig.folder / "new.py")
    rig.until(lambda: rig.store.owner == {"a": "new.py"} and rig.store.problems == {})


def test_the_first_file_keeps_a_dag_id_until_it_is_deleted(rig: Rig) -> None:
    first = rig.write("first.py", dag_text("same"))
    rig.start()
    rig.write("second.py", dag_text("same") + "# another\n")
    rig.until(lambda: "second.py" in rig.store.problems)
    assert rig.store.owner == {"same": "first.py"}
    first.unlink()
    rig.until(lambda: rig.store.owner == {"same": "second.py"} and rig.store.problems == {})


def test_a_changed_dependency_counts_as_a_change(rig: Rig) -> None:
    rig.write("shared/__init__.py", "")
    rig.write("shared/names.py", "NAME = 'one'\n")
    rig.write("shared/deeper.py", "from .names import NAME\n")
    rig.write("a.py", dag_text(head="from shared.deeper import NAME") + "with DAG(NAME): pass\n")
    rig.write("other.py", dag_text("other"))
    rig.start()
    assert rig.store.dags() == {"one", "other"}
    rig.write("shared/names.py", "NAME = 'two'\n")  # same second, same size: a compiled file would hide it
    rig.until(lambda: rig.store.dags() == {"two", "other"})
    assert rig.read.count("other.py") == 1


def test_a_dependency_without_an_import_statement_is_found(rig: Rig) -> None:
    rig.write("hidden_helper.py", "NAME = 'one'\n")
    text = "import importlib\nfrom tradewind import DAG\nd = DAG(importlib.import_module('hidden' + '_helper').NAME)\n"
    rig.write("a.py", text)
    rig.start()
    rig.write("hidden_helper.py", "NAME = 'two'\n")
    rig.until(lambda: rig.store.dags() == {"two"})


def test_a_file_is_read_again_when_its_missing_module_appears(rig: Rig) -> None:
    rig.write("a.py", dag_text("a", head="import late"))
    rig.start()
    assert "No module named 'late'" in rig.store.problems["a.py"]["message"]
    rig.write("late.py", "")
    rig.until(lambda: rig.store.dags() == {"a"} and rig.store.problems == {})


def test_a_module_in_an_ignored_folder_is_a_dependency_too(rig: Rig) -> None:
    rig.write(".tradewindignore", "lib\n")
    rig.write("lib/names.py", "NAME = 'one'\n")
    rig.write("a.py", dag_text(head="from lib.names import NAME") + "with DAG(NAME): pass\n")
    rig.start()
    rig.write("lib/names.py", "NAME = 'two'\n")
    rig.until(lambda: rig.store.dags() == {"two"})


def test_a_changed_ignore_file_takes_effect(rig: Rig) -> None:
    rig.write("a.py", dag_text("a"))
    rig.write("b.py", dag_text("b"))
    rig.start()
    rig.write(".airflowignore", "b.py\n")
    rig.until(lambda: rig.store.dags() == {"a"})


def test_a_broken_edit_keeps_the_last_good_version(rig: Rig) -> None:
    rig.write("a.py", dag_text("a"))
    rig.start()
    rig.write("a.py", BROKEN)
    registration = rig.until_registered("a.py")
    assert registration["dags"] == []
    assert registration["problem"]["line"] == 2
    assert rig.store.dags() == {"a"}
    rig.write("a.py", dag_text("a"))
    rig.until(lambda: rig.store.problems == {})


@pytest.mark.parametrize("share", [0.0, 0.2, 0.45, 0.55, 0.8, 0.97])
def test_a_partly_written_file_removes_no_dag(rig: Rig, share: float) -> None:
    text = "# a dag of tradewind\n" + dag_text("a", "b", "c")
    path = rig.write("f.py", text)
    rig.start()
    longer = text + dag_text("d")
    with open(path, "w") as file:
        file.write(longer[: int(len(longer) * share)])
        file.flush()
        scans = rig.service.scans
        rig.service.on_change()
        rig.until(lambda: rig.service.scans > scans and not rig.children.busy() and not len(rig.service.outbox))
        assert rig.store.dags() >= {"a", "b", "c"}
        file.write(longer[int(len(longer) * share) :])
    rig.until(lambda: rig.store.dags() == {"a", "b", "c", "d"} and rig.store.problems == {})
    assert all({dag[0] for dag in last["dags"]} >= {"a", "b", "c"} or last["problem"] for last in rig.registrations_of("f.py"))


def test_a_dag_removed_from_a_file_is_removed_when_the_file_is_quiet(rig: Rig) -> None:
    rig.write("f.py", dag_text("a", "b"))
    rig.start()
    rig.write("f.py", dag_text("a"))
    rig.until(lambda: rig.store.dags() == {"a"})


def test_the_dags_of_an_emptied_file_are_removed(rig: Rig) -> None:
    rig.write("f.py", dag_text("a"))
    rig.start()
    rig.write("f.py", "")
    rig.until(lambda: rig.store.dags() == set())
    assert rig.registrations_of("f.py")[-1]["dags"] == []


def test_a_file_that_changes_while_it_is_read_is_read_again(rig: Rig) -> None:
    rig.write("helper.py", "N = 1\n")
    head = (
        "import os, helper\npath = os.path.join(os.path.dirname(__file__), 'helper.py')\n"
        "if helper.N == 1: open(path, 'w').write('N = 23')\n"
    )
    rig.write("a.py", dag_text(head=head) + "with DAG(f'n{helper.N}'): pass\n")
    rig.start()
    rig.until(lambda: rig.store.dags() == {"n23"})
    assert [dag[0] for registration in rig.store.registrations for dag in registration["dags"]] == ["n23"]


def test_a_file_that_changes_its_folder_at_each_import_is_accepted(rig: Rig) -> None:
    rig.write("helper.py", "")
    head = "import helper, time\nopen(helper.__file__, 'w').write(f'# {time.time_ns()}')"
    rig.write("a.py", dag_text("a", head=head))
    rig.start()
    rig.until(lambda: rig.store.dags() == {"a"})
    assert len(rig.read) <= 10


def test_symbolic_links_are_followed_once(rig: Rig, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "b.py").write_text(dag_text("b"))
    rig.write("x/a.py", dag_text("a"))
    (rig.folder / "link").symlink_to(outside)
    (rig.folder / "x" / "loop").symlink_to(rig.folder)
    (rig.folder / "again").symlink_to(rig.folder / "x")
    (rig.folder / "nothing.py").symlink_to(tmp_path / "nowhere.py")
    rig.start()
    assert rig.store.owner == {"a": "x/a.py", "b": "link/b.py"}
    (outside / "c.py").write_text(dag_text("c"))
    rig.until(lambda: rig.store.dags() == {"a", "b", "c"})


def test_a_volume_with_a_replaced_link_is_read_again(rig: Rig) -> None:
    rig.write("..v1/a.py", dag_text("one"))
    rig.write("..v2/a.py", dag_text("two"))
    (rig.folder / "..data").symlink_to("..v1")
    (rig.folder / "a.py").symlink_to("..data/a.py")
    rig.start()
    assert rig.store.dags() == {"one"}
    (rig.folder / "..data_tmp").symlink_to("..v2")
    os.rename(rig.folder / "..data_tmp", rig.folder / "..data")
    rig.until(lambda: rig.store.dags() == {"two"})


def _replace_link(link: Path, target: Path | str) -> None:
    """Replace a link like git-sync: create a new link, then rename it to the old name."""
    new = link.with_name(f"{link.name}.tmp.{os.getpid()}")
    new.symlink_to(target)
    os.rename(new, link)


@pytest.mark.parametrize("where", ["the folder", "a parent", "a link in a link"])
def test_a_replaced_link_to_the_dag_folder_is_noticed_without_a_rescan(rigs: MakeRig, tmp_path: Path, where: str) -> None:
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
    rig = rigs(at=folder, rescan_interval=3600 * SECOND).start()
    assert rig.store.dags() == {"one"}
    for target, dag_id in ((after, "two"), (after.replace("rev-2", "rev-1"), "one")):
        _replace_link(link, target)
        rig.until(lambda dag_id=dag_id: rig.store.dags() == {dag_id})  # type: ignore[misc]


def test_a_linked_file_whose_target_changes_is_read_without_a_rescan(rigs: MakeRig, tmp_path: Path) -> None:
    for revision, dag_id in (("rev-1", "one"), ("rev-2", "two")):
        (tmp_path / revision).mkdir()
        (tmp_path / revision / "a.py").write_text(dag_text(dag_id))
    (tmp_path / "current").symlink_to("rev-1")
    folder = tmp_path / "dags"
    (folder / "a.py").symlink_to("../current/a.py")
    rig = rigs(rescan_interval=3600 * SECOND).start()
    _replace_link(tmp_path / "current", "rev-2")
    rig.until(lambda: rig.store.dags() == {"two"})
    (tmp_path / "rev-2" / "a.py").write_text(dag_text("three"))
    rig.until(lambda: rig.store.dags() == {"three"})


def test_an_unreadable_python_file_is_an_import_error_with_the_reason(rig: Rig, tmp_path: Path) -> None:
    rig.write("good.py", dag_text("good"))
    (rig.folder / "nothing.py").symlink_to(tmp_path / "nowhere.py")
    (rig.folder / "circle.py").symlink_to("circle.py")
    os.mkfifo(rig.folder / "pipe.py")
    rig.write("folder.py/inside.py", dag_text("inside"))
    rig.start()
    rig.until(lambda: len(rig.store.problems) == 4)
    messages = {name: problem["message"] for name, problem in rig.store.problems.items()}
    assert messages["nothing.py"] == f"nothing.py is a symbolic link to '{tmp_path / 'nowhere.py'}', which does not exist"
    assert "leads to itself" in messages["circle.py"]
    assert "a FIFO (named pipe), not a Python file" in messages["pipe.py"]
    assert "folder.py is a folder, not a Python file" in messages["folder.py"]
    assert rig.store.dags() == {"good", "inside"}
    (tmp_path / "nowhere.py").write_text(dag_text("there"))
    (rig.folder / "circle.py").unlink()
    (rig.folder / "pipe.py").unlink()
    rig.until(lambda: set(rig.store.problems) == {"folder.py"})
    assert rig.store.dags() == {"good", "inside", "there"}


def test_an_imported_dag_belongs_to_the_file_that_creates_it(rig: Rig) -> None:
    rig.write("maker.py", dag_text("made") + "made = DAG('top')\n")
    rig.write("user.py", dag_text("own", head="from maker import made"))
    rig.start()
    assert rig.store.owner == {"made": "maker.py", "top": "maker.py", "own": "user.py"}
    assert rig.store.problems == {}


# --- files that look at the world ---------------------------------------------------------------------------------------


SOON = 200_000


def test_a_file_that_depends_on_data_is_read_again_at_intervals(rigs: MakeRig) -> None:
    rig = rigs(dynamic_interval=SOON)
    rig.write("names.txt", "one")
    text = dag_text() + "for name in open(__file__[:-4] + 'names.txt').read().split():\n    with DAG(name): pass\n"
    rig.write("a.py", text)
    rig.start()
    assert rig.store.dags() == {"one"}
    rig.write("names.txt", "one two")
    rig.until(lambda: rig.store.dags() == {"one", "two"})
    registration = rig.registrations_of("a.py")[-1]
    assert registration["is_dynamic"]


def test_an_unstable_file_does_not_create_a_version_at_each_import(rigs: MakeRig) -> None:
    rig = rigs(dynamic_interval=SOON)
    head = "from datetime import datetime"
    rig.write("a.py", dag_text(head=head) + "with DAG('now', start_date=datetime.now()):\n    EmptyOperator(task_id='t')\n")
    rig.start()
    rig.until(lambda: len(rig.read) > 6)
    assert len(rig.registrations_of("a.py")) == 1
    assert rig.service.files["a.py"].unstable
    # changes are still noticed: a further task creates a further version
    rig.write("a.py", dag_text(head=head) + "with DAG('now', start_date=datetime.now()):\n    EmptyOperator(task_id='u')\n")
    rig.until_registered("a.py")
    assert len(rig.store.hashes["now"]) == 2


def test_new_tasks_of_an_unstable_file_create_a_version(rigs: MakeRig) -> None:
    rig = rigs(dynamic_interval=SOON)
    rig.write("names.txt", "one")
    text = dag_text(head="from datetime import datetime") + (
        "with DAG('now', start_date=datetime.now()):\n"
        "    for name in open(__file__[:-4] + 'names.txt').read().split():\n        EmptyOperator(task_id=name)\n"
    )
    rig.write("a.py", text)
    rig.start()
    rig.until(lambda: rig.service.files["a.py"].unstable)
    rig.write("names.txt", "one two")
    assert b"two" in rig.until_registered("a.py")["dags"][0][1]


def test_random_task_ids_are_registered_once(rigs: MakeRig) -> None:
    rig = rigs(dynamic_interval=SOON)
    rig.write("a.py", dag_text(head="import uuid") + "with DAG('r'):\n    EmptyOperator(task_id=f't{uuid.uuid4().hex}')\n")
    rig.start()
    rig.until(lambda: len(rig.read) > 6)
    assert len(rig.registrations_of("a.py")) == 1


def test_a_static_file_is_not_read_at_intervals(rigs: MakeRig) -> None:
    rig = rigs(dynamic_interval=10_000, rescan_interval=20_000)
    rig.write("a.py", dag_text("a"))
    rig.start()
    scans = rig.service.scans
    rig.until(lambda: rig.service.scans > scans + 5)
    assert rig.read == ["a.py"]


def test_a_file_with_an_external_problem_is_read_again_at_intervals(rigs: MakeRig, tmp_path: Path) -> None:
    rig = rigs(dynamic_interval=SOON)
    rig.write("a.py", dag_text("a", head=f"import os\nassert os.path.exists({str(tmp_path / 'there')!r}), 'not there'"))
    rig.start()
    assert "not there" in rig.store.problems["a.py"]["message"]
    (tmp_path / "there").write_text("")
    rig.until(lambda: rig.store.problems == {} and rig.store.dags() == {"a"})


# --- restarts -----------------------------------------------------------------------------------------------------------


def test_a_second_start_reads_only_what_changed(rigs: MakeRig) -> None:
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


def test_a_changed_default_makes_a_new_version(rigs: MakeRig) -> None:
    from tradewind.model.definition import DefinitionDefaults

    first = rigs()
    first.write("a.py", dag_text("a"))
    first.start()
    first.close()
    second = rigs(first.store, defaults=DefinitionDefaults(retries=3)).start()
    second.until(lambda: len(second.store.hashes["a"]) == 2)


def test_a_scheduler_that_lost_its_dags_receives_them_again(rig: Rig) -> None:
    rig.write("a.py", dag_text("a"))
    rig.start()
    rig.store.files.clear()
    rig.store.owner.clear()
    rig.service.on_scheduler_connected()
    rig.until(lambda: rig.store.dags() == {"a"})


def test_many_files_are_registered_in_few_commits(rigs: MakeRig) -> None:
    rig = rigs(processes=4)
    for number in range(120):
        rig.write(f"f{number}.py", dag_text(f"d{number}"))
    rig.start()
    assert len(rig.store.dags()) == 120
    assert rig.store.commands.count("register_files") <= 30


def test_an_empty_folder_has_no_dags(rigs: MakeRig) -> None:
    assert rigs(Store()).start().store.dags() == set()


def test_the_zygote_ends_while_there_is_nothing_to_read(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "IDLE_AFTER", SECOND // 20)
    rig.write("a.py", dag_text("a"))
    rig.start()
    rig.until(lambda: rig.children.is_zygote_stopped)
    rig.write("b.py", dag_text("b"))
    assert rig.until_registered("b.py")["problem"] is None
    rig.until(lambda: rig.children.is_zygote_stopped)
    rig.write("b.py", BROKEN)
    rig.until(lambda: "b.py" in rig.store.problems)
    assert not rig.children.is_zygote_stopped
    rig.write("b.py", dag_text("b", tasks=3))  # before, the file was read at intervals; now no file is
    rig.until(lambda: rig.children.is_zygote_stopped)
    assert rig.children.zygote_deaths == 0

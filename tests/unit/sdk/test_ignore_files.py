from __future__ import annotations

import pytest

from tradewind.sdk.ignore_files import ignored, read_rules


@pytest.mark.parametrize(
    ("pattern", "path", "is_folder", "expected"),
    [
        ("a.py", "a.py", False, True),
        ("a.py", "x/y/a.py", False, True),
        ("/a.py", "a.py", False, True),
        ("/a.py", "x/a.py", False, False),
        ("x/a.py", "x/a.py", False, True),
        ("x/a.py", "y/x/a.py", False, False),
        ("*.py", "x/b.py", False, True),
        ("x/*.py", "x/y/b.py", False, False),
        ("x/**/b.py", "x/b.py", False, True),
        ("x/**/b.py", "x/y/z/b.py", False, True),
        ("**/b.py", "x/y/b.py", False, True),
        ("x/**", "x/y/b.py", False, True),
        ("x/**", "x", True, False),
        ("lib/", "lib", True, True),
        ("lib/", "lib", False, False),
        ("?.py", "a.py", False, True),
        ("?.py", "ab.py", False, False),
        ("[ab].py", "b.py", False, True),
        ("[!ab].py", "b.py", False, False),
        ("[!ab].py", "c.py", False, True),
        ("a.b", "axb", False, False),
        ("# a.py", "a.py", False, False),
        ("\\#a.py", "#a.py", False, True),
        ("", "a.py", False, False),
    ],
)
def test_single_patterns(pattern: str, path: str, is_folder: bool, expected: bool) -> None:
    rules, wrong = read_rules(pattern, "")
    assert wrong == []
    assert ignored(path, is_folder, rules) is expected


@pytest.mark.parametrize(
    ("lines", "path", "expected"),
    [
        (r".*_test\.py", "x/a_test.py", True),
        (r".*_test\.py", "x/a_tests.py", False),
        (r"tenant_[\d]", "tenant_1/dag.py", True),
        ("project_a\n^lib/", "my_project_a_dag.py", True),
        ("project_a\n^lib/", "lib/a.py", True),
        ("project_a\n^lib/", "x/lib/a.py", False),
        ("(old|new)  # both", "b_old.py", True),
    ],
)
def test_lines_that_look_like_regular_expressions_are_read_so(lines: str, path: str, expected: bool) -> None:
    rules, wrong = read_rules(lines, "")
    assert wrong == []
    assert ignored(path, False, rules) is expected


def test_the_setting_decides_about_the_syntax() -> None:
    assert not ignored("project_a_dag.py", False, read_rules("project_a", "")[0])
    assert ignored("project_a_dag.py", False, read_rules("project_a", "", "regexp")[0])
    assert not ignored("a_test.py", False, read_rules(".*_test.py", "", "glob")[0])
    assert read_rules("(a\nb", "", "regexp")[1] == ["(a"]


def test_a_regular_expression_applies_only_to_its_folder() -> None:
    rules, _ = read_rules("^a\\d", "x.y")
    assert ignored("x.y/a1.py", False, rules)
    assert not ignored("a1.py", False, rules)
    assert not ignored("xxy/a1.py", False, rules)


def test_the_last_matching_pattern_decides() -> None:
    rules, _ = read_rules("*.py\n!keep.py\n/x/keep.py\n", "")
    assert ignored("a.py", False, rules)
    assert not ignored("keep.py", False, rules)
    assert ignored("x/keep.py", False, rules)


def test_an_ignore_file_applies_only_to_its_folder() -> None:
    above, _ = read_rules("*_old.py", "")
    below, _ = read_rules("!a_old.py\n/b.py", "x.y/z")
    rules = above + below
    assert not ignored("x.y/z/a_old.py", False, rules)
    assert ignored("a_old.py", False, rules)
    assert ignored("x.y/z/b.py", False, rules)
    assert not ignored("xxy/z/b.py", False, rules)


def test_an_invalid_line_is_reported() -> None:
    rules, wrong = read_rules("[b-a].py\ngood.py", "")
    assert wrong == ["[b-a].py"]
    assert ignored("good.py", False, rules)

from __future__ import annotations

import pytest

from tradewind.parser.ignore import ignored, read_rules


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

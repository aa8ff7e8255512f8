"""Recognizes DAG files that are written for Python 2: most of the first years of Airflow are."""

from __future__ import annotations

import re

_SENTENCE = "The file is written for Python 2, like many files for Airflow 1; convert it to Python 3, for example with 2to3"

_SYNTAX = (
    "Missing parentheses in call to",
    "multiple exception types must be parenthesized",
    "leading zeros in decimal integer literals",
)
"""How Python 3 begins its messages about the syntax of Python 2."""

_BUILTINS = frozenset(["basestring", "cmp", "execfile", "long", "raw_input", "reduce", "reload", "unichr", "unicode", "xrange"])
_MODULES = frozenset(
    [
        "BaseHTTPServer",
        "ConfigParser",
        "HTMLParser",
        "SimpleHTTPServer",
        "SocketServer",
        "StringIO",
        "Tkinter",
        "__builtin__",
        "cPickle",
        "cStringIO",
        "cookielib",
        "copy_reg",
        "htmlentitydefs",
        "httplib",
        "md5",
        "urllib2",
        "urlparse",
        "xmlrpclib",
    ]
)
"""Modules that Python 3 has under other names, or not at all."""

_METHODS = re.compile(r"'dict' object has no attribute '(?:has_key|iteritems|iterkeys|itervalues)'")


def advice(error: BaseException) -> str:
    """A sentence that says that the file is written for Python 2. Empty: the error does not show it."""
    if isinstance(error, SyntaxError) and str(error.msg).startswith(_SYNTAX):
        return _SENTENCE
    if isinstance(error, NameError) and error.name in _BUILTINS:
        return _SENTENCE
    if isinstance(error, ModuleNotFoundError) and (error.name or "") in _MODULES:
        return _SENTENCE
    if isinstance(error, AttributeError) and _METHODS.search(str(error)):
        return _SENTENCE
    return ""

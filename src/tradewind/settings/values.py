"""Converts written values to checked values of the right type.

A value is a text (from the environment) or a TOML value; a text has the same meaning in both. Each reader returns the value or
raises `InvalidValue` with the end of a sentence: "… must be a whole number of tasks between 0 and 100000".
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Mapping

from tradewind.model.errors import did_you_mean
from tradewind.model.executor_names import entries
from tradewind.settings.frozen import Frozen
from tradewind.settings.options import Option

Value = int | float | bool | str | None

_TRUE = frozenset(("true", "t", "yes", "y", "on", "1"))
_FALSE = frozenset(("false", "f", "no", "n", "off", "0"))
_VARIABLE = r"\$(?:\{(\w+)\}|(\w+))"


class InvalidValue(Exception):
    """The value is not valid. The text is the end of a sentence that starts with the place and name of the setting."""


class Context(Frozen):
    """What a value can refer to: `$TRADEWIND_HOME`, `~` and other environment variables."""

    home: str
    env: Mapping[str, str]


def read(option: Option, raw: object, context: Context) -> Value:
    """Convert `raw` to the typed value.

    Raises:
        InvalidValue: `raw` is not a value of this option; the text describes valid values.
    """
    if isinstance(raw, str) and option.nullable and raw.strip().lower() in ("none", ""):
        return None
    if isinstance(raw, str):
        raw = raw.strip()
        if raw == "":
            raise InvalidValue(f"is empty; it must be {wanted(option)}")
    return _READERS[option.kind](option, raw, context)


def wanted(option: Option) -> str:
    """The valid values of this option, in words."""
    if option.kind == "bool":
        return "true or false"
    if option.kind == "choice":
        return "one of " + ", ".join(option.choices)
    if option.kind == "executors":
        return "one of " + ", ".join(option.choices) + ", or several of them with commas between"
    if option.kind == "path":
        return "a path"
    if option.kind == "timezone":
        return "an IANA time zone such as UTC or Europe/Berlin, or system"
    if option.kind == "str":
        return "a text"
    if option.kind == "by_folder":
        if option.choices:
            return f"folder=word, folder=word …, each word one of {', '.join(option.choices)}"
        return f"folder=number, folder=number …, each number between {text(option.low)} and {text(option.high)}, or none"
    noun = "a whole number" if option.kind == "int" else "a number"
    unit = f" of {option.unit}" if option.unit not in ("", "times", "TCP port") else ""
    zero = " 0 or" if option.zero_ok else ""
    bounds = f"{zero} between {text(option.low)} and {text(option.high)}"
    return f"{noun}{unit}{bounds}" + (", or none" if option.nullable else "")


def text(value: Value) -> str:
    """A value as text: `true`, `none`, `0.5`, `300`."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def _bool(option: Option, raw: object, context: Context) -> bool:
    if isinstance(raw, bool):
        return raw
    if isinstance(raw, str) and raw.lower() in _TRUE:
        return True
    if isinstance(raw, str) and raw.lower() in _FALSE:
        return False
    raise InvalidValue(f"must be {wanted(option)}")


def _int(option: Option, raw: object, context: Context) -> int:
    number: int | None = None
    if isinstance(raw, int) and not isinstance(raw, bool):
        number = raw
    elif isinstance(raw, str):
        try:
            number = int(raw)
        except ValueError:
            number = None
    if number is None:
        raise InvalidValue(f"must be {wanted(option)}")
    _check_range(option, number)
    return number


def _float(option: Option, raw: object, context: Context) -> float:
    number: float | None = None
    if isinstance(raw, (int, float, str)) and not isinstance(raw, bool):
        try:
            number = float(raw)
        except (ValueError, OverflowError):
            number = None
    if number is None or not math.isfinite(number):
        raise InvalidValue(f"must be {wanted(option)}")
    _check_range(option, number)
    return number


def _check_range(option: Option, number: float) -> None:
    if number == 0 and option.zero_ok:
        return
    if (option.low is not None and number < option.low) or (option.high is not None and number > option.high):
        raise InvalidValue(f"must be {wanted(option)}")


def _str(option: Option, raw: object, context: Context) -> str:
    if not isinstance(raw, str):
        raise InvalidValue(f"must be {wanted(option)}, in quotes")
    return raw


def _choice(option: Option, raw: object, context: Context) -> str:
    if isinstance(raw, str):
        for choice in option.choices:
            if choice.lower() == raw.lower():
                return choice
    raise InvalidValue(f"must be {wanted(option)}.{did_you_mean(str(raw), option.choices)}")


def _executors(option: Option, raw: object, context: Context) -> str:
    """Names of executors in a normal form: `LocalExecutor,alias:SequentialExecutor`. An import path becomes its class name."""
    if not isinstance(raw, str) or not raw.strip(", "):
        raise InvalidValue(f"must be {wanted(option)}")
    if ";" in raw or "=" in raw:
        raise InvalidValue(f"has executors of teams, which are not supported yet; it must be {wanted(option)}")
    known = {choice.lower(): choice for choice in option.choices}
    found: dict[str, str] = {}
    for written, alias in entries(raw):
        name = known.get(written.lower())
        if name is None:
            raise InvalidValue(f"must be {wanted(option)}.{did_you_mean(written, option.choices)}")
        if name in found or any(alias and alias == one.partition(":")[0] for one in found.values()):
            raise InvalidValue(f"names {alias or name} twice; name each executor once")
        found[name] = f"{alias}:{name}" if alias else name
    return ",".join(found.values())


def _by_folder(option: Option, raw: object, context: Context) -> str:
    """`folder=word, …` in a normal form: sorted by folder, without slashes before and after the folders."""
    if not isinstance(raw, str):
        raise InvalidValue(f"must be {wanted(option)}")
    found: dict[str, str] = {}
    for part in filter(None, (part.strip() for part in raw.split(","))):
        folder, equals, word = (piece.strip() for piece in part.partition("="))
        folder = folder.strip("/").removeprefix("./")
        if not equals or not folder or ".." in folder.split("/"):
            raise InvalidValue(f"must be {wanted(option)}; {part!r} is not a folder inside the DAG folder with a value")
        found[folder] = _word_of_folder(option, word, context)
    return ", ".join(f"{folder}={word}" for folder, word in sorted(found.items()))


def _word_of_folder(option: Option, word: str, context: Context) -> str:
    """The value of a folder: one of the choices; if the option has no choices, an integer or `none`."""
    if option.choices:
        return _choice(option, word, context)
    return "none" if word.lower() == "none" else str(_int(option, word, context))


def _path(option: Option, raw: object, context: Context) -> str:
    """An absolute path: `~` and `$NAME` are replaced once; a relative path starts at the home folder."""
    if not isinstance(raw, str) or "\0" in raw:
        raise InvalidValue(f"must be {wanted(option)}")

    def replace(found: re.Match[str]) -> str:
        name = found.group(1) or found.group(2)
        value = context.home if name == "TRADEWIND_HOME" else context.env.get(name)
        if value is None:
            raise InvalidValue(f"refers to the environment variable {name}, which is not set")
        return value

    return os.path.normpath(os.path.join(context.home, expand_user(re.sub(_VARIABLE, replace, raw), context.env)))


def expand_user(path: str, env: Mapping[str, str]) -> str:
    """Expand `~` and `~/…` with HOME in `env`, if it is set; other forms with the user database."""
    if (path == "~" or path.startswith("~/")) and env.get("HOME"):
        return env["HOME"] + path[1:]
    return os.path.expanduser(path)


def _timezone(option: Option, raw: object, context: Context) -> str:
    if not isinstance(raw, str):
        raise InvalidValue(f"must be {wanted(option)}")
    if raw.upper() == "UTC":
        return "UTC"
    name = _system_timezone() if raw.lower() == "system" else raw

    import zoneinfo  # lazy import: most installations use UTC, which needs no time zone database

    try:
        return zoneinfo.ZoneInfo(name).key
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        raise InvalidValue(f"must be {wanted(option)}.{did_you_mean(name, zoneinfo.available_timezones())}") from None


def _system_timezone(link: str = "/etc/localtime") -> str:
    """The name of this machine's time zone, from the target of /etc/localtime; UTC if there is no such file."""
    if not os.path.exists(link):
        return "UTC"
    _, found, name = os.path.realpath(link).partition("/zoneinfo/")
    if not found:
        raise InvalidValue(f"is `system`, but {link} does not have the name of the zone; write the name instead")
    return name.removeprefix("posix/").removeprefix("right/")


_READERS: dict[str, Callable[[Option, object, Context], Value]] = {
    "bool": _bool,
    "int": _int,
    "float": _float,
    "duration": _float,
    "str": _str,
    "choice": _choice,
    "path": _path,
    "timezone": _timezone,
    "by_folder": _by_folder,
    "executors": _executors,
}

"""Names of time zone objects of any library."""

from __future__ import annotations

from datetime import tzinfo

from tradewind.model.errors import DefinitionError


def zone_name(zone: tzinfo | None) -> str | None:
    """Return the name of a time zone (`Europe/Paris`, `UTC`, `+02:00`); None for no zone.

    Understands zoneinfo, pendulum, pytz, dateutil and `datetime.timezone`.
    """
    if zone is None:
        return None
    for attribute in ("key", "zone", "name"):
        found = getattr(zone, attribute, None)
        if isinstance(found, str) and found:
            return found
    offset = zone.utcoffset(None)
    if offset is None:
        filename = getattr(zone, "_filename", None)
        if isinstance(filename, str) and "zoneinfo/" in filename:
            return filename.split("zoneinfo/", 1)[1]
        raise DefinitionError(f"the time zone {zone!r} has no name; use zoneinfo.ZoneInfo or pendulum")
    minutes = round(offset.total_seconds() / 60)
    if minutes == 0:
        return "UTC"
    return f"{'-' if minutes < 0 else '+'}{abs(minutes) // 60:02d}:{abs(minutes) % 60:02d}"

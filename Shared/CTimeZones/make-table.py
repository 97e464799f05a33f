#!/usr/bin/env python3
"""Creates TimeZones.bin: the time zone of each cell of the map, and the UTC offsets of each zone.

    python3 -m pip install --target /tmp/zones tzfpy==2.1.1 tzdata numpy
    PYTHONPATH=/tmp/zones PYTHONTZPATH= python3 Shared/CTimeZones/make-table.py Shared/CTimeZones/TimeZones.bin

The polygons are those of timezone-boundary-builder, derived from OpenStreetMap (ODbL 1.0, see LICENSE). The offsets are
those of the IANA time zone database, which is in the public domain. The file is compressed with zlib. All numbers in it
are little-endian:

    u32 cells per degree, u32 rows, u32 runs, u32 zones, u32 transitions
    u16 the row of each line of cells, from north to south
    u32 the first run of each row, and the number of runs
    u16 the end of each run, in cells from 180 degrees west
    u16 the zone of each run
    u32 the first transition of each zone, and the number of transitions
    i32 the minute since 1970 of each transition; the first of a zone also applies to all earlier times
    i32 the seconds east of UTC from then on
"""
import datetime
import sys
import zlib
import zoneinfo

import numpy
import tzfpy

CELLS = 32
YEARS = range(1900, 2038)


def runs(zones):
    """Yields the ends and zones of the runs of each line of cells."""
    for line in range(180 * CELLS):
        latitude = 90 - (line + 0.5) / CELLS
        cells = numpy.empty(360 * CELLS, numpy.uint16)
        for column in range(len(cells)):
            name = tzfpy.get_tz(-180 + (column + 0.5) / CELLS, latitude)
            cells[column] = zones.setdefault(name, len(zones))
        ends = numpy.append(numpy.flatnonzero(cells[1:] != cells[:-1]) + 1, len(cells))
        yield ends.astype("<u2"), cells[ends - 1].astype("<u2")


def transitions(name):
    """Returns the minutes and offsets of the transitions of a zone."""
    zone, utc = zoneinfo.ZoneInfo(name), datetime.timezone.utc
    epoch = datetime.datetime(1970, 1, 1, tzinfo=utc)

    def offset(minute):
        time = epoch + datetime.timedelta(minutes=minute)
        return int(time.astimezone(zone).utcoffset().total_seconds())

    def minute(year):
        return (datetime.datetime(year, 1, 1, tzinfo=utc) - epoch) // datetime.timedelta(minutes=1)

    found = [(minute(YEARS[0]), offset(minute(YEARS[0])))]
    # No offset lasts less than five days, so no transition is missed between two samples.
    for start in range(minute(YEARS[0]), minute(YEARS[-1] + 1), 5 * 1440):
        low, high = start, start + 5 * 1440
        if offset(low) == offset(high):
            continue
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if offset(middle) == offset(low) else (low, middle)
        found.append((high, offset(high)))
    return found


def table():
    """Returns the bytes of the file before compression."""
    zones, rows, lines = {}, {}, []
    for ends, cells in runs(zones):
        lines.append(rows.setdefault((ends.tobytes(), cells.tobytes()), len(rows)))
    counts = [len(ends) // 2 for ends, _ in rows]
    offsets = [transitions(name) for name in zones]
    changes = [change for zone in offsets for change in zone]
    header = [CELLS, len(rows), sum(counts), len(zones), len(changes)]
    parts = [
        numpy.array(header, "<u4"),
        numpy.array(lines, "<u2"),
        numpy.cumsum([0] + counts).astype("<u4"),
        b"".join(ends for ends, _ in rows),
        b"".join(cells for _, cells in rows),
        numpy.cumsum([0] + [len(zone) for zone in offsets]).astype("<u4"),
        numpy.array([minute for minute, _ in changes], "<i4"),
        numpy.array([offset for _, offset in changes], "<i4"),
    ]
    return b"".join(bytes(part) for part in parts)


if __name__ == "__main__":
    with open(sys.argv[1], "wb") as file:
        file.write(zlib.compress(table(), 9))

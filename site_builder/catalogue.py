"""Keeps the translations in step with the templates; a developer's tool, needs Babel (the site at run time does not).

    python -m site_builder.catalogue

extracts every message, brings ``locales/*/LC_MESSAGES/messages.po`` up to date (new messages come in empty), compiles
them to ``.mo`` and writes ``locales/cldr.json``: months, date patterns and number symbols out of Babel's CLDR data, so
that the 10 MB of Babel need not go into a function's package. A test holds all of it in step.
"""

from __future__ import annotations

import datetime as dt
import io
import json
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
LOCALES = HERE / "locales"
EPOCH = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
"""The date in the catalogues' headers, so that the same texts are the same bytes."""
CLDR = {"en": "en_GB", "de": "de", "fr": "fr", "it": "it"}
"""English dates are written day first, as the rest of the pages' readers do."""
METHODS = [("templates/**.html", "jinja2"), ("templates/**.xml", "jinja2"), ("*.py", "python")]
OPTIONS = {
    "templates/**.html": {"trimmed": "true", "silent": "false", "newstyle_gettext": "true"},
    "templates/**.xml": {"trimmed": "true", "silent": "false", "newstyle_gettext": "true"},
}


def extract() -> Any:
    """Every message of templates and code, as a Babel catalogue."""
    from babel.messages.catalog import Catalog
    from babel.messages.extract import extract_from_dir

    found = Catalog(charset="utf-8", header_comment="# Clubladder: texts of the public site")
    for file, line, message, _, context in sorted(
        extract_from_dir(
            str(HERE), METHODS, OPTIONS, keywords={"_": None, "N_": None, "gettext": None, "ngettext": (1, 2)}
        ),
        key=lambda entry: (entry[0], entry[1]),
    ):
        found.add(message, None, [(file, line)], context=context)
    return found


def read(language: str) -> Any:
    """The catalogue of a language, as committed."""
    from babel.messages.pofile import read_po

    with (LOCALES / language / "LC_MESSAGES" / "messages.po").open("rb") as file:
        return read_po(file, locale=language)


def compiled(catalogue: Any) -> bytes:
    """The ``.mo`` bytes of a catalogue."""
    from babel.messages.mofile import write_mo

    out = io.BytesIO()
    write_mo(out, catalogue)
    return out.getvalue()


def cldr() -> str:
    """Months, patterns and symbols of every language, as ``cldr.json`` holds them."""
    from babel import Locale

    data: dict[str, Any] = {}
    for language, name in CLDR.items():
        locale = Locale.parse(name)
        symbols = locale.number_symbols["latn"]
        data[language] = {
            "name": Locale.parse(language).get_display_name(language),
            "months": [locale.months["format"]["wide"][m] for m in range(1, 13)],
            "months_short": [locale.months["format"]["abbreviated"][m] for m in range(1, 13)],
            "months_alone": [locale.months["stand-alone"]["wide"][m] for m in range(1, 13)],
            "long": locale.date_formats["long"].pattern,
            "short": str(locale.datetime_skeletons["yMMMd"].pattern),
            "day_month": str(locale.datetime_skeletons["MMMMd"].pattern),
            "month": str(locale.datetime_skeletons["yMMMM"].pattern),
            "decimal": symbols["decimal"],
            "group": symbols["group"],
            "percent": locale.percent_formats[None].pattern,
        }
    return json.dumps(data, ensure_ascii=False, indent=1, sort_keys=True) + "\n"


def main() -> None:
    """Update everything and say what is missing."""
    from babel.messages.catalog import Catalog
    from babel.messages.pofile import write_po

    template = extract()
    for language in (code for code in CLDR if code != "en"):
        folder = LOCALES / language / "LC_MESSAGES"
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / "messages.po"
        catalogue = read(language) if path.exists() else Catalog(locale=language, charset="utf-8")
        catalogue.update(template, no_fuzzy_matching=True)
        catalogue.obsolete.clear()
        catalogue.header_comment = "# Clubladder: texts of the public site"
        catalogue.creation_date = catalogue.revision_date = EPOCH
        missing = [m.id for m in catalogue if m.id and not _complete(m)]
        with path.open("wb") as file:
            write_po(file, catalogue, width=110, omit_header=False, include_lineno=False, sort_output=True)
        path.with_suffix(".mo").write_bytes(compiled(read(language)))
        sys.stdout.write(f"{language}: {len(list(catalogue)) - 1} messages, {len(missing)} missing\n")
    (LOCALES / "cldr.json").write_text(cldr(), encoding="utf-8")


def _complete(message: Any) -> bool:
    text = message.string
    return all(text) if isinstance(text, tuple | list) else bool(text)


if __name__ == "__main__":
    main()

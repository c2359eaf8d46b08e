"""Figures that were measured, as dated records, and the page that is made of them.

``python bench/record.py TOPIC WHAT MEASURED`` adds a record, with today's date, the commit and the machine,
and writes ``bench/RESULTS.md`` anew; without arguments only the page. Of several records of one thing, the
page has the last; ``bench/records`` has all, and how each was measured.
"""

from __future__ import annotations

import argparse
import csv
import datetime
import os
import subprocess
from pathlib import Path

HERE = Path(__file__).parent
PAGE = HERE / "RESULTS.md"
COLUMNS = ("date", "commit", "machine", "what", "asked", "measured", "command", "note")
Record = dict[str, str]

HEAD = """\
# Measured

Each row is the last record of a figure that had a target. `bench/records` has all records, with commit
and command, and those without a target. "2 cores" are those of a shared x86-64 virtual machine with 24 GiB,
where other work makes times longer. `python bench/record.py TOPIC WHAT MEASURED` adds a record.
"""


def records(topic: Path) -> list[Record]:
    """Return the records of a topic, the first first."""
    with topic.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def page() -> str:
    """Return the page."""
    parts = [HEAD]
    for topic in sorted((HERE / "records").glob("*.csv")):
        last = {record["what"]: record for record in records(topic) if record["asked"]}
        if not last:
            continue
        parts.append(
            f"\n## {topic.stem}\n\n| what | asked | measured | |\n| --- | --- | --- | --- |\n"
        )
        for what, record in last.items():
            when = f"{record['date']}, {record['machine']}"
            parts.append(f"| {what} | {record['asked']} | {record['measured']} | {when} |\n")
        notes = [record for record in last.values() if record["note"]]
        parts += ["\n"] if notes else []
        parts += [f"- {record['what']}: {record['note']}\n" for record in notes]
    return "".join(parts)


def add(topic: str, record: Record) -> None:
    """Add a record to its topic."""
    path = HERE / "records" / f"{topic}.csv"
    is_new = not path.exists()
    with path.open("a", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        if is_new:
            writer.writeheader()
        writer.writerow(record)


def main() -> None:
    """Add what the arguments say, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("topic", nargs="?")
    parser.add_argument("what", nargs="?")
    parser.add_argument("measured", nargs="?")
    for name in ("asked", "command", "note"):
        parser.add_argument(f"--{name}", default="")
    parser.add_argument("--machine", default=f"{os.cpu_count()} cores")
    given = vars(parser.parse_args())
    topic = given.pop("topic")
    if topic is not None:
        if given["measured"] is None:
            parser.error("give TOPIC, WHAT and MEASURED")
        told = ["git", "rev-parse", "--short=8", "HEAD"]
        done = subprocess.run(told, cwd=HERE, capture_output=True, text=True, check=True)
        today = datetime.datetime.now(datetime.timezone.utc).date()
        add(topic, {"date": f"{today}", "commit": done.stdout.strip(), **given})
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()

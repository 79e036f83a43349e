"""``content-pipeline costs``: where the dollars went, along any dimension of the ledger."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from decimal import Decimal

import click
from rich.markup import escape
from rich.table import Table

from content_pipeline.cli.context import opened_ledger, plain_console
from content_pipeline.core.errors import ConfigurationError
from content_pipeline.ledger.costs import Cost, Dimension, costs, total

DEFAULT = (Dimension.SITE, Dimension.MODEL, Dimension.CLASS)

WIDEST = 500
"""Characters of a line: figures that were folded or cut to a terminal's width would mislead."""

_KNOWN = ", ".join(dimension.value for dimension in Dimension)


@click.command("costs")
@click.option("--site", "site_name", help="Only this site; else all sites of the ledger.")
@click.option(
    "--by", "by", multiple=True, help=f"Group by these, e.g. --by site,day. Known: {_KNOWN}."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON; dollars are strings.")
def show_costs(site_name: str | None, by: tuple[str, ...], *, as_json: bool) -> None:
    """Show dollars, attempts and tokens: settled, uncertain at their worst, and reserved."""
    dimensions = _dimensions(by) or DEFAULT
    with opened_ledger() as ledger, ledger.begin() as connection:
        groups = costs(connection, dimensions, site=site_name)
    if as_json:
        click.echo(_as_json(dimensions, groups))
    else:
        plain_console(width=WIDEST).print(_as_table(dimensions, groups))


def _dimensions(by: Sequence[str]) -> tuple[Dimension, ...]:
    """The dimensions asked for, each once, in order. Raises ConfigurationError."""
    names = [name.strip().lower() for value in by for name in value.split(",") if name.strip()]
    unknown = [name for name in names if name not in set(Dimension)]
    if unknown:
        raise ConfigurationError(f"--by does not know {unknown[0]!r}; known: {_KNOWN}")
    return tuple(dict.fromkeys(Dimension(name) for name in names))


def _as_json(dimensions: Sequence[Dimension], groups: Sequence[Cost]) -> str:
    rows = [
        {**dict(zip(dimensions, group.keys, strict=True)), **_measures(group)} for group in groups
    ]
    document = {"by": list(dimensions), "rows": rows, "total": _measures(total(groups))}
    return json.dumps(document, indent=2, ensure_ascii=False)


def _measures(cost: Cost) -> dict[str, int | str]:
    measures = asdict(cost) | {"usd": cost.usd}
    del measures["keys"]
    return {
        name: f"{value:f}" if name.endswith("usd") else int(value)
        for name, value in measures.items()
    }


def _as_table(dimensions: Sequence[Dimension], groups: Sequence[Cost]) -> Table:
    table = Table(title="Costs", title_justify="left")
    for dimension in dimensions:
        table.add_column(dimension.value, no_wrap=True)
    for name in ("settled", "uncertain", "reserved", "calls", "failed", "tokens in", "tokens out"):
        table.add_column(name, justify="right", no_wrap=True)
    for group in groups:
        table.add_row(*map(escape, group.keys), *_cells(group))
    table.add_section()
    table.add_row("total", *[""] * (len(dimensions) - 1), *_cells(total(groups)))
    return table


def _cells(cost: Cost) -> list[str]:
    failed = f"{cost.failed_attempts:,}: {_usd(cost.failed_usd) or '$0'}"
    return [
        _usd(cost.settled_usd) or "$0",
        _usd(cost.uncertain_usd),
        _usd(cost.reserved_usd),
        f"{cost.attempts:,}",
        failed if cost.failed_attempts else "",
        f"{cost.input_tokens:,}",
        f"{cost.output_tokens:,}",
    ]


def _usd(amount: Decimal) -> str:
    """Dollars to a hundredth of a cent; nothing for none. JSON has them all."""
    return f"${amount:,.4f}" if amount else ""

"""What all figures share: type that embeds, three file formats, a page that shows them."""

import base64
import html
from collections.abc import Sequence
from pathlib import Path

import matplotlib
from matplotlib.figure import Figure

from aprl.files import PathLike, atomic_path

FORMATS = ("pdf", "png", "svg")
COLOUR_MAP = "viridis"  # told apart with every kind of colour vision, and in print
_DPI = 200


def save_figure(figure: Figure, prefix: PathLike) -> list[Path]:
    """Write a figure as PDF, PNG and SVG.

    Args:
        figure: what to write.
        prefix: path without the formats' suffixes.

    Returns:
        The three files.
    """
    paths = []
    for suffix in FORMATS:
        path = Path(f"{prefix}.{suffix}")
        with atomic_path(path) as staged:
            _write(figure, staged, suffix)
        paths.append(path)
    return paths


def figure_without_suffix(path: PathLike) -> Path:
    """A path that may end in one of the formats, without that end."""
    path = Path(path)
    return path.with_suffix("") if path.suffix.lstrip(".") in (*FORMATS, "html") else path


def caption(rows: Sequence[str], columns: Sequence[str]) -> str:
    """What a grid of panels shows, in words."""
    return f"Rows: {', '.join(rows)}. Columns: {', '.join(columns)}."


def write_page(
    path: PathLike,
    title: str,
    figures: Sequence[tuple[str, Path]],
    rows: Sequence[Sequence[str]] = (),
) -> Path:
    """Write one HTML file that shows figures side by side, with a table below; it needs no others.

    Args:
        path: of the page.
        title: of the page.
        figures: captions and SVG files.
        rows: of the table, the first one its headings; none leaves the table out.
    """
    blocks = "".join(
        f'<figure><img alt="{html.escape(text)}" src="data:image/svg+xml;base64,'
        f'{base64.b64encode(svg.read_bytes()).decode()}">'
        f"<figcaption>{html.escape(text)}</figcaption></figure>\n"
        for text, svg in figures
    )
    table = ""
    if rows:
        head, *body = (
            "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in row)
            for tag, row in zip(("th", *["td"] * (len(rows) - 1)), rows, strict=True)
        )
        lines = "".join(f"<tr>{line}</tr>\n" for line in body)
        table = f"<table><thead><tr>{head}</tr></thead>\n<tbody>{lines}</tbody></table>"
    page = f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{html.escape(title)}</title>
<style>
body {{ font: 16px/1.5 system-ui, sans-serif; margin: 2rem; color: #222; background: #fff; }}
main {{ display: flex; flex-wrap: wrap; gap: 2rem; align-items: flex-start; }}
figure {{ margin: 0; flex: 1 1 28rem; }} img {{ width: 100%; height: auto; }}
table {{ border-collapse: collapse; margin-top: 2rem; font-variant-numeric: tabular-nums; }}
th, td {{ padding: .3rem .8rem; text-align: left; border-bottom: 1px solid #ccc; }}
</style></head>
<body><h1>{html.escape(title)}</h1>
<main>
{blocks}</main>
{table}
</body></html>
"""
    with atomic_path(path) as staged:
        staged.write_text(page, encoding="utf-8")
    return Path(path)


def _write(figure: Figure, file: Path, suffix: str) -> None:
    """Write in one format, the same bytes each time."""
    metadata = {"pdf": {"CreationDate": None}, "svg": {"Date": None}}.get(suffix)
    # Text stays text: found by a search, and set in a font that the file carries.
    with matplotlib.rc_context(
        {"pdf.fonttype": 42, "svg.fonttype": "none", "svg.hashsalt": "aprl"}
    ):
        figure.savefig(file, format=suffix, dpi=_DPI, metadata=metadata)

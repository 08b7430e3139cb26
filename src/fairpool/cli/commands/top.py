"""``fairpool top``: pools, shares and the queue, live."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

import click

from fairpool.cli.options import connected

if TYPE_CHECKING:
    from fairpool.client.api import Client


FILE_WIDTH = 120
"""Of the bars in a frame that goes into a file or a pipe. Its lines are as long as they need: nothing is cut there."""

NO_END = 100_000


@click.command("top")
@click.option("--once", is_flag=True, help="Print one frame and end.")
@click.option("--interval", type=click.FloatRange(0.2), default=2.0, show_default=True, help="Seconds between frames.")
@connected
def top(client: Client, interval: float, *, once: bool) -> None:
    """Watch pools, what is reserved, borrowed and free, who runs, and who waits for what."""
    from rich.console import Console
    from rich.live import Live

    from fairpool.cli.topview import frame, gather

    console = Console()
    if not console.is_terminal and "COLUMNS" not in os.environ:
        Console(width=NO_END).print(frame(gather(client), FILE_WIDTH))
        return
    if once or not console.is_terminal:
        console.print(frame(gather(client), console.width))
        return
    with Live(frame(gather(client), console.width), console=console, screen=True, auto_refresh=False) as live:
        while True:
            time.sleep(interval)
            live.update(frame(gather(client), console.width), refresh=True)

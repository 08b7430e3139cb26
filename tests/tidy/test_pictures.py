"""The drawn pictures are what their script draws, and lean on nothing outside themselves."""

import re
import subprocess
import sys

from tests.tidy import tree

ASSETS = tree.ROOT / "docs" / "assets"


def test_the_pictures_are_what_the_script_draws() -> None:
    script = tree.ROOT / "docs" / "dev" / "pictures.py"
    done = subprocess.run([sys.executable, script, "--check"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_no_picture_fetches_anything() -> None:
    outside = re.compile(r"(?:href|src)\s*=|@import|url\((?!#)|<script|<foreignObject", re.IGNORECASE)
    drawn = [path for path in ASSETS.glob("*.svg") if path.name != "demo.svg"]
    assert len(drawn) >= 3
    tree.none_of(
        (f"{tree.place(path)}: {match[0]}" for path in drawn for match in outside.finditer(tree.text(path))),
        "A picture that fetches fonts or files looks different elsewhere, and tells others who reads it.",
    )

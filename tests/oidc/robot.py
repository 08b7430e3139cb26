"""A browser that signs in by itself: ``BROWSER="python -m tests.oidc.robot USER ANSWER %s"``."""

from __future__ import annotations

import sys

from tests.oidc.processes import Browser

if __name__ == "__main__":
    user, answer, url = sys.argv[1:]
    browser = Browser()
    page = browser.open(url)
    if "<form" in page.text:
        browser.send(page, user=user, answer=answer)
    browser.close()

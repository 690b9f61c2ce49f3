"""`python -m memagent`."""

from __future__ import annotations

from memagent.cli import main

main()

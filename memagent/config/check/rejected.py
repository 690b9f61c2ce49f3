"""What LibreChat's schema rejects, said in our words: one finding for each of its issues."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from memagent.config.check.draft import dotted, inside
from memagent.config.check.memory import AGENT, report_incomplete
from memagent.config.findings import Fix, LibreChat
from memagent.config.nodes import Mapping, Scalar
from memagent.config.spelling import meant

if TYPE_CHECKING:
    from memagent.config.check.draft import Draft, Path

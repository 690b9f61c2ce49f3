"""memagent: a memory agent pipeline configured by librechat.yaml, and the validator of that YAML."""

from __future__ import annotations

__version__ = "0.1.0"

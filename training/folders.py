"""Where a run writes."""

from __future__ import annotations

import tempfile
from pathlib import Path

from archie_env.errors import ConfigError


def make_folder(out: Path) -> None:
    """Make the folder of a run and try that it can be written to; raises `ConfigError`."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=out):
            pass
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ConfigError(f"{out}: {reason}: expected a folder that can be made and written to") from None

"""The most memory that a process had, from a moment on."""

from __future__ import annotations

import contextlib
import resource
import sys
from pathlib import Path

__all__ = ["peak_bytes", "reset_peak"]


def peak_bytes() -> int:
    """Return the most memory that was resident since `reset_peak`, or, where there is none, since the start."""
    status = Path("/proc/self/status")
    if status.exists():
        [line] = [line for line in status.read_text().splitlines() if line.startswith("VmHWM")]
        return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def reset_peak() -> None:
    """Forget what was resident before, where the system can."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")

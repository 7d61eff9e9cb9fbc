"""The check of a directory: what `ibb verify` runs, at rest or in use."""

from .directory_check import Totals, verify_directory
from .finding import Finding, Kind, Place, Severity

__all__ = ["Finding", "Kind", "Place", "Severity", "Totals", "verify_directory"]

"""What the command line uses of this package; importing it needs the extra `spark`."""

from .job_session import DEFAULT_MASTER, job_session
from .verify import verify_on

__all__ = ["DEFAULT_MASTER", "job_session", "verify_on"]

"""Which pages show commands, and how each is tried: run as it stands, or for a reason elsewhere."""

import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
SMALL_DISK = "mkdir binlogs && mount -t tmpfs -o size=138M none binlogs"
# Run command by command, with what `estate` is to provide; None: the page starts all by itself.
RUN: dict[str, dict[str, Any] | None] = {
    "README.md": {"relay": False, "replicas": 1},
    "docs/tutorial.md": None,
    "docs/runbooks/damaged-file.md": {"replicas": 1},
    "docs/runbooks/disk-full.md": {
        "wrapper": ("unshare", "--map-root-user", "--mount"),
        "before": SMALL_DISK,
    },
    "docs/runbooks/move-a-store.md": {"replicas": 1},
    "docs/runbooks/primary-lost.md": {"replicas": 2},
    "docs/runbooks/replica-too-old.md": {"replicas": 1},
    "docs/runbooks/restore-a-backup.md": {"replicas": 1},
    "docs/runbooks/rotate-secrets.md": {"replicas": 1},
    "docs/runbooks/upgrade.md": {"replicas": 1},
}
ELSEWHERE = {
    "docs/accounts.md": "tests/cli/test_account.py has these commands, with files of its own",
    "docs/backup.md": "its drill is docs/runbooks/restore-a-backup.md",
    "docs/containers.md": "scripts/test-compose drives the stack; the page says what it leaves out",
    "docs/dashboard.md": "tests/server/web/test_dashboard_views.py asks for these pages",
    "docs/monitoring.md": "tests/server/web asks for these pages over HTTP and HTTPS",
    "docs/operations.md": "tests/server/test_config_check.py, test_reloading.py, test_systemd.py",
    "docs/performance.md": "measurements: minutes each; tests/measure runs small ones",
    "docs/security.md": "users, groups and folders of the system; tests/cli and tests/integration",
    "docs/semi-sync.md": "tests/integration/test_semi_sync.py, and scripts/semi-sync-rounds there",
    "docs/spark.md": "tests/pipeline/jobs/test_spark_jobs.py runs the jobs on a history",
    "docs/sql.md": "tests/server/sql/test_sql_document.py sends every statement",
    "docs/testing.md": "the tests themselves, and what makes a machine ready for them",
    "docs/verify.md": "tests/cli/test_verify.py",
}
_COMMAND = re.compile(
    r"^(?:\$ | {4,})(?:ibb [a-z]|(?:scripts/|mariadb|uv |openssl |systemctl |\.venv/)\S*)",
    re.MULTILINE,
)


def pages_with_commands() -> set[str]:
    """Return the pages that show commands, by their paths from the top."""
    paths = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    shown = [path for path in paths if _COMMAND.search(path.read_text())]
    return {str(path.relative_to(ROOT)) for path in shown}

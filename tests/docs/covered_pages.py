"""Which pages show commands, and how each is tried: run as it stands, or for a reason elsewhere."""

import re
from pathlib import Path
from typing import Any

from .console import BLOCK, ROOT

# Mounts of its own, as whoever it is; where the root was changed, nobody but root has them.
OWN_MOUNTS = 'unshare -rm true 2>/dev/null && exec unshare -rm "$@"; exec unshare -m "$@"'
SMALL_DISK = "mkdir binlogs && mount -t tmpfs -o size=138M none binlogs"
THREE_GROUPS = (
    'mariadb -e "CREATE DATABASE shop; CREATE TABLE shop.orders (id INT PRIMARY KEY, what TEXT);'
    " INSERT INTO shop.orders VALUES (1, 'tea')\" && "
    "mariadb --defaults-file=relay.cnf -e \"SELECT MASTER_GTID_WAIT('0-1-3', 60)\""
)
INSTALLED = (  # as docs/operations.md does it
    "python3 -m venv /opt/ibb/0.1.0 && ln -s 0.1.0 /opt/ibb/current"
    " && /opt/ibb/0.1.0/bin/pip install --quiet '/usr/src/ibb-0.1.0[web,fast]'"
)
# Run command by command, with what `estate` is to provide; None: the page starts all by itself.
RUN: dict[str, dict[str, Any] | None] = {
    "README.md": None,
    "docs/tutorial.md": None,
    "docs/operations.md": {"running": False, "sources": ("0.1.0",)},
    "docs/security.md": {"relay": False, "replicas": 1, "encrypted": True},
    "docs/backup.md": {"after": THREE_GROUPS},
    "docs/runbooks/damaged-file.md": {"replicas": 1},
    "docs/runbooks/disk-full.md": {
        "wrapper": ("sh", "-c", OWN_MOUNTS, "sh"),
        "before": SMALL_DISK,
    },
    "docs/runbooks/move-a-store.md": {"replicas": 1},
    "docs/runbooks/primary-lost.md": {"replicas": 2},
    "docs/runbooks/replica-too-old.md": {"replicas": 1},
    "docs/runbooks/restore-a-backup.md": {"replicas": 1},
    "docs/runbooks/rotate-secrets.md": {"replicas": 1},
    "docs/runbooks/upgrade.md": {
        "replicas": 1,
        "sources": ("0.1.0", "0.2.0"),
        "before": INSTALLED,
    },
}
ELSEWHERE = {
    "docs/accounts.md": "tests/cli/test_account.py has these commands, with files of its own",
    "docs/dashboard.md": "tests/server/web/test_dashboard_views.py asks for these pages",
    "docs/monitoring.md": "tests/server/web asks for these pages over HTTP and HTTPS",
    "docs/performance.md": "measurements: minutes each; tests/measure runs small ones",
    "docs/performance-history.md": "measurements of earlier days: minutes each",
    "docs/semi-sync.md": "tests/integration/test_semi_sync.py, and scripts/semi-sync-rounds there",
    "docs/spark.md": "tests/pipeline/jobs/test_spark_jobs.py runs the jobs on a history",
    "docs/sql.md": "tests/server/sql/test_sql_document.py sends every statement",
    "docs/testing.md": "the tests themselves, and what makes a machine ready for them",
    "docs/verify.md": "tests/cli/test_verify.py",
}
# Run by scripts/test-compose on its stack, tests/compose/test_pages.py.
IN_CONTAINERS = ("docs/containers.md",)
# What the pages that are run show outside of console blocks, by its beginning.
NOT_RUN = {
    "README.md": {
        "scripts/demo ": "tests/demo runs the demonstration",
        "scripts/test ": "the tests themselves",
    },
    "docs/containers.md": {
        "docker compose up -d ": "what scripts/compose becomes where an engine answers",
        "scripts/compose up -d ": "tests/compose/conftest.py brings its stack up so",
        "docker compose --profile metrics up -d ": "a profile of the tests' stack",
        "docker compose --profile grafana up -d ": "Grafana's image is on another registry",
        "docker compose build secrets": "scripts/test-compose begins with it",
        "docker volume create ": "the volume may be there: Stack.choose_passwords takes its own",
        "docker run --rm -i --user 0 ": "Stack.choose_passwords runs it for its own volume",
        "install -d -o 3307 ": "gives a folder away, as root alone can; the tests' is everybody's",
        "docker build -t ibb ": "scripts/test-compose builds the image by another name",
        "docker run --rm -it ": "asks for a password, and takes a volume that may be there",
        "docker run -d ": "takes ports and a volume; the stack's relay has these arguments",
        "git pull": "changes the checkout",
        "scripts/compose build secrets ": "scripts/test-compose begins with it",
        "scripts/compose up -d secrets relay": "tests/compose/test_compose.py, with another image",
        "scripts/test-compose": "the tests themselves",
    },
    "docs/operations.md": {
        "ibb serve ": "what the unit starts, and so `systemctl enable` on this page",
        "useradd ": "changes the machine; the files belong to who runs the tests",
    },
}
_COMMAND = re.compile(
    r"^(?:\$ | {4,})((?:ibb [a-z]|docker |git |install |useradd |(?:cp|mv|chown) [-/\w]"
    r"|(?:scripts/|mariadb|uv |openssl |systemctl |\.venv/)\S*).*)",
    re.MULTILINE,
)


def is_root_a_mount() -> bool:
    """Whether `/` is the top of a file system that is mounted, and no folder of one."""
    mounts = Path("/proc/self/mountinfo").read_text().splitlines()
    return any(line.split()[4] == "/" for line in mounts)


def commands_not_run(page: str) -> list[str]:
    """Return the first lines of the commands that a page shows outside of console blocks."""
    return _COMMAND.findall(BLOCK.sub("", (ROOT / page).read_text()))


def pages_with_commands() -> set[str]:
    """Return the pages that show commands, by their paths from the top."""
    paths = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    shown = [path for path in paths if _COMMAND.search(path.read_text())]
    return {str(path.relative_to(ROOT)) for path in shown}

"""The command line as a process."""

import signal
import subprocess
import sys

IBB = [sys.executable, "-m", "ibb"]
SECONDS_MAX = 30


class Process:
    """One `ibb serve`, up to its ready line."""

    def __init__(self, *arguments):
        self.process = subprocess.Popen(
            [*IBB, "serve", *map(str, arguments)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.ready = self.process.stdout.readline()

    @property
    def address(self):
        host, _, port = self.ready.removeprefix("ready ").strip().rpartition(":")
        return host, int(port)

    def end(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        out, err = self.process.communicate(timeout=SECONDS_MAX)
        return self.process.returncode, out, err

    def kill(self):
        if self.process.poll() is None:
            self.end(signal.SIGKILL)


def run(*arguments, **options):
    return subprocess.run(
        [*IBB, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
        check=False,
        **options,
    )

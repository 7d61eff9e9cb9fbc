"""A relay with pages between a publisher and readers, and a browser that looks at it."""

from __future__ import annotations

import os
import re
import shutil
import socket
import tempfile
import threading
import time
from contextlib import ExitStack, contextmanager, suppress
from io import BytesIO
from pathlib import Path

from axe_playwright_python.sync_playwright import Axe
from PIL import Image
from playwright.sync_api import expect, sync_playwright

from ibb.demo.dump_client import DumpClient
from ibb.demo.scratch_server import free_port
from ibb.demo.serve_process import run_ibb
from ibb.protocol.command import BinlogDump, DumpFlag

from ..integration.conftest import rig_in
from ..integration.mariadb_server import PASSWORD, USER
from ..integration.publisher import publishing

CHROMIUM = "/usr/bin/chromium"  # Debian's: nothing is downloaded
IMAGES = Path(__file__).parents[2] / "docs" / "images"
MILLISECONDS = 60_000  # for whatever is waited for, on a busy machine
GRANTS = "REPLICATION SLAVE, BINLOG MONITOR, SLAVE MONITOR, REPLICATION MASTER ADMIN"
MONITOR = "monitor"  # an account that may log in, and no more
SMALL_BUFFER = 4096
AGE_SECONDS = 90  # of groups: whoever lacks one is late
COLOURS = 64  # of a picture
PAUSE_SECONDS = 0.02  # between two small groups
TEXT_BYTES_MAX = 20_000  # of a small group
LOOKS_SHOT = 20  # of the server at itself, in a picture
SERIOUS = ("serious", "critical")
WIDE, PHONE = {"width": 1280, "height": 800}, {"width": 390, "height": 844}


class Reader(DumpClient):
    """A dump that waits for more; reads what comes only if it is told to."""

    def __init__(self, port, server_id, *, buffer=0, start=""):
        super().__init__(port, USER, PASSWORD)
        if buffer:
            self._socket.setsockopt(1, 8, buffer)  # SOL_SOCKET, SO_RCVBUF
        self.query("SET @master_binlog_checksum = 'CRC32'")
        self.query("SET @mariadb_slave_capability = 4")
        self.query(f"SET @slave_connect_state = '{start}'")
        self._command(BinlogDump(4, DumpFlag.SEND_ANNOTATE_ROWS, server_id, "").encode())

    def read_on(self):
        """Read whatever comes until the connection ends."""
        self._socket.settimeout(None)
        while self._socket.recv(1 << 16):
            pass

    def close(self):
        with suppress(OSError):  # gone already
            self._socket.shutdown(socket.SHUT_RDWR)  # `close` leaves it to a thread that reads
        super().close()


class Board:
    """The relay, the publisher before it, and the readers behind it."""

    def __init__(self, publisher, ibb, port):
        self.publisher = publisher
        self.ibb = ibb
        self.url = f"http://127.0.0.1:{port}"
        self.readers = []

    def read(self, count, *, first=1000, start=""):
        """Add readers that read nothing by themselves; little waits for them at the end."""
        for number in range(count):
            self.readers.append(Reader(self.ibb.port, first + number, start=start))

    def newest(self):
        return f"0-90-{self.publisher.newest}"

    def close(self):
        for reader in self.readers:
            reader.close()
        self.readers.clear()


def add_account(ibb, user, grants):
    """Give a server an account, or an account that it has other privileges; before its start."""
    words = ("account", "add", "--file", str(ibb.folder / "accounts.toml"), user)
    added = run_ibb(*words, "--grant", grants, "--password-stdin", stdin=PASSWORD)
    assert added.returncode == 0, added.stderr


@contextmanager
def board():
    """Lend a relay that has some groups, readers that have them, and one that does not read."""
    folder = Path(tempfile.mkdtemp(prefix="ibb-"))
    with ExitStack() as ends:
        ends.callback(shutil.rmtree, folder)
        publisher = ends.enter_context(publishing(folder / "source"))
        rig = ends.enter_context(rig_in(folder))
        port = free_port()
        ibb = rig.ibb(f"--admin-listen=127.0.0.1:{port}", "--max-connections=1200")
        add_account(ibb, USER, GRANTS)
        add_account(ibb, MONITOR, "BINLOG MONITOR")
        ibb.relay_from(publisher.port).start()
        shown = Board(publisher, ibb, port)
        ends.callback(shown.close)
        publisher.timestamp = int(time.time()) - AGE_SECONDS
        publisher.define("CREATE TABLE orders (id INT PRIMARY KEY, what TEXT)")
        for number in range(40):
            publisher.change(f"INSERT INTO orders VALUES ({number}, 'tea')")
        yield shown


@contextmanager
def writing(shown):
    """Let the publisher commit small groups of now, one after the other, meanwhile."""
    ended = threading.Event()

    def write():
        number = 1000
        while not ended.wait(PAUSE_SECONDS):
            number += 1
            shown.publisher.timestamp = int(time.time())
            text = "x" * (number * 7919 % TEXT_BYTES_MAX)
            shown.publisher.change(f"INSERT INTO orders VALUES ({number}, '{text}')")

    writer = threading.Thread(target=write)
    writer.start()
    try:
        yield
    finally:
        ended.set()
        writer.join()


def keep_reading(shown, server_id):
    """Add a reader that takes everything at once, in a thread that its end ends."""
    reader = Reader(shown.ibb.port, server_id)
    shown.readers.append(reader)
    threading.Thread(target=_read, args=(reader,), daemon=True).start()


def _read(reader):
    try:
        reader.read_on()
    except OSError:
        return  # closed by the test


@contextmanager
def chromium():
    """Lend a browser without a window."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"]
        )
        try:
            yield browser
        finally:
            browser.close()


class Window:
    """A page of a browser that has logged in; `errors` are what its console tells."""

    def __init__(self, browser, url, **options):
        options = {"viewport": WIDE, "color_scheme": "light", "reduced_motion": "reduce"} | options
        self.context = browser.new_context(**options)
        self.context.set_default_timeout(MILLISECONDS)
        self.url = url
        self.page = self.context.new_page()
        self.errors = []
        self.page.on("console", self._note)
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))

    def _note(self, message):
        if message.type in ("error", "warning"):
            self.errors.append(message.text)

    def log_in(self, view="overview", user=USER, password=PASSWORD):
        """Come in by the login page, and go to a view."""
        self.page.goto(f"{self.url}/")
        self.fill_in(user, password)
        self.live()
        return self.go(view)

    def fill_in(self, user=USER, password=PASSWORD):
        self.page.get_by_label("User").fill(user)
        self.page.get_by_label("Password").fill(password)
        self.page.get_by_role("button", name="Log in").click()

    def go(self, view):
        """Show a view of the page that is open."""
        self.page.evaluate("(hash) => { location.hash = hash; }", f"#/{view}")
        return self

    def live(self):
        """Wait until overviews come."""
        expect(self.page.locator("#live")).to_have_text("live", timeout=MILLISECONDS)

    def table(self, caption):
        return self.page.get_by_role("table", name=caption)

    def check(self):
        """Have axe-core look for what keeps people out; nothing serious may be there."""
        found = Axe().run(self.page).response["violations"]
        serious = [
            (each["id"], each["help"], [node["html"][:200] for node in each["nodes"]])
            for each in found
            if each["impact"] in SERIOUS
        ]
        assert serious == []

    def shoot(self, name, line=None):
        """Make a picture for the documents, if wanted; with a plot once its *line* is long."""
        if os.environ.get("IBB_SCREENSHOTS"):
            if line is not None:
                long = re.compile(rf"(\S+ ){{{LOOKS_SHOT},}}")
                expect(line).to_have_attribute("points", long, timeout=2 * MILLISECONDS)
            IMAGES.mkdir(exist_ok=True)
            picture = Image.open(BytesIO(self.page.screenshot(full_page=True)))
            small = picture.convert("RGB").quantize(COLOURS)
            small.save(IMAGES / f"dashboard-{name}.png", optimize=True)

    def close(self):
        self.context.close()

"""
How large the pages and files of stores under test are: small, or in the second round tiny.

With `IBB_TEST_TINY` set every border is near: a group of a few hundred bytes fills a page, some
twenty of them a file.
"""

import os

from ibb.storage.options import REDO_SEGMENT_SIZE_MIN, StoreOptions

IS_TINY = bool(os.environ.get("IBB_TEST_TINY"))

# A test's folder stays a while: small files, and a redo log that is not 128 MiB.
SMALL = (
    StoreOptions(
        page_size=512,
        max_binlog_size=16 * 512,
        state_interval=1024,
        fifo_pages_max=8,
        redo_segment_size=REDO_SEGMENT_SIZE_MIN,
        oob_piece_size=400,
    )
    if IS_TINY
    else StoreOptions(max_binlog_size=1 << 20, redo_segment_size=4 << 20)
)

# `ibb serve` allocates two files at once.
SERVE_ARGUMENTS = (
    ("--page-size=512", f"--max-binlog-size={64 * 512}", "--state-interval=1024")
    if IS_TINY
    else ("--max-binlog-size=64M",)
)

"""
The .ibb storage engine: pages, records, redo log, recovery, readers.

    from ibb.storage import Store

    with Store.open("binlogs/") as store:
        with store.begin() as group:
            group.write(events)
            group.commit(Gtid(0, 1, 42))
        for group in store.reader(start="0-1-41"):
            ...
"""

from .options import StoreOptions
from .store import Store

__all__ = ["Store", "StoreOptions"]

"""Pages that are sealed together have the checksums that each has by itself."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ibb.protocol.checksum import crc32c
from ibb.storage.page import PAGE_SIZE_MAX, PAGE_SIZE_MIN, check_page
from ibb.storage.page_seal import seal_pages, sealed_page

pytestmark = pytest.mark.kernel

PAGES = st.sampled_from([512, 1024, 16384]).flatmap(
    lambda size: st.binary(max_size=40).map(lambda data: bytearray(data.ljust(size, b"\xff")))
)


@given(st.lists(PAGES, max_size=5))
def test_each_is_sealed(pages):
    alone = [bytearray(page) for page in pages]
    for page in alone:
        page[-4:] = crc32c(page[:-4]).to_bytes(4, "little")
    assert [sealed_page(page) for page in pages] == alone
    seal_pages(pages)
    assert pages == alone
    for number, page in enumerate(pages):
        check_page(bytes(page), 0, number)


@pytest.mark.parametrize("size", [PAGE_SIZE_MIN - 1, PAGE_SIZE_MAX + 1, 0])
def test_what_is_no_page_is_not_sealed(size):
    with pytest.raises(AssertionError):
        seal_pages([bytearray(size)])

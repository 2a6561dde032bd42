"""Pillow keeps memory while images are read, and no longer."""

import pytest
from PIL import Image

from umix.data.pillow_memory import kept_memory


def test_memory_is_kept_until_the_last_reader_is_done():
    before = Image.core.get_blocks_max()
    first, second = kept_memory(), kept_memory()
    first.__enter__()
    kept = Image.core.get_blocks_max()
    assert kept > before
    second.__enter__()
    first.__exit__(None, None, None)
    assert Image.core.get_blocks_max() == kept
    second.__exit__(None, None, None)
    assert Image.core.get_blocks_max() == before


def test_a_larger_number_of_ones_own_is_left_alone():
    before = Image.core.get_blocks_max()
    Image.core.set_blocks_max(10_000)
    try:
        with kept_memory():
            assert Image.core.get_blocks_max() == 10_000
        assert Image.core.get_blocks_max() == 10_000
    finally:
        Image.core.set_blocks_max(before)


def test_memory_is_given_back_also_after_an_error():
    before = Image.core.get_blocks_max()
    with pytest.raises(KeyError), kept_memory():
        raise KeyError
    assert Image.core.get_blocks_max() == before

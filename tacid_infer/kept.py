"""Results that are kept, by the content of what they were made from: bounded, and safe among threads."""

from __future__ import annotations

import marshal
from collections import OrderedDict
from threading import Lock
from typing import Any, Generic, TypeVar

_T = TypeVar("_T")


class Kept(Generic[_T]):
    """A bounded, least-recently-used cache. What has no key is not kept.

    Args:
        size: how many results are kept.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._kept: OrderedDict[bytes, _T] = OrderedDict()
        self._lock = Lock()

    def get(self, key: bytes | None) -> _T | None:
        """What is kept under a key of ``content_key``, if it is."""
        with self._lock:
            found = self._kept.get(key) if key is not None else None
            if found is not None and key is not None:
                self._kept.move_to_end(key)
            return found

    def put(self, key: bytes | None, value: _T) -> None:
        """Keep a result."""
        if key is None:
            return
        with self._lock:
            self._kept[key] = value
            if len(self._kept) > self._size:
                self._kept.popitem(last=False)


def content_key(value: Any) -> bytes | None:
    """A key that is equal for equal content, in equal order; None for what is not plain JSON."""
    try:
        return marshal.dumps(value, 1)  # Version 1: the same bytes for the same content, whatever is shared.
    except ValueError:
        return None

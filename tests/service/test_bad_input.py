"""Bad input over the socket: a clear error that names what and where."""

from __future__ import annotations

import pytest

from .running import Daemon

BAD = [
    ("/v1/turns", b"{", 400, "invalid_request"),
    ("/v1/turns", b"[]", 400, "invalid_request"),
    ("/v1/turns", b'{"tools": 5}', 400, "invalid_request"),
    ("/v1/turns", b'{"tols": []}', 400, "invalid_request"),
    ("/v1/turns", b'{"tools": [], "tools": []}', 400, "invalid_request"),
    ("/v1/turns", b'{"tools": [{"name": "a"}, {"name": "a"}]}', 400, "duplicate_tool"),
    ("/v1/turns", b'{"tools": [{"name": 5}]}', 400, "invalid_tool"),
    ("/v1/turns", b'{"tools": [{"name": "a", "parameters": {"const": NaN}}]}', 400, "invalid_request"),
    ("/v1/turns", b'{"tools": [{"name": "\xff"}]}', 400, "invalid_request"),
    ("/v1/turns", b"[" * 100000, 413, "limit_exceeded"),
    ("/v1/turns", b'{"tools": [' + b'{"a": ' * 300 + b"1" + b"}" * 300 + b"]}", 413, "limit_exceeded"),
    (
        "/v1/turns",
        b'{"tools": [' + b",".join(b'{"name": "t%d"}' % n for n in range(10000)) + b"]}",
        413,
        "limit_exceeded",
    ),
    ("/v1/turns", b" " * 9_000_000, 413, "limit_exceeded"),
    (
        "/v1/turns",
        b'{"strict": true, "tools": [{"name": "a", "parameters": {"type": "array"}}]}',
        400,
        "unsatisfiable_schema",
    ),
    ("/v1/complete", b'{"temperature": "hot"}', 400, "invalid_request"),
    ("/v1/complete", b'{"grammar": ""}', 400, "invalid_request"),
    ("/v1/complete", b'{"tool_choice": "zzz"}', 400, "invalid_tool_choice"),
    ("/v1/chat/completions", b'{"messages": 5}', 400, "invalid_request"),
    ("/v1/chat/completions", b'{"messages": [], "n": 2}', 400, "invalid_request"),
    ("/nowhere", b"{}", 404, "not_found"),
    ("/status", b"{}", 405, "method_not_allowed"),
]


@pytest.mark.parametrize(("path", "body", "status", "code"), BAD, ids=lambda value: ascii(value)[:40])
def test_bad_input_is_a_clear_error(daemon: Daemon, path: str, body: bytes, status: int, code: str) -> None:
    response = daemon.http.post(path, content=body)
    assert (response.status_code, response.json()["error"]["code"]) == (status, code)
    assert "Traceback" not in response.text and response.json()["error"]["message"]

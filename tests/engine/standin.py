"""A scripted stand-in for a faulty engine: what a real llama-server cannot be made to do on demand.

``python standin.py MODE[:PARAMETER] [LOG] [llama-server's flags]``. It listens on the Unix socket of --host. Each turn
(not the proofs) leaves a line in LOG. ``prints:FILE`` prints what stands in FILE, if it is there, and is no fault.
"""

from __future__ import annotations

import json
import os
import signal
import socketserver
import sys
import time
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

MODE, _, PARAMETER = sys.argv[1].partition(":")
LOG = sys.argv[2] if not sys.argv[2].startswith("-") else None
OK = '{"say": "ok"}'
posts = 0
busy = 0
started = time.monotonic()
SOCKET = sys.argv[sys.argv.index("--host") + 1]


class Handler(BaseHTTPRequestHandler):
    def log_message(self, *parts: object) -> None:
        pass

    def address_string(self) -> str:
        return "unix"

    def answer(self, status: int, body: bytes, kind: str = "application/json") -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self) -> None:
        if MODE == "never-healthy" or (MODE == "loads-for" and time.monotonic() - started < float(PARAMETER)):
            self.answer(503, b'{"error": {"message": "Loading model", "type": "unavailable_error"}}')
        elif (MODE == "deaf" and busy) or (MODE == "slow-health" and busy):
            time.sleep(30)
        else:
            self.answer(200, b'{"status": "ok"}')

    def do_POST(self) -> None:
        global posts
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path == "/tokenize":
            self.answer(200, json.dumps({"tokens": list(range(len(body["content"]) // 4))}).encode())
            return
        posts += 1
        grammar = body.get("grammar", "")
        proof = grammar.startswith('root ::= "canary')
        broken = grammar == "root ::= ( broken"
        if MODE == "dies-at-first":
            print("ggml_backend_alloc: out of memory", file=sys.stderr, flush=True)
            os._exit(1)
        if (MODE in ("silent", "deaf") and busy) or (MODE == "ignores-from" and posts > int(PARAMETER)):
            if MODE != "ignores-from":
                time.sleep(600)
            self.say("Sure, here is some prose.")
        elif MODE == "ignores-grammars":
            self.say("Sure, here is some prose.")
        elif broken and MODE != "takes-broken":
            self.answer(400, b'{"error": {"code": 400, "message": "failed to parse grammar"}}')
        elif broken:
            self.say("anything")
        elif proof:
            self.say(grammar.split('"')[1])
        else:
            self.turn(body)

    def turn(self, body: Any) -> None:
        global busy
        if LOG:
            with Path(LOG).open("a") as file:
                file.write(json.dumps(body["messages"][-1]["content"]) + "\n")
        busy += 1
        if MODE == "closes":
            self.say("half", finish=False)
            self.connection.close()
        elif MODE == "dies":
            self.say('{"say": "some words', finish=False)
            time.sleep(0.2)
            os._exit(0) if PARAMETER == "0" else os.kill(os.getpid(), signal.Signals[PARAMETER])
            time.sleep(600)
        elif MODE == "errors":
            self.answer(500, b'{"error": {"code": 500, "message": "it broke"}}')
        elif MODE == "error-inside":
            self.events([{"error": {"code": 400, "message": "the context size is exceeded", "n_ctx": 512,
                                    "n_prompt_tokens": 900, "type": "exceed_context_size_error"}}])  # fmt: skip
        elif MODE == "not-utf8":
            self.raw(b'data: {"choices": [{"delta": {"content": "\xff\xfe"}}]}\n\n')
        elif MODE in ("silent", "deaf"):
            time.sleep(600)
        elif MODE == "stalls":
            self.say("some", finish=False)
            time.sleep(600)
        elif MODE == "says":
            self.say(PARAMETER)
        elif MODE == "pieces":
            pieces = [PARAMETER[start : start + 3] for start in range(0, len(PARAMETER), 3)]
            events = [{"choices": [{"delta": {"content": piece}}]} for piece in pieces]
            self.events([*events, {"choices": [{"delta": {}, "finish_reason": "stop"}]}])
        elif MODE in ("takes", "slow-health"):
            time.sleep(float(PARAMETER))
            self.say(OK)
        elif MODE == "repeats":
            words = [{"choices": [{"delta": {"content": "X"}}]} for _ in range(body["max_tokens"])]
            words[0]["choices"][0]["delta"]["content"] = '{"say": "'
            self.events([*words, {"choices": [{"delta": {}, "finish_reason": "length"}]}])
        elif MODE == "ignores-from":
            self.say(OK)
        else:
            self.say("prose that no grammar admits")
        busy -= 1

    def say(self, text: str, *, finish: bool = True) -> None:
        events: list[object] = [{"choices": [{"delta": {"content": text}, "finish_reason": None}]}]
        if finish:
            events.append({"choices": [{"delta": {}, "finish_reason": "stop"}]})
        self.events(events, finish=finish)

    def events(self, events: list[object], *, finish: bool = True) -> None:
        self.raw(*(b"data: " + json.dumps(event).encode() + b"\n\n" for event in events), finish=finish)

    def raw(self, *chunks: bytes, finish: bool = True) -> None:
        """Send them apart, as an engine does that needs a moment for each token."""
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for chunk in chunks:
            self.wfile.write(b"%x\r\n%s\r\n" % (len(chunk), chunk))
            self.wfile.flush()
            time.sleep(0.001)
        if finish:
            self.wfile.write(b"0\r\n\r\n")
        self.wfile.flush()


class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True


if MODE.startswith("exit-"):
    print("ggml: it will not do", file=sys.stderr)
    sys.exit(int(MODE.removeprefix("exit-")))
if MODE == "refuses" and PARAMETER in sys.argv[2:]:
    print(f"error: invalid argument: {PARAMETER}", file=sys.stderr)
    sys.exit(1)
if MODE == "killed":
    os.kill(os.getpid(), signal.SIGILL)
if MODE == "ignores-sigterm":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
if MODE == "prints" and Path(PARAMETER).exists():
    print(Path(PARAMETER).read_text(), file=sys.stderr, flush=True)
if MODE == "floods":
    for number in range(20000):
        print(f"noise {number} " + "x" * 100, file=sys.stderr)
Server(SOCKET, Handler).serve_forever()

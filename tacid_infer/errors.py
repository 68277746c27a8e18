"""Every error that tacid-infer raises on purpose.

::

    TacidError
    ├── InvalidConfiguration      the daemon cannot start as configured
    ├── InvalidRequest            the caller's turn cannot be built
    │   ├── InvalidTool           a tool object is malformed
    │   ├── DuplicateTool         two tools share a name
    │   ├── InvalidToolChoice     tool_choice is malformed, or names what was not offered
    │   ├── InvalidSchema         a parameter schema is not JSON Schema
    │   ├── UnsatisfiableSchema   a parameter schema has no instance
    │   ├── NotExact              a strict turn met a keyword that the grammar cannot enforce
    │   └── LimitExceeded         a documented bound was passed
    ├── EngineError               the engine could not serve the turn
    │   ├── EngineStarting        not ready yet; try again
    │   ├── EngineUnavailable     down, and not about to come back
    │   ├── EngineBusy            the queue is full
    │   ├── EngineDied            ended in the middle of the turn
    │   ├── EngineTimeout         no answer, or no token, in time
    │   ├── EngineRefused         answered with an error of its own
    │   └── ContextOverflow       the prompt does not fit the context
    └── ReplyError                the engine answered, and the answer is no reply
        ├── TruncatedReply        ended at max_tokens in the middle of an object
        ├── UnknownTool           a call of a tool that was not offered
        ├── InvalidArguments      arguments that do not fit the tool's schema
        └── NotEnforced           text that the turn's grammar does not admit, from an engine proven to enforce
"""

from __future__ import annotations

from typing import Any, ClassVar


class TacidError(Exception):
    """The root of the tree.

    Attributes:
        code: stable name of the error, part of the interface.
        status: the HTTP status that carries it over the socket.
        details: further JSON-ready members, such as ``tool``, ``pointer`` and ``keyword``.
    """

    code: ClassVar[str] = "error"
    status: ClassVar[int] = 500

    def __init__(self, message: str, **details: Any) -> None:
        super().__init__(message)
        self.message = message
        self.details = {key: value for key, value in details.items() if value is not None}

    def to_json(self) -> dict[str, Any]:
        """The body of an error response: ``{"error": {"code", "message", ...details}}``."""
        return {"error": {"code": self.code, "message": self.message, **self.details}}


class InvalidConfiguration(TacidError):
    code = "invalid_configuration"


class InvalidRequest(TacidError):
    code = "invalid_request"
    status = 400


class InvalidTool(InvalidRequest):
    code = "invalid_tool"


class DuplicateTool(InvalidRequest):
    code = "duplicate_tool"


class InvalidToolChoice(InvalidRequest):
    code = "invalid_tool_choice"


class SchemaError(InvalidRequest):
    """A schema that cannot be compiled; says where.

    Args:
        message: one sentence.
        pointer: JSON Pointer (RFC 6901) of the faulty schema, from the root of the tool's parameters.
        keyword: the keyword at fault, if it is one.
        tool: the tool's name, if the schema is a tool's.
    """

    def __init__(self, message: str, *, pointer: str = "", keyword: str | None = None, tool: str | None = None) -> None:
        super().__init__(message, pointer=pointer, keyword=keyword, tool=tool)
        self.pointer = pointer
        self.keyword = keyword
        self.tool = tool

    def for_tool(self, tool: str) -> SchemaError:
        """The same error, naming the tool whose schema it is."""
        return type(self)(f"tool {tool!r}: {self.message}", pointer=self.pointer, keyword=self.keyword, tool=tool)


class InvalidSchema(SchemaError):
    code = "invalid_schema"


class UnsatisfiableSchema(SchemaError):
    code = "unsatisfiable_schema"


class NotExact(InvalidRequest):
    code = "not_exact"


class LimitExceeded(InvalidRequest):
    code = "limit_exceeded"
    status = 413


class EngineError(TacidError):
    code = "engine_error"
    status = 502


class EngineStarting(EngineError):
    code = "engine_starting"
    status = 503


class EngineUnavailable(EngineError):
    code = "engine_unavailable"
    status = 503


class EngineBusy(EngineError):
    code = "engine_busy"
    status = 503


class EngineDied(EngineError):
    code = "engine_died"


class EngineTimeout(EngineError):
    code = "engine_timeout"
    status = 504


class EngineRefused(EngineError):
    code = "engine_refused"


class ContextOverflow(EngineError):
    code = "context_overflow"
    status = 400


class ReplyError(TacidError):
    code = "invalid_reply"
    status = 502


class TruncatedReply(ReplyError):
    code = "truncated"


class UnknownTool(ReplyError):
    code = "unknown_tool"


class InvalidArguments(ReplyError):
    code = "invalid_arguments"


class NotEnforced(ReplyError):
    code = "engine_did_not_enforce"

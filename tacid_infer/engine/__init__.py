"""The engine: launching and minding llama-server, talking to it, proving that it enforces grammars."""

from .client import Dialect, EngineClient, EngineDelta, EngineReply, EngineRequest
from .engine import Endpoint, Engine, SupervisedEngine
from .gpu import Wish
from .lines import Line
from .proof import prove_enforcement
from .settings import EngineSettings, check_socket_path
from .supervisor import REFUSED, Event, State, Supervisor

__all__ = [
    "REFUSED",
    "Dialect",
    "Endpoint",
    "Engine",
    "EngineClient",
    "EngineDelta",
    "EngineReply",
    "EngineRequest",
    "EngineSettings",
    "Event",
    "Line",
    "State",
    "SupervisedEngine",
    "Supervisor",
    "Wish",
    "check_socket_path",
    "prove_enforcement",
]

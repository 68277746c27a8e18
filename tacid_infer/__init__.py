"""tacid-infer: a small local model acts on a machine, and can say only what the machine can read.

Packages, from the bottom up; imports run one way, downward:

- ``regular``  regular languages: character sets, automata, ECMA-262 patterns.
- ``gbnf``     the grammar language: expressions, prefix factoring, checking, writing.
- ``grammar``  the compiler: JSON Schema, and a turn's tools, to a grammar. A library that needs no daemon.
- ``turn``     one turn: denial, the protocol's two tools, narrowing, the catalogue, reading the reply.
- ``engine``   llama-server: launching and minding it, talking to it, proving that it enforces.
- ``service``  the daemon: socket API, allow-list watch, systemd notification, metrics.
"""

__version__ = "0.1.0"

"""The daemon: configuration, the allow-list's file, the socket API, systemd, metrics, and the wiring of it all."""

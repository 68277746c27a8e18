#!/usr/bin/python3
"""What NixOS's switch-to-configuration does for files under /etc and for units, on a machine of the tests.

A unit whose text is the same is left alone; one that differs in X-Reload-Triggers alone is reloaded; any other is
restarted. With ``boot`` in place of ``test``, nothing runs yet.
"""

import os
import subprocess
import sys
from pathlib import Path

GENERATION = Path(__file__).resolve().parent.parent
UNITS = Path("/etc/systemd/system")


def replace_link(link: Path, target: str) -> None:
    fresh = link.with_name(f"{link.name}.tmp")
    fresh.symlink_to(target)
    fresh.replace(link)


def without_trigger(text: str) -> list[str]:
    return [line for line in text.splitlines() if not line.startswith("X-Reload-Triggers=")]


def main(action: str) -> None:
    replace_link(Path("/etc/static"), str(GENERATION / "etc"))
    for folder, _, files in os.walk(GENERATION / "etc"):
        for file in files:
            name = (Path(folder) / file).relative_to(GENERATION / "etc")
            link = Path("/etc") / name
            link.parent.mkdir(parents=True, exist_ok=True)
            if not link.is_symlink():
                link.symlink_to(f"/etc/static/{name}")
    jobs: dict[str, list[str]] = {"reload": [], "restart": []}
    for unit in sorted((GENERATION / "units").iterdir()):
        installed, text = UNITS / unit.name, unit.read_text()
        old = installed.read_text() if installed.exists() else ""
        if old != text:
            installed.write_text(text)
            jobs["reload" if without_trigger(old) == without_trigger(text) else "restart"].append(unit.name)
    if action == "boot":
        return
    subprocess.run(["systemctl", "daemon-reload"], check=True)
    for job, units in jobs.items():
        if units:
            subprocess.run(["systemctl", job, *units], check=True)


if __name__ == "__main__":
    main(sys.argv[1])

#!/usr/bin/python3
"""What NixOS's switch-to-configuration does for files under /etc and for units, on a machine of the tests.

The rules are those of switch-to-configuration-ng for the units that a switch finds active or activating:

- Units are compared by their keys, [Install] left out. Keys of [Unit] that do not touch what runs are passed over. If
  no more than X-Reload-Triggers or ExecReload was changed or added, the unit is reloaded; for every other change it is
  handled as below; with no change it is left alone.
- A changed socket is left as it is: it is made anew only with a service that is stopped and started.
- A changed service with X-ReloadIfChanged is reloaded, with X-RestartIfChanged=false or RefuseManualStop skipped, with
  X-StopIfChanged=false restarted; any other is stopped before, with its socket, and started after, by its socket.
- A unit that is gone is stopped.

Left out, since no test has them: mounts, targets, templates, drop-ins, units that are new. With ``boot`` in place of
``test``, nothing runs yet.
"""

import os
import subprocess
import sys
from pathlib import Path

GENERATION = Path(__file__).resolve().parent.parent
UNITS = Path("/etc/systemd/system")
LIST = Path("/etc/tacid-units")  # The names of the units of the generation that is in force.
IDLE_KEYS = {
    "AllowIsolate", "CollectMode", "Description", "Documentation", "IgnoreOnIsolate", "OnFailure", "OnFailureJobMode",
    "OnSuccess", "RefuseManualStart", "RefuseManualStop", "SourcePath", "StopWhenUnneeded",
}  # fmt: skip
RELOADED = {("Unit", "X-Reload-Triggers"), ("Service", "ExecReload")}


def replace_link(link: Path, target: str) -> None:
    fresh = link.with_name(f"{link.name}.tmp")
    fresh.symlink_to(target)
    fresh.replace(link)


def keys(text: str) -> dict[tuple[str, str], list[str]]:
    """What a unit sets: an empty value takes back those before it."""
    found: dict[tuple[str, str], list[str]] = {}
    section = ""
    for line in text.splitlines():
        if line.startswith("["):
            section = line.strip("[]")
        elif "=" in line and not line.startswith("#") and section != "Install":
            key, _, value = line.partition("=")
            found[section, key] = [*found.get((section, key), []), value] if value else []
    return found


def compare(old: str, new: str) -> str:
    """What the change of a unit asks for: nothing, "reload" or "change"."""
    before, after = keys(old), keys(new)
    changed = {key for key in before.keys() | after.keys() if before.get(key) != after.get(key)}
    changed -= {("Unit", name) for name in IDLE_KEYS}
    changed -= {key for key in RELOADED if key not in after}
    return "" if not changed else "reload" if changed <= RELOADED else "change"


def jobs_of(name: str, text: str) -> dict[str, list[str]]:
    """What is done with an active unit that has changed."""
    if not name.endswith(".service"):
        return {}
    set_to = {
        key: values[-1] for (section, key), values in keys(text).items() if section in ("Service", "Unit") and values
    }
    if set_to.get("X-ReloadIfChanged") == "true":
        return {"reload": [name]}
    if set_to.get("X-RestartIfChanged") == "false" or set_to.get("RefuseManualStop") == "true":
        return {}
    if set_to.get("X-StopIfChanged") == "false":
        return {"restart": [name]}
    socket = f"{name.removesuffix('.service')}.socket"
    if (GENERATION / "units" / socket).exists():
        return {"stop": [socket, name], "start": [socket]}
    return {"stop": [name], "start": [name]}


def is_active(name: str) -> bool:
    done = subprocess.run(["systemctl", "is-active", name], stdout=subprocess.PIPE, text=True, check=False)
    return done.stdout.strip() in ("active", "activating")


def run(job: str, units: list[str]) -> None:
    if units:
        subprocess.run(["systemctl", job, *units], check=True)


def link_etc() -> None:
    replace_link(Path("/etc/static"), str(GENERATION / "etc"))
    for folder, _, files in os.walk(GENERATION / "etc"):
        for file in files:
            name = (Path(folder) / file).relative_to(GENERATION / "etc")
            link = Path("/etc") / name
            link.parent.mkdir(parents=True, exist_ok=True)
            if not link.is_symlink():
                link.symlink_to(f"/etc/static/{name}")


def main(action: str) -> None:
    old = {name: (UNITS / name).read_text() for name in (LIST.read_text().split() if LIST.exists() else [])}
    new = {unit.name: unit.read_text() for unit in (GENERATION / "units").iterdir()}
    jobs: dict[str, list[str]] = {"stop": [], "reload": [], "restart": [], "start": []}
    for name, text in sorted(old.items()) if action != "boot" else []:
        if not is_active(name):
            continue
        asked = compare(text, new[name]) if name in new else "stop"
        for job, units in (jobs_of(name, new[name]) if asked == "change" else {asked: [name]} if asked else {}).items():
            jobs[job] += units
    run("stop", jobs.pop("stop"))
    link_etc()
    for name in old.keys() - new.keys():
        (UNITS / name).unlink()
    for name, text in new.items():
        (UNITS / name).write_text(text)
    LIST.write_text("\n".join(sorted(new)))
    if action == "boot":
        return
    subprocess.run(["systemctl", "daemon-reload"], check=True)
    for job, units in jobs.items():
        run(job, units)


if __name__ == "__main__":
    main(sys.argv[1])

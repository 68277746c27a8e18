# Evaluates module.nix with nothing but nix: the units, files, users, groups and refusals of one machine.
{
  settings ? { },
  module ? ../../../module.nix,
}:
let
  lib = import ./lib.nix;
  pkgs = import ./pkgs.nix { inherit lib; };
  evaluate =
    modules:
    lib.evalModules {
      modules = [
        ./nixos.nix
        module
      ]
      ++ modules;
      args = { inherit pkgs; };
    };
  read =
    evaluated:
    let
      inherit (evaluated) config;
      failed = map (each: each.message) (lib.filter (each: !each.assertion) config.assertions);
    in
    {
      inherit failed;
      inherit (config) warnings units;
      wanted = lib.mapAttrs (_: unit: unit.wantedBy) (
        lib.mapAttrs' (name: lib.nameValuePair "${name}.service") config.systemd.services
        // lib.mapAttrs' (name: lib.nameValuePair "${name}.socket") config.systemd.sockets
      );
      tmpfiles = config.systemd.tmpfiles.rules or [ ];
      etc = lib.mapAttrs (
        name: file: toString (file.source or (pkgs.writeText (baseNameOf name) file.text))
      ) config.environment.etc;
      groups = lib.attrNames config.users.groups;
      users = lib.mapAttrs (_: user: user.extraGroups or [ ]) config.users.users;
    };
  evaluated = evaluate [ settings ];
in
read evaluated
// {
  inherit (evaluated) config;
  options = lib.describe [ ] { services.tacid-infer = evaluated.options.services.tacid-infer; };
  specialisations = lib.mapAttrs (
    _: special:
    read (evaluate [
      settings
      special.configuration
    ])
  ) evaluated.config.specialisation;
}

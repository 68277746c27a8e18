# services.tacid-infer: the daemon as systemd runs it, once or in several instances.
{
  config,
  lib,
  pkgs,
  ...
}:
let
  inherit (lib) mkOption types;
  cfg = config.services.tacid-infer;

  instance = import ./nix/instance.nix { inherit lib pkgs; };
  makeUnits = import ./nix/units.nix { inherit lib pkgs; };
  allowLists = import ./nix/allow-list.nix { inherit lib pkgs; };
  check = import ./nix/checks.nix { inherit lib config; };

  named = lib.mapAttrsToList (name: one: {
    path = "services.tacid-infer.instances.${name}";
    inherit one;
  }) cfg.instances;
  enabled = lib.filter (each: each.one.enable) (
    [
      {
        path = "services.tacid-infer";
        one = cfg;
      }
    ]
    ++ named
  );
  units = map (each: makeUnits each.one) enabled;
  checks = map check enabled;
in
{
  options.services.tacid-infer = mkOption {
    description = "A small local model that can only say what the machine can read, behind a Unix socket.";
    default = { };
    type = types.submodule {
      imports = [ instance ];
      options.enable = lib.mkEnableOption "tacid-infer, which holds a local model to the tools of each turn";
      options.instances = mkOption {
        description = ''
          Further daemons, each with a model, a unit `tacid-infer-NAME` and a socket
          `/run/tacid-infer-NAME/agent.sock` of its own. They do not need `services.tacid-infer.enable`.
        '';
        example = lib.literalExpression ''{ coder.model = "/mnt/big/coder.gguf"; }'';
        default = { };
        type = types.attrsOf (
          types.submodule (
            { name, ... }: {
              imports = [ instance ];
              options.enable = mkOption {
                description = "Whether to run this instance.";
                type = types.bool;
                default = true;
              };
              config.unit = "tacid-infer-${name}";
            }
          )
        );
      };
      config.unit = "tacid-infer";
    };
  };

  config = lib.mkIf (enabled != [ ]) {
    assertions = lib.concatMap (found: found.assertions) checks;
    warnings = lib.concatMap (found: found.warnings) checks;

    users.groups = lib.mkMerge (map (each: { ${each.one.group} = { }; }) enabled);

    systemd.services = lib.mkMerge (map (made: made.services) units);
    systemd.sockets = lib.mkMerge (map (made: made.sockets) units);

    environment.systemPackages = lib.unique (map (each: each.one.package) enabled);
    environment.etc = lib.mkMerge (
      map (each: allowLists.etc each.one) enabled
      # So that `tacid-infer status`, `check` and `complete` need no arguments.
      ++ lib.optional cfg.enable { "tacid-infer/config.toml".source = cfg.configFile; }
    );
  };
}

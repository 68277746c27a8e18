# The options of NixOS that module.nix and the tests' machines define, and the units that NixOS makes of them.
{
  config,
  lib,
  pkgs,
  ...
}:
let
  inherit (lib) mkOption types;
  list = mkOption {
    type = types.listOf types.anything;
    default = [ ];
  };
  set = mkOption {
    type = types.anything;
    default = { };
  };
  text = mkOption {
    type = types.str;
    default = "";
  };

  common = {
    description = text;
    documentation = list;
    wantedBy = list;
    requires = list;
    after = list;
    wants = list;
    unitConfig = set;
  };
  service = {
    environment = set;
    path = list;
    reloadTriggers = list;
    stopIfChanged = mkOption {
      type = types.bool;
      default = true;
    };
    serviceConfig = set;
  };
  socket = {
    listenStreams = list;
    socketConfig = set;
  };

  show =
    value:
    if value == true then
      "true"
    else if value == false then
      "false"
    else
      toString value;
  lines =
    set:
    lib.concatStringsSep "" (
      lib.concatMap (
        name:
        map (one: "${name}=${show one}\n") (if lib.isList set.${name} then set.${name} else [ set.${name} ])
      ) (lib.attrNames set)
    );
  joined = name: items: lib.optionalAttrs (items != [ ]) { ${name} = toString items; };

  render =
    name: unit: middle:
    ''
      [Unit]
      ${lines (
        joined "After" unit.after
        // joined "Documentation" unit.documentation
        // joined "Requires" unit.requires
        // joined "Wants" unit.wants
        // {
          Description = unit.description;
        }
        // lib.optionalAttrs (unit.reloadTriggers or [ ] != [ ]) {
          X-Reload-Triggers = pkgs.writeText "X-Reload-Triggers-${name}" (toString unit.reloadTriggers);
        }
        // unit.unitConfig
      )}
      ${middle}''
    + lib.optionalString (unit.wantedBy != [ ]) ''

      [Install]
      WantedBy=${toString unit.wantedBy}
    '';
  ofService =
    name: unit:
    render name unit ''
      [Service]
      ${
        lib.concatStringsSep "" (
          lib.mapAttrsToList (
            key: value: "Environment=${builtins.toJSON "${key}=${value}"}\n"
          ) unit.environment
        )
      }${lib.optionalString (!unit.stopIfChanged) "X-StopIfChanged=false\n"}${lines unit.serviceConfig}'';
  ofSocket =
    name: unit:
    render name unit ''
      [Socket]
      ${lines unit.socketConfig}${
        lib.concatMapStringsSep "" (path: "ListenStream=${path}\n") unit.listenStreams
      }'';
  suffixed =
    suffix: f: lib.mapAttrs' (name: unit: lib.nameValuePair "${name}.${suffix}" (f name unit));
in
{
  freeformType = types.anything;
  options = {
    assertions = list;
    warnings = list;
    environment.systemPackages = list;
    environment.etc = mkOption {
      type = types.attrsOf types.anything;
      default = { };
    };
    hardware.graphics.enable = mkOption {
      type = types.bool;
      default = false;
    };
    users.groups = mkOption {
      type = types.attrsOf types.anything;
      default = { };
    };
    users.users = mkOption {
      type = types.attrsOf types.anything;
      default = { };
    };
    specialisation = mkOption {
      type = types.attrsOf (types.submodule { options.configuration = mkOption { type = types.raw; }; });
      default = { };
    };
    systemd.services = mkOption {
      type = types.attrsOf (types.submodule { options = common // service; });
      default = { };
    };
    systemd.sockets = mkOption {
      type = types.attrsOf (types.submodule { options = common // socket; });
      default = { };
    };
    units = mkOption { type = types.anything; };
  };
  config.units =
    suffixed "service" ofService config.systemd.services
    // suffixed "socket" ofSocket config.systemd.sockets;
}

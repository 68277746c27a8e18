# The services that a machine has, as a file under /etc. The daemon compares the file at every turn, so that a switch
# needs no restart; the unit reloads, so that the journal tells of the change at once.
{ lib, pkgs }:
let
  content =
    list: if lib.isList list then { services = list; } else { inherit (list) services exact; };
in
rec {
  # Where an instance finds its list: the machine's, or one of its own.
  path = one: "/etc/${target one}";
  target =
    one:
    if one.allowList == null || one.unit == "tacid-infer" then
      "tacid-system/services.json"
    else
      "tacid-system/${one.unit}.json";

  file = one: pkgs.writeText "services.json" (builtins.toJSON (content one.allowList));

  etc = one: lib.optionalAttrs (one.allowList != null) { ${target one}.source = file one; };
}

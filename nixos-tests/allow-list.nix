# A switch to another allow-list is in force at the next turn, with no restart; a switch to another model, package or
# setting restarts the daemon, and one that changes nothing leaves it alone.
{
  name = "tacid-infer-allow-list";
  nodes.machine = { lib, pkgs, ... }: {
    imports = [ ./machine.nix ];
    services.tacid-infer = import ./model.nix { inherit pkgs; } // {
      enable = true;
      allowList = [
        "nginx"
        "sshd"
      ];
    };
    specialisation = {
      other.configuration.services.tacid-infer.allowList = lib.mkForce [ "caddy" ];
      none.configuration.services.tacid-infer.allowList = lib.mkForce {
        services = [ ];
        exact = true;
      };
      setting.configuration.services.tacid-infer.settings.engine.parallel = 2;
      package.configuration.services.tacid-infer.package = pkgs.symlinkJoin {
        name = "tacid-infer-other";
        paths = [ pkgs.tacid-infer ];
      };
      model.configuration.services.tacid-infer.model = lib.mkForce (
        pkgs.runCommand "other-model" { } "cp ${(import ./model.nix { inherit pkgs; }).model} $out"
      );
    };
  };
  testScript = builtins.readFile ./allow-list.py;
}

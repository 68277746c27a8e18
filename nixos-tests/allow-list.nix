# A switch to another allow-list is in force at the next turn, with no restart.
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
    };
  };
  testScript = builtins.readFile ./allow-list.py;
}

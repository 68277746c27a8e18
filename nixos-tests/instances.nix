# Two daemons side by side, each with a model, a socket, a group and an allow-list of its own.
{
  name = "tacid-infer-instances";
  nodes.machine = { pkgs, ... }: {
    imports = [ ./machine.nix ];
    services.tacid-infer = import ./model.nix { inherit pkgs; } // {
      enable = true;
      allowList = [ "nginx" ];
      instances.second = import ./model.nix { inherit pkgs; } // {
        group = "second-agent";
        allowList = [ "caddy" ];
        startWhenNeeded = true;
      };
    };
  };
  testScript = builtins.readFile ./instances.py;
}

# One daemon with a real engine, from boot to stop.
{
  name = "tacid-infer-engine";
  nodes.machine = { pkgs, ... }: {
    imports = [ ./machine.nix ];
    services.tacid-infer = import ./model.nix { inherit pkgs; } // {
      enable = true;
      allowList = [
        "nginx"
        "sshd"
        "postgresql"
      ];
    };
  };
  testScript = builtins.readFile ./engine.py;
}

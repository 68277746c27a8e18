# What systemd's clocks end, and what they let be: a long load, one without an end, an event loop that is stuck.
{
  name = "tacid-infer-clocks";
  nodes.machine =
    { lib, pkgs, ... }:
    let
      tiny = import ./model.nix { inherit pkgs; };
      after = seconds: settings: {
        settings = tiny.settings // {
          engine =
            tiny.settings.engine
            // settings
            // {
              command = [
                "/bin/sh"
                "/etc/late.sh"
                seconds
              ];
            };
        };
      };
    in
    {
      imports = [ ./machine.nix ];
      environment.etc."late.sh".text = ''
        sleep "$1" && shift && exec ${pkgs.llama-cpp}/bin/llama-server "$@"
      '';
      services.tacid-infer =
        tiny
        // after "15" { }
        // {
          enable = true;
          instances.never = tiny // after "infinity" { start_timeout = 3; };
        };
      # As if the model took two hundred seconds, and the time to start were NixOS's usual ninety.
      systemd.services.tacid-infer.serviceConfig.TimeoutStartSec = lib.mkForce 6;
      systemd.services.tacid-infer-never.serviceConfig.TimeoutStartSec = lib.mkForce 6;
    };
  testScript = builtins.readFile ./clocks.py;
}

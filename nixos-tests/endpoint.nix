# A daemon that uses an engine on another machine, with a key.
{
  name = "tacid-infer-endpoint";
  nodes.server = { pkgs, ... }: {
    networking.firewall.allowedTCPPorts = [ 8080 ];
    systemd.tmpfiles.rules = [ "f /var/lib/engine-key 0644 root root - swordfish" ];
    systemd.services.llama-server = {
      wantedBy = [ "multi-user.target" ];
      after = [ "network.target" ];
      serviceConfig = {
        ExecStart =
          "${pkgs.llama-cpp}/bin/llama-server --host 0.0.0.0 --port 8080 --no-jinja --chat-template chatml"
          + " --ctx-size 8192 --threads 1 --api-key-file /var/lib/engine-key --model ${
             (import ./model.nix { inherit pkgs; }).model
           }";
        DynamicUser = true;
      };
    };
    virtualisation.memorySize = 2048;
  };
  nodes.machine = { pkgs, ... }: {
    imports = [ ./machine.nix ];
    systemd.tmpfiles.rules = [ "f /var/lib/engine-key 0600 root root - swordfish" ];
    services.tacid-infer = {
      enable = true;
      engine = {
        url = "http://server:8080";
        apiKeyFile = "/var/lib/engine-key";
      };
      settings = {
        inherit ((import ./model.nix { inherit pkgs; }).settings) sampling;
        log.level = "debug";
      };
    };
  };
  testScript = builtins.readFile ./endpoint.py;
}

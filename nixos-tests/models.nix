# Models at paths that other services stumble over, and an engine that wants to write everywhere.
{
  name = "tacid-infer-models";
  nodes.machine =
    { pkgs, ... }:
    let
      tiny = import ./model.nix { inherit pkgs; };
    in
    {
      imports = [ ./machine.nix ];
      environment.etc."tiny.gguf".source = tiny.model;
      environment.etc."engine.sh".text = ''
        echo here >> "$HOME/home"
        echo here >> "$XDG_CACHE_HOME/cache"
        echo here >> "''${TMPDIR:-/tmp}/temporary"
        for folder in /.cache /etc /mnt/big /usr /var/lib /run; do
          mkdir -p "$folder" && echo here > "$folder/engine-was-here"
        done 2>/dev/null
        exec ${pkgs.llama-cpp}/bin/llama-server "$@"
      '';
      services.tacid-infer = {
        enable = true;
        model = "/mnt/big/m.gguf";
        settings = tiny.settings // {
          engine = tiny.settings.engine // {
            command = [
              "/bin/sh"
              "/etc/engine.sh"
            ];
          };
        };
        instances.home = tiny // {
          model = "/home/alice/m.gguf";
        };
        instances.split = tiny // {
          model = "/mnt/big/x-00001-of-00002.gguf";
        };
      };
    };
  testScript = builtins.readFile ./models.py;
}

# A daemon that must have its GPU waits for the device, and the sandbox stays narrow with it.
{
  name = "tacid-infer-gpu";
  nodes.machine = { pkgs, ... }: {
    imports = [ ./machine.nix ];
    services.tacid-infer = import ./model.nix { inherit pkgs; } // {
      enable = true;
      acceleration = "rocm";
      requireGpu = true;
      # What is tried here is the unit; there is no GPU to build an engine for, or to be reported by one.
      engine.package = pkgs.llama-cpp;
      settings.engine.gpu = "expected";
    };
  };
  testScript = builtins.readFile ./gpu.py;
}

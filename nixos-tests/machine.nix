# What the tests' machines share: the module, a tiny model, one user who may connect, and one who may not.
{ pkgs, ... }:
{
  imports = [ ../module.nix ];
  environment.systemPackages = [ pkgs.curl ];
  users.users.alice = {
    isNormalUser = true;
    extraGroups = [ "tacid-agent" ];
  };
  users.users.bob.isNormalUser = true;
  virtualisation = {
    memorySize = 2048;
    cores = 2;
  };
}

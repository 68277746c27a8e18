# The tiny model, and how its daemon is set: its weights are random, so every reply is a random walk through the grammar.
{ pkgs }:
{
  model = pkgs.tacid-infer-tiny-model or (pkgs.callPackage ../nix/tiny-model.nix { });
  settings = {
    engine = {
      context_tokens = 8192;
      threads = 1;
    };
    sampling = {
      temperature = 1.5;
      max_tokens = 2000;
      # Random to the byte, it would say broken UTF-8: token 3 + n is the byte n.
      logit_bias = builtins.genList (byte: [
        (3 + 128 + byte)
        false
      ]) 128;
    };
  };
}

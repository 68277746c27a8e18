{
  description = "tacid-infer: a small local model acts on a machine, and can only say what the machine can read";

  inputs.nixpkgs.url = "github:NixOS/nixpkgs/nixos-26.05";

  outputs =
    { self, nixpkgs }:
    let
      inherit (nixpkgs) lib;
      systems = [
        "x86_64-linux"
        "aarch64-linux"
      ];
      forEach =
        f:
        lib.genAttrs systems (
          system:
          f (
            import nixpkgs {
              inherit system;
              overlays = [ self.overlays.default ];
            }
          )
        );
      scripts = lib.filter (lib.hasSuffix ".py") (lib.attrNames (builtins.readDir ./nixos-tests));
      testNames = map (lib.removeSuffix ".py") scripts;
      types = pkgs: pkgs.callPackage ./nix/types-jsonschema.nix { };
      vmTests = pkgs: lib.genAttrs testNames (name: pkgs.testers.runNixOSTest ./nixos-tests/${name}.nix);
    in
    {
      overlays.default = final: _: {
        tacid-infer = final.callPackage ./nix/package.nix { tests = vmTests final; };
        tacid-infer-tiny-model = final.callPackage ./nix/tiny-model.nix { };
      };

      nixosModules.default = ./module.nix;

      packages = forEach (pkgs: {
        default = pkgs.tacid-infer;
        tacid-infer = pkgs.tacid-infer;
        tacid-infer-tiny-model = pkgs.tacid-infer-tiny-model;
        # The reference in docs/options.md, as NixOS's own tools render it.
        options-doc =
          (pkgs.nixosOptionsDoc {
            options.services.tacid-infer =
              (lib.nixosSystem {
                modules = [
                  self.nixosModules.default
                  { nixpkgs.hostPlatform = pkgs.stdenv.hostPlatform.system; }
                ];
              }).options.services.tacid-infer;
            transformOptions = option: option // { declarations = [ ]; };
          }).optionsCommonMark;
      });

      apps = forEach (pkgs: {
        default = {
          type = "app";
          program = lib.getExe pkgs.tacid-infer;
          meta.description = "The daemon and its command";
        };
        demo = {
          type = "app";
          meta.description = "A small model calls a tool that it could not have called without the grammar";
          program = lib.getExe (
            pkgs.writeShellApplication {
              name = "tacid-infer-demo";
              runtimeInputs = [
                pkgs.tacid-infer
                pkgs.llama-cpp
              ];
              text = ''exec tacid-infer demo --model ${pkgs.callPackage ./nix/demo-model.nix { }} "$@"'';
            }
          );
        };
      });

      checks = forEach (
        pkgs:
        let
          python = pkgs.python3.withPackages (
            packages:
            pkgs.tacid-infer.dependencies
            ++ [
              packages.numpy
              (types pkgs)
            ]
          );
          lint =
            name: inputs: script:
            pkgs.runCommand "tacid-infer-${name}" { nativeBuildInputs = inputs; } ''
              cp -r ${self} tree && chmod -R u+w tree && cd tree && export HOME=$TMPDIR
              ${script}
              touch $out
            '';
        in
        {
          package = pkgs.tacid-infer;
          ruff = lint "ruff" [ pkgs.ruff ] "ruff check . && ruff format --check .";
          mypy = lint "mypy" [ pkgs.mypy ] "mypy --python-executable ${python}/bin/python";
          nixfmt = lint "nixfmt" [ pkgs.nixfmt ] "find . -name '*.nix' -exec nixfmt --check {} +";
        }
        // vmTests pkgs
      );

      formatter = forEach (pkgs: pkgs.nixfmt-tree);

      devShells = forEach (pkgs: {
        default = pkgs.mkShell {
          inputsFrom = [ pkgs.tacid-infer ];
          packages = [
            pkgs.llama-cpp
            pkgs.mypy
            pkgs.nixfmt
            pkgs.ruff
          ]
          ++ (with pkgs.python3Packages; [
            gguf
            hypothesis
            pytest
            (types pkgs)
          ]);
        };
      });
    };
}

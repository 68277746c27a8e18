# The options of one daemon, and what follows from them for its configuration file.
{ lib, pkgs }:
{ config, ... }:
let
  inherit (lib)
    mkDefault
    mkIf
    mkOption
    types
    literalExpression
    ;
  acceleration = import ./acceleration.nix;
  allowLists = import ./allow-list.nix { inherit lib pkgs; };
  toml = pkgs.formats.toml { };

  # Taken as it is, so that checks.nix can refuse a path literal with a sentence before Nix copies the file.
  file = lib.mkOptionType {
    name = "file";
    description = "absolute path as a string, or derivation";
    descriptionClass = "noun";
    check = value: lib.isStringLike value || builtins.isPath value;
    merge = lib.mergeEqualOption;
  };

  # toString, unlike interpolation, does not copy what a path literal names.
  asString = value: if value == null then null else toString value;

  # TOML has no null: a key that is not set is left out.
  without =
    value:
    if lib.isAttrs value then
      lib.mapAttrs (_: without) (lib.filterAttrs (_: inner: inner != null) value)
    else
      value;
in
{
  options = {
    unit = mkOption {
      internal = true;
      type = types.str;
      description = "Name of the systemd unit, without its suffix.";
    };

    package = mkOption {
      description = "The tacid-infer package.";
      type = types.package;
      default = pkgs.tacid-infer or (pkgs.callPackage ./package.nix { });
      defaultText = literalExpression "pkgs.tacid-infer, or else the package of this source tree";
    };

    model = mkOption {
      description = ''
        The GGUF file: a string with its absolute path, or a derivation such as `pkgs.fetchurl { … }`. The service waits
        for the file system that holds it. For a split model, the first part.

        A path literal (without quotes) is refused, since Nix would copy the weights into the store. A file under
        `/home` or `/root` is out of the service's sight; others must be readable for every user.
      '';
      type = types.nullOr file;
      default = null;
      example = "/mnt/models/qwen3-4b-q4_k_m.gguf";
    };

    acceleration = mkOption {
      description = ''
        The GPU to use: builds the engine for it, and opens exactly its device nodes and groups to the service. `null`
        is the CPU alone; the service then sees no device at all.
      '';
      type = types.nullOr (
        types.enum [
          "cuda"
          "rocm"
          "vulkan"
        ]
      );
      default = null;
      example = "vulkan";
    };

    requireGpu = mkOption {
      description = ''
        Whether to be ready only with the GPU: as long as its device nodes are missing, or the engine reports no layer
        on it, the service is not ready, says why, and tries again. Otherwise it starts on the CPU with a warning, and a
        GPU that appears after the start is not used until a restart.
      '';
      type = types.bool;
      default = false;
    };

    extraDevices = mkOption {
      description = ''
        Further devices that the service may use, as systemd's `DeviceAllow` names them.
      '';
      type = types.listOf types.nonEmptyStr;
      default = [ ];
      example = [
        "/dev/dxg"
        "char-nvidia*"
      ];
    };

    engine = {
      package = lib.mkPackageOption pkgs "llama-cpp" {
        extraDescription = "By default it is built for `acceleration`. It must provide `llama-server`.";
      };

      extraArgs = mkOption {
        description = ''
          Further flags of llama-server. Those that contradict the daemon's own are refused when it starts.
        '';
        type = types.listOf types.str;
        default = [ ];
        example = [
          "--flash-attn"
          "on"
          "--mlock"
        ];
      };

      url = mkOption {
        description = ''
          Base url of an engine that runs elsewhere: `http://…`, `https://…` or `unix:/path`. No engine is launched then.
          The network is closed to the service unless this is an `http` or `https` url.
        '';
        type = types.nullOr types.str;
        default = null;
        example = "http://gpu-box.lan:8080";
      };

      kind = mkOption {
        description = ''
          What stands at `engine.url`: a `local` engine (llama-server, vLLM) is sent the grammar, a `remote` one, which
          guarantees the form of a tool call by itself, is sent the tools alone.
        '';
        type = types.enum [
          "local"
          "remote"
        ];
        default = "local";
      };

      honoursTools = mkOption {
        description = "Whether the local engine at `engine.url` reads tools (vLLM does); it is then sent both.";
        type = types.bool;
        default = false;
      };

      model = mkOption {
        description = "The model's name to ask for at `engine.url`.";
        type = types.nullOr types.nonEmptyStr;
        default = null;
      };

      apiKeyFile = mkOption {
        description = ''
          File that holds the API key for `engine.url`: a string with an absolute path outside the store, readable for
          root alone. It reaches the service as a systemd credential; the key is in no command line, unit or log.
        '';
        type = types.nullOr file;
        default = null;
        example = "/run/secrets/engine-key";
      };
    };

    allowList = mkOption {
      description = ''
        The services that the model may name, written to `/etc/tacid-system/services.json` (for an instance: to a file
        of its own). A switch that changes them applies at the next turn, with no restart. An empty list narrows
        nothing; `{ services = [ ]; exact = true; }` admits no service at all. `null` leaves the file to you.
      '';
      type = types.nullOr (
        types.either (types.listOf types.nonEmptyStr) (
          types.submodule {
            options = {
              services = mkOption {
                description = "Names of the services.";
                type = types.listOf types.nonEmptyStr;
                default = [ ];
              };
              exact = mkOption {
                description = "Whether an empty list means no service, in place of any.";
                type = types.bool;
                default = false;
              };
            };
          }
        )
      );
      default = null;
      example = [
        "nginx"
        "sshd"
      ];
    };

    group = mkOption {
      description = "Group whose members may connect to the socket. It is created.";
      type = types.nonEmptyStr;
      default = "tacid-agent";
    };

    environment = mkOption {
      description = "Environment variables of the daemon, which the engine inherits. They are world-readable.";
      type = types.attrsOf types.str;
      default = { };
      example = {
        HSA_OVERRIDE_GFX_VERSION = "10.3.0";
      };
    };

    startWhenNeeded = mkOption {
      description = "Whether to load the model when an agent first connects, in place of at boot.";
      type = types.bool;
      default = false;
    };

    settings = mkOption {
      description = ''
        The daemon's configuration (`tacid-infer serve --help` lists the keys). What the options above say is filled in.
        `settings.sampling` takes every sampling parameter of llama-server.
      '';
      default = { };
      example = {
        engine.context_tokens = 16384;
        sampling.dry_multiplier = 0.8;
      };
      type = types.submodule {
        freeformType = toml.type;
        options = import ./settings.nix { inherit lib; };
      };
    };

    socket = mkOption {
      description = "Path of the agents' socket, for other modules to refer to.";
      type = types.str;
      readOnly = true;
      default = "/run/${config.unit}/agent.sock";
      defaultText = "/run/tacid-infer/agent.sock";
    };

    configFile = mkOption {
      internal = true;
      description = "The daemon's configuration file.";
      type = types.path;
      readOnly = true;
      default = toml.generate "${config.unit}.toml" (without config.settings);
      defaultText = "generated from settings";
    };
  };

  config = {
    engine.package = mkIf (config.acceleration != null) (
      mkDefault (pkgs.llama-cpp.override acceleration.${config.acceleration}.build)
    );

    settings = {
      socket = {
        path = mkDefault config.socket;
        group = mkDefault config.group;
      };
      allow_list.path = mkDefault (allowLists.path config);
      engine = mkIf (config.engine.url == null) {
        command = mkDefault [ "${config.engine.package}/bin/llama-server" ];
        model = mkDefault (asString config.model);
        socket = mkDefault "/run/${config.unit}/engine/engine.sock";
        gpu = mkDefault (
          if config.requireGpu then
            "required"
          else if config.acceleration != null then
            "expected"
          else
            null
        );
        extra_args = mkDefault config.engine.extraArgs;
      };
      endpoint = mkIf (config.engine.url != null) {
        url = mkDefault config.engine.url;
        kind = mkDefault config.engine.kind;
        honours_tools = mkDefault config.engine.honoursTools;
        model = mkDefault config.engine.model;
        # systemd.exec(5), LoadCredential.
        api_key_file = mkDefault (
          if config.engine.apiKeyFile == null then null else "/run/credentials/${config.unit}.service/api-key"
        );
      };
    };
  };
}

# The daemon's configuration file: every key that it knows, typed. A key that is not set is left out of the file.
{ lib }:
let
  inherit (lib) types;
  key =
    type: description:
    lib.mkOption {
      inherit description;
      type = types.nullOr type;
      default = null;
      defaultText = lib.literalMD "the daemon's own";
    };
  seconds = types.numbers.nonnegative;
  count = types.ints.positive;
in
{
  socket = {
    path = key types.str "Path of the agents' Unix socket. Here systemd listens on it; see `socket`.";
    group = key types.str "Group that may connect. Set `group` instead.";
    mode = key types.str "Permissions of the socket, octal.";
  };
  engine = {
    command = key (types.either types.str (types.listOf types.str)) "llama-server and its leading arguments. By default the one of `engine.package`.";
    model = key types.str "Path of the GGUF file. Set `model` instead.";
    socket = key types.str "Path of the engine's private Unix socket.";
    context_tokens = key count "Context of one turn, in tokens.";
    parallel = key count "Turns that the engine serves at once.";
    threads = key types.ints.unsigned "CPU threads; 0 leaves it to the engine.";
    gpu_layers = key types.ints.unsigned "Layers to offload to the GPU; unset, the engine offloads what fits.";
    gpu =
      key
        (types.enum [
          "optional"
          "expected"
          "required"
        ])
        "Whether to warn, or not to be ready, while no layer is on a GPU. By `acceleration` and `requireGpu`.";
    extra_args = key (types.listOf types.str) "Further flags of llama-server. Set `engine.extraArgs` instead.";
    start_timeout = key seconds "Seconds in which the model must load; the unit's time to start follows it.";
    stop_timeout = key seconds "Seconds between the engine's SIGTERM and its SIGKILL.";
    health_interval = key seconds "Seconds between two looks at an idle engine.";
    health_timeout = key seconds "Seconds that an idle engine has to answer.";
  };
  endpoint = {
    url = key types.str "Base url of an engine of one's own. Set `engine.url` instead.";
    kind = key (types.enum [
      "local"
      "remote"
    ]) "Whether the endpoint is sent the grammar. Set `engine.kind` instead.";
    honours_tools = key types.bool "Whether a local endpoint is sent the tools, too. Set `engine.honoursTools` instead.";
    model = key types.str "The model's name to ask an endpoint for.";
    api_key_file = key types.str "File that holds the API key. Set `engine.apiKeyFile` instead.";
  };
  allow_list = {
    path = key types.str "Path of the allow-list. See `allowList`.";
  };
  sampling = {
    temperature = key types.numbers.nonnegative "Sampling temperature of a turn that names none.";
    max_tokens = key count "Tokens of one reply at most.";
  };
  limits = {
    body_bytes = key count "Bytes of a request.";
    tools = key count "Tools of a turn.";
    schema_bytes = key count "Bytes of one tool's schema.";
    nesting = key count "Levels of JSON in a request.";
    queue = key types.ints.unsigned "Turns that may wait for the engine.";
    turn_seconds = key seconds "Seconds of a turn, waiting included.";
    silence_seconds = key seconds "Seconds between two tokens.";
    read_seconds = key seconds "Seconds in which a request must have come.";
    write_seconds = key seconds "Seconds in which a caller must take some of its reply.";
    connections = key count "Connections that may be open at once.";
    drain_seconds = key seconds "Seconds that running turns have when the daemon stops.";
  };
  log = {
    level = key (types.enum [
      "debug"
      "info"
      "warning"
      "error"
    ]) "Least severe level that is logged.";
  };
}

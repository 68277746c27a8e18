# What is refused, and what is warned about, before anything is built; each with what to do.
{ lib, config }:
{ path, one }:
let
  inherit (one) engine;
  given = value: value != null;
  isLiteral = value: builtins.isPath value;
  text = value: if given value then toString value else "";
  inHome =
    value:
    lib.any (folder: lib.hasPrefix folder (text value)) [
      "/home/"
      "/root/"
      "/run/user/"
    ];
  secretFlags = [
    "--api-key"
    "--hf-token"
    "-hft"
  ];
  isSecretFlag =
    flag: lib.any (secret: flag == secret || lib.hasPrefix "${secret}=" flag) secretFlags;
  args =
    engine.extraArgs
    ++ lib.optionals (given one.settings.engine.extra_args) one.settings.engine.extra_args;
  secretNames = lib.filter (name: builtins.match ".*(API_KEY|TOKEN|SECRET|PASSWORD)" name != null) (
    lib.attrNames one.environment
  );
  owner = name: "set ${path}.${name} instead of ${path}.settings";
  ifSet = value: expected: value == null || value == expected;

  refuse = { wrong, message }: {
    assertion = !wrong;
    inherit message;
  };
  warn = all: map (each: each.message) (lib.filter (each: each.wrong) all);
in
{
  assertions = map refuse [
    {
      wrong = !given one.model && !given engine.url;
      message = "${path}.model is not set: give the absolute path of a GGUF file as a string, or a derivation; or set ${path}.engine.url to use an engine that runs elsewhere.";
    }
    {
      wrong = given one.model && given engine.url;
      message = "${path}: model and engine.url are both set. Keep model to have the engine launched here, or engine.url to use one that runs elsewhere.";
    }
    {
      wrong = isLiteral one.model;
      message = "${path}.model is the path literal ${text one.model}, which Nix would copy into the store, with all its gigabytes, at each evaluation. Write it in quotes: \"${text one.model}\".";
    }
    {
      wrong = given one.model && !lib.hasPrefix "/" (text one.model);
      message = "${path}.model is \"${text one.model}\", which is relative, and a service has no folder to start from. Give an absolute path.";
    }
    {
      wrong = given one.model && !ifSet one.settings.engine.model (text one.model);
      message = "${path}.settings.engine.model differs from model: ${owner "model"}.engine.model, so that it is checked and its file system is waited for.";
    }
    {
      wrong = !ifSet one.settings.socket.path one.socket;
      message = "${path}.settings.socket.path cannot be changed: systemd listens on ${one.socket}. Use another instance for another socket.";
    }
    {
      wrong = !ifSet one.settings.socket.group one.group;
      message = "${path}: ${owner "group"}.socket.group: systemd gives the socket to it.";
    }
    {
      wrong = one.group == one.unit;
      message = "${path}.group is \"${one.group}\", which is the name of the daemon's own, dynamic user. Take another name, such as tacid-agent.";
    }
    {
      wrong = given engine.url && builtins.match "(https?://.+|unix:/.+)" engine.url == null;
      message = "${path}.engine.url is \"${text engine.url}\". It must begin with http://, https:// or unix:/.";
    }
    {
      wrong =
        given engine.apiKeyFile
        && (isLiteral engine.apiKeyFile || lib.hasPrefix "/nix/store/" (text engine.apiKeyFile));
      message = "${path}.engine.apiKeyFile is in the store, or would be copied there, where every user can read it. Give a string with a path outside the store, such as \"/run/secrets/engine-key\".";
    }
    {
      wrong = given engine.apiKeyFile && !lib.hasPrefix "/" (text engine.apiKeyFile);
      message = "${path}.engine.apiKeyFile must be the absolute path of a file that holds the key. The key itself would be readable for every user; put it into a file.";
    }
    {
      wrong = given engine.apiKeyFile && !given engine.url;
      message = "${path}.engine.apiKeyFile is for engine.url, which is not set. The engine that is launched here needs no key, since its socket is private.";
    }
    {
      wrong = lib.any isSecretFlag args;
      message = "${path}.engine.extraArgs holds a key, which would stand in the store and in the list of processes. Take it out; for an engine elsewhere there is engine.apiKeyFile.";
    }
    {
      wrong = given one.acceleration && given engine.url;
      message = "${path}.acceleration is set, but the engine runs at engine.url. Take acceleration out here, and set it there.";
    }
    {
      wrong = one.requireGpu && !given one.acceleration;
      message = "${path}.requireGpu needs acceleration: say which GPU is meant.";
    }
    {
      wrong = builtins.match "[a-z0-9]([a-z0-9_-]{0,29}[a-z0-9])?" one.unit == null;
      message = "${path}: \"${one.unit}\" is the name of a unit and of its user. Take a name of small letters, digits, - and _, of at most 19 characters.";
    }
  ];

  warnings = warn [
    {
      wrong = inHome one.model && !isLiteral one.model;
      message = "${path}.model is ${text one.model}, and the service cannot look into /home, /root and /run/user. Move the file, for example to /var/lib/models, where every user may read it.";
    }
    {
      wrong =
        lib.elem one.acceleration [
          "cuda"
          "vulkan"
        ]
        && !config.hardware.graphics.enable;
      message = "${path}.acceleration is ${text one.acceleration}, but hardware.graphics.enable is false: the driver's libraries may not be found, and the engine then runs on the CPU.";
    }
    {
      wrong = secretNames != [ ];
      message = "${path}.environment is readable for every user, and ${lib.concatStringsSep ", " secretNames} looks like a secret. For the key of engine.url there is engine.apiKeyFile.";
    }
    {
      wrong =
        given engine.apiKeyFile
        && lib.hasPrefix "http://" (text engine.url)
        && builtins.match "http://(localhost|127\\.[0-9.]+|\\[::1])([:/].*)?" (text engine.url) == null;
      message = "${path}.engine.url is not encrypted, and the key of engine.apiKeyFile is sent over it. Use https://.";
    }
  ];
}

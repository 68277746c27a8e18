# One daemon's service and socket.
{ lib, pkgs }:
one:
let
  acceleration = import ./acceleration.nix;
  allowLists = import ./allow-list.nix { inherit lib pkgs; };
  inherit (one) unit settings;

  gpu = if one.acceleration == null then null else acceleration.${one.acceleration};
  devices = lib.optionals (gpu != null) gpu.devices ++ one.extraDevices;
  hasDevices = devices != [ ];

  launches = one.engine.url == null;
  url = if launches then "" else one.engine.url;
  network = lib.hasPrefix "http" url;
  loopback = builtins.match "https?://(localhost|127\\.[0-9.]+|\\[::1])([:/].*)?" url != null;
  literal = builtins.match "https?://([0-9]+\\.[0-9]+\\.[0-9]+\\.[0-9]+|\\[([0-9a-fA-F:]+)])([:/].*)?" url;
  # What may be reached; null where the url has a host's name, which may come to stand for any address.
  addresses =
    if !network then
      [ ]
    else if loopback then
      [ "localhost" ]
    else if literal != null then
      [ (orElse (lib.head literal) (builtins.elemAt literal 1)) ]
    else
      null;

  orElse = default: value: if value == null then default else value;
  startSeconds = builtins.ceil (orElse 600 settings.engine.start_timeout);
  stopSeconds = builtins.ceil (
    orElse 10 settings.engine.stop_timeout + orElse 20 settings.limits.drain_seconds
  );

  home = "/var/cache/${unit}";

  waitForGpu = pkgs.writeText "wait-for-gpu.sh" ''
    ${gpu.present} >/dev/null 2>&1 && exit 0
    echo "<3>the ${one.acceleration} device is not there yet: trying again (requireGpu)" >&2
    exit 1
  '';
in
{
  sockets.${unit} = {
    description = "Socket of ${unit}";
    wantedBy = [ "sockets.target" ];
    listenStreams = [ one.socket ];
    socketConfig = {
      SocketUser = "root";
      SocketGroup = one.group;
      SocketMode = "0660";
      DirectoryMode = "0755";
      RemoveOnStop = true;
    };
  };

  services.${unit} = {
    description = "tacid-infer, a local model held to its tools";
    documentation = [ "file:${one.package}/share/doc/tacid-infer/README.md" ];
    wantedBy = lib.optional (!one.startWhenNeeded) "multi-user.target";
    requires = [ "${unit}.socket" ];
    after = [
      "${unit}.socket"
    ]
    ++ lib.optionals network [
      "network-online.target"
      "nss-lookup.target"
    ];
    wants = lib.optional network "network-online.target";

    # A new list needs a reload at most; all else stands in ExecStart and so restarts the daemon.
    reloadTriggers = lib.optional (one.allowList != null) (allowLists.file one);
    # The socket stays open over a restart: who connects meanwhile waits.
    stopIfChanged = false;

    environment = {
      HOME = home;
      XDG_CACHE_HOME = home;
    }
    // one.environment;

    unitConfig = {
      # Each try comes later than the one before, up to a minute; systemd never gives up.
      StartLimitIntervalSec = 0;
    }
    // lib.optionalAttrs (one.model != null && !lib.hasPrefix "/nix/store/" (toString one.model)) {
      RequiresMountsFor = toString one.model;
    };

    serviceConfig = {
      Type = "notify-reload";
      ExecStart = "${one.package}/bin/tacid-infer serve --config ${one.configFile}";
      WatchdogSec = 30;
      TimeoutStartSec = startSeconds + 120;
      TimeoutStopSec = stopSeconds + 15;
      KillMode = "mixed";
      Restart = "always";
      RestartSec = "500ms";
      RestartSteps = 6;
      RestartMaxDelaySec = 60;
      # The daemon minds the engine: one that the kernel killed for its memory is started again by it.
      OOMPolicy = "continue";

      DynamicUser = true;
      User = unit;
      # Below the folder that holds the agents' socket, which must outlive the service.
      RuntimeDirectory = "${unit}/engine";
      RuntimeDirectoryMode = "0700";
      StateDirectory = unit;
      StateDirectoryMode = "0700";
      CacheDirectory = unit;
      CacheDirectoryMode = "0700";
      WorkingDirectory = home;
      UMask = "0077";

      PrivateNetwork = !network;
      RestrictAddressFamilies = [
        "AF_UNIX"
      ]
      ++ lib.optionals network [
        "AF_INET"
        "AF_INET6"
      ];

      PrivateDevices = !hasDevices;
      DevicePolicy = "closed";
      DeviceAllow = map (device: "${device} rw") devices;
      SupplementaryGroups = lib.optionals (gpu != null) gpu.groups;
      # A GPU's driver compiles code at run time, and reads of /proc more than processes.
      MemoryDenyWriteExecute = !hasDevices;
      ProcSubset = if hasDevices then "all" else "pid";
      SystemCallFilter = [
        "@system-service"
        "~@privileged"
      ]
      ++ lib.optional (!hasDevices) "~@resources";
      SystemCallErrorNumber = "EPERM";
      SystemCallArchitectures = "native";

      AmbientCapabilities = "";
      CapabilityBoundingSet = "";
      KeyringMode = "private";
      LockPersonality = true;
      NoNewPrivileges = true;
      PrivateIPC = true;
      PrivateMounts = true;
      PrivateTmp = true;
      PrivateUsers = true;
      ProtectClock = true;
      ProtectControlGroups = true;
      ProtectHome = true;
      ProtectHostname = true;
      ProtectKernelLogs = true;
      ProtectKernelModules = true;
      ProtectKernelTunables = true;
      ProtectProc = "invisible";
      ProtectSystem = "strict";
      RemoveIPC = true;
      RestrictNamespaces = true;
      RestrictRealtime = true;
      RestrictSUIDSGID = true;
    }
    // lib.optionalAttrs (addresses != null) {
      IPAddressDeny = "any";
      IPAddressAllow = addresses;
    }
    // lib.optionalAttrs (one.requireGpu && gpu != null) {
      ExecStartPre = "${pkgs.bash}/bin/bash ${waitForGpu}";
    }
    // lib.optionalAttrs (one.engine.apiKeyFile != null) {
      LoadCredential = "api-key:${toString one.engine.apiKeyFile}";
    };
  };
}

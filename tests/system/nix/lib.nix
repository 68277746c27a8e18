# As much of a module system as module.nix needs, for machines that have nix and no nixpkgs. It reads modules as nixpkgs
# does (imports, nested options, mkIf, mkMerge, mkDefault, submodules, free-form keys) for the types that occur here;
# test_module.py holds its units against those of the real NixOS where that is at hand.
let
  inherit (builtins)
    all
    any
    attrNames
    concatMap
    elem
    elemAt
    filter
    foldl'
    head
    isAttrs
    isBool
    isFloat
    isFunction
    isInt
    isList
    isPath
    isString
    length
    listToAttrs
    mapAttrs
    match
    stringLength
    substring
    ;

  # Values of the language

  last = list: elemAt list (length list - 1);
  unique = foldl' (seen: item: if elem item seen then seen else seen ++ [ item ]) [ ];
  optionals = condition: list: if condition then list else [ ];
  optional = condition: item: optionals condition [ item ];
  optionalAttrs = condition: set: if condition then set else { };
  optionalString = condition: text: if condition then text else "";
  hasPrefix = prefix: text: substring 0 (stringLength prefix) text == prefix;
  filterAttrs = keep: set: removeAttrs set (filter (name: !keep name set.${name}) (attrNames set));
  mapAttrsToList = f: set: map (name: f name set.${name}) (attrNames set);
  isStringLike =
    value: isString value || isPath value || isAttrs value && (value ? outPath || value ? __toString);
  isDerivation = value: isAttrs value && value.type or null == "derivation";
  showLoc = builtins.concatStringsSep ".";

  # Definitions and their properties

  mkIf = condition: content: {
    _type = "if";
    inherit condition content;
  };
  mkMerge = contents: {
    _type = "merge";
    inherit contents;
  };
  mkOverride = priority: content: {
    _type = "override";
    inherit priority content;
  };
  mkDefault = mkOverride 1000;
  mkForce = mkOverride 50;
  kind = value: if isAttrs value then value._type or "" else "";

  # The plain sets in a definition, with its properties moved on to their members.
  push =
    value:
    {
      "if" = map (mapAttrs (_: mkIf value.condition)) (push value.content);
      "merge" = concatMap push value.contents;
      "override" = map (mapAttrs (_: mkOverride value.priority)) (push value.content);
    }
    .${kind value} or [ value ];

  # The plain values in a definition, with their priorities.
  discharge =
    value:
    {
      "if" = optionals value.condition (discharge value.content);
      "merge" = concatMap discharge value.contents;
      "override" = map (each: each // { inherit (value) priority; }) (discharge value.content);
    }
    .${kind value} or [
      {
        priority = 100;
        inherit value;
      }
    ];

  mergeDefinitions =
    type: loc: weighted:
    let
      strongest = foldl' (
        least: each: if each.priority < least then each.priority else least
      ) 9999 weighted;
      values = map (each: each.value) (filter (each: each.priority == strongest) weighted);
      wrong = filter (value: !type.check value) values;
    in
    if values == [ ] then
      throw "The option `${showLoc loc}' was accessed but has no value defined."
    else if wrong != [ ] then
      throw "A definition for option `${showLoc loc}' is not of type `${type.description}'."
    else
      type.merge loc values;

  members = sets: unique (concatMap attrNames sets);
  definitionsOf = name: concatMap (set: optional (set ? ${name}) set.${name});
  zip =
    type: loc: sets:
    listToAttrs (
      concatMap (
        name:
        let
          weighted = concatMap discharge (definitionsOf name sets);
        in
        optional (weighted != [ ]) {
          inherit name;
          value = mergeDefinitions type (loc ++ [ name ]) weighted;
        }
      ) (members sets)
    );

  mergeEqualOption =
    loc: values:
    if all (value: value == head values) values then
      head values
    else
      throw "The option `${showLoc loc}' has conflicting definition values.";

  # Modules

  mkOption = option: option // { _type = "option"; };
  isOption = value: kind value == "option";

  load =
    args: module:
    let
      called = if isFunction module then module args else module;
      isFull = called ? config || called ? options;
      rest = removeAttrs called [
        "imports"
        "freeformType"
        "meta"
      ];
    in
    if isPath module then
      load args (import module)
    else
      [
        {
          options = called.options or { };
          config = if isFull then called.config or { } else rest;
          freeform = called.freeformType or null;
        }
      ]
      ++ concatMap (load args) (called.imports or [ ]);

  mergeOptions =
    left: right:
    left
    // mapAttrs (
      name: option:
      if left ? ${name} && !isOption option then mergeOptions left.${name} option else option
    ) right;

  evalOption =
    loc: option: definitions:
    let
      given = concatMap discharge definitions;
      value = mergeDefinitions option.type loc (
        given
        ++ optional (option ? default) {
          priority = 1500;
          value = option.default;
        }
      );
    in
    if option.readOnly or false && option ? default && given != [ ] then
      throw "The option `${showLoc loc}' is read-only."
    else
      (option.apply or (same: same)) value;

  evalTree =
    freeform: loc: options: definitions:
    let
      sets = concatMap push definitions;
      unknown = filter (name: !options ? ${name}) (members sets);
      free = map (set: removeAttrs set (attrNames options)) sets;
    in
    mapAttrs (
      name: option:
      (if isOption option then evalOption else evalTree freeform) (loc ++ [ name ]) option (
        definitionsOf name sets
      )
    ) options
    // (
      if freeform != null then
        zip types.anything loc free
      else
        optionalAttrs (unknown != [ ]) (
          throw "The option `${showLoc (loc ++ [ (head unknown) ])}' does not exist."
        )
    );

  evalModules =
    {
      modules,
      args ? { },
      loc ? [ ],
    }:
    let
      loaded = concatMap (load (args // { inherit lib config options; })) modules;
      options = foldl' mergeOptions { } (map (module: module.options) loaded);
      freeform = foldl' (
        found: module: if module.freeform != null then module.freeform else found
      ) null loaded;
      config = evalTree freeform loc options (map (module: module.config) loaded);
    in
    {
      inherit config options freeform;
    };

  # Types

  mkOptionType =
    {
      name,
      description ? name,
      descriptionClass ? null,
      check ? (_: true),
      merge ? mergeEqualOption,
      nested ? (_: { }),
      ...
    }:
    {
      _type = "option-type";
      inherit
        name
        description
        descriptionClass
        check
        merge
        nested
        ;
    };
  described =
    descriptionClass: description: check:
    mkOptionType {
      name = description;
      inherit description descriptionClass check;
    };
  scalar = described "noun";
  bounded = described "nonRestrictiveClause";
  # A type within the description of another: in parentheses, unless it is of a class that reads well there.
  phrase =
    classes: type:
    if elem type.descriptionClass classes then type.description else "(${type.description})";
  quoted = values: builtins.concatStringsSep ", " (map builtins.toJSON values);

  types = rec {
    anything = mkOptionType {
      name = "anything";
      merge =
        loc: values:
        if all (value: isAttrs value && !isDerivation value) values then
          zip anything loc (concatMap push values)
        else if all isList values then
          builtins.concatLists values
        else
          mergeEqualOption loc values;
    };
    raw = mkOptionType { name = "raw"; };
    bool = scalar "boolean" isBool;
    str = scalar "string" isString;
    nonEmptyStr = scalar "non-empty string" (value: isString value && match "[ \t\n]*" value == null);
    path = scalar "absolute path" (value: isStringLike value && hasPrefix "/" (toString value));
    package = scalar "package" isDerivation;
    int = scalar "signed integer" isInt;
    ints.positive = bounded "positive integer, meaning >0" (value: isInt value && value > 0);
    ints.unsigned = bounded "unsigned integer, meaning >=0" (value: isInt value && value >= 0);
    numbers.nonnegative = bounded "nonnegative integer or floating point number, meaning >=0" (
      value: (isInt value || isFloat value) && value >= 0
    );
    enum = values: described "conjunction" "one of ${quoted values}" (value: elem value values);
    nullOr =
      type:
      mkOptionType {
        name = "nullOr";
        description = "null or ${phrase [ "noun" "conjunction" ] type}";
        descriptionClass = "conjunction";
        check = value: value == null || type.check value;
        merge = loc: values: if all (value: value == null) values then null else type.merge loc values;
        inherit (type) nested;
      };
    either =
      first: second:
      mkOptionType {
        name = "either";
        description = "${phrase [ "noun" "conjunction" ] first} or ${
          phrase [ "noun" "conjunction" "composite" ] second
        }";
        descriptionClass = "conjunction";
        check = value: first.check value || second.check value;
        merge = loc: values: (if all first.check values then first else second).merge loc values;
        nested = loc: first.nested loc // second.nested loc;
      };
    listOf =
      type:
      mkOptionType {
        name = "listOf";
        description = "list of ${phrase [ "noun" "composite" ] type}";
        descriptionClass = "composite";
        check = isList;
        merge =
          loc: values:
          map (
            item:
            mergeDefinitions type loc [
              {
                priority = 100;
                value = item;
              }
            ]
          ) (builtins.concatLists values);
      };
    attrsOf =
      type:
      mkOptionType {
        name = "attrsOf";
        description = "attribute set of ${phrase [ "noun" "composite" ] type}";
        descriptionClass = "composite";
        check = isAttrs;
        merge = loc: values: zip type loc (concatMap push values);
        nested = loc: { "<name>" = type.nested (loc ++ [ "<name>" ]); };
      };
    submodule =
      module:
      let
        eval =
          loc: more:
          evalModules {
            modules = [ module ] ++ more;
            args.name = last loc;
            inherit loc;
          };
      in
      mkOptionType {
        name = "submodule";
        description =
          let
            inherit (eval [ "<name>" ] [ ]) freeform;
          in
          if freeform == null then
            "submodule"
          else
            "open submodule of ${phrase [ "noun" "composite" ] freeform}";
        check = value: isAttrs value || isFunction value;
        merge =
          loc: values:
          (eval loc (map (value: if isFunction value then value else { config = value; }) values)).config;
        nested = loc: (eval loc [ ]).options;
      };
  };

  mkEnableOption =
    what:
    mkOption {
      type = types.bool;
      default = false;
      example = true;
      description = "Whether to enable ${what}.";
    };
  mkPackageOption =
    pkgs: name:
    {
      extraDescription ? "",
    }:
    mkOption {
      type = types.package;
      default = pkgs.${name};
      defaultText = literalExpression "pkgs.${name}";
      description = "The ${name} package to use. ${extraDescription}";
    };
  literalExpression = text: {
    _type = "literalExpression";
    inherit text;
  };
  literalMD = text: {
    _type = "literalMD";
    inherit text;
  };

  # A value as one writes it in Nix.
  inNix =
    value:
    if isList value then
      "[ ${concatStrings (map (item: "${inNix item} ") value)}]"
    else if isAttrs value then
      "{ ${concatStrings (mapAttrsToList (name: inner: "${name} = ${inNix inner}; ") value)}}"
    else
      builtins.toJSON value;
  concatStrings = builtins.concatStringsSep "";

  # Every option that a reader may set, for the reference.
  describe =
    loc: options:
    concatMap (
      name:
      let
        option = options.${name};
        here = loc ++ [ name ];
        shown = value: if isAttrs value && value ? text then value.text else inNix value;
      in
      if !isOption option then
        describe here option
      else
        optionals (!(option.internal or false)) (
          [
            {
              name = showLoc here;
              description = option.description;
              type = option.type.description;
              default =
                if option ? defaultText then
                  shown option.defaultText
                else if option ? default then
                  shown option.default
                else
                  null;
              example = if option ? example then shown option.example else null;
              readOnly = option.readOnly or false;
            }
          ]
          ++ describe here (option.type.nested here)
        )
    ) (attrNames options);

  lib = {
    inherit
      last
      unique
      optional
      optionals
      optionalAttrs
      optionalString
      hasPrefix
      filterAttrs
      mapAttrsToList
      isStringLike
      isDerivation
      mkIf
      mkMerge
      mkOverride
      mkDefault
      mkForce
      mergeEqualOption
      mkOption
      evalModules
      mkOptionType
      types
      mkEnableOption
      mkPackageOption
      literalExpression
      literalMD
      describe
      ;
    inherit (builtins)
      all
      any
      attrNames
      concatMap
      concatStringsSep
      elem
      filter
      foldl'
      head
      isAttrs
      isList
      isString
      length
      listToAttrs
      mapAttrs
      ;
    concatMapStringsSep =
      separator: f: list:
      builtins.concatStringsSep separator (map f list);
    nameValuePair = name: value: { inherit name value; };
    genAttrs =
      names: f:
      listToAttrs (
        map (name: {
          inherit name;
          value = f name;
        }) names
      );
    mapAttrs' = f: set: listToAttrs (mapAttrsToList f set);
    getExe = package: "${package}/bin/${package.meta.mainProgram or package.name}";
  };
in
lib

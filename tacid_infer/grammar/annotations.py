"""Keywords that demand nothing of an instance by themselves."""

ANNOTATIONS = frozenset(
    (
        "$anchor",
        "$comment",
        "$defs",
        "$dynamicAnchor",
        "$id",
        "$recursiveAnchor",
        "$schema",
        "$vocabulary",
        "contentEncoding",
        "contentMediaType",
        "contentSchema",
        "default",
        "definitions",
        "deprecated",
        "description",
        "discriminator",
        "else",
        "example",
        "examples",
        "externalDocs",
        "id",
        "maxContains",
        "minContains",
        "readOnly",
        "then",
        "title",
        "writeOnly",
        "xml",
    )
)

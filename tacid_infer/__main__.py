"""``python -m tacid_infer``."""

import sys

from .cli import main

sys.exit(main())

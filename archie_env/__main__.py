"""``python -m archie_env`` is the ``archie`` command."""

import sys

from archie_env.cli import main

sys.exit(main())

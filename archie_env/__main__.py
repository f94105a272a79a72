"""``python -m archie_env`` is the ``archie`` command."""

import sys

from archie_env.terminal.main import main

sys.exit(main())

"""Run ``python -m agents.process``."""

import sys

from agents.process.serve import main

sys.exit(main())

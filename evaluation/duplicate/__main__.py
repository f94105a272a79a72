"""Run ``python -m evaluation.duplicate``."""

import sys

from evaluation.duplicate.command import main

sys.exit(main())

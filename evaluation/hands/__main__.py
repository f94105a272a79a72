"""Run ``python -m evaluation.hands``."""

import sys

from evaluation.hands.command import main

sys.exit(main())

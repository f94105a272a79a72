"""Run ``python -m evaluation.tournament``."""

import sys

from evaluation.tournament.round_robin import main

sys.exit(main())

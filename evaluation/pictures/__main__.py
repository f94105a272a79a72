"""Run ``python -m evaluation.pictures``."""

import sys

from evaluation.pictures.command import main

sys.exit(main())

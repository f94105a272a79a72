"""Run ``python -m training.cfr``."""

import sys

from training.cfr.trainer import main

sys.exit(main())

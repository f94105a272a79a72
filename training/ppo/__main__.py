"""Run ``python -m training.ppo``."""

import sys

from training.ppo.trainer import main

sys.exit(main())

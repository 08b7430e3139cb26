"""What Weng and others publish of the `openb` workload: allocated GPUs by arrived demand, both in per cent of all GPUs.

From `experiments/analysis/expected_results/analysis_allo_discrete.csv` of hkust-adsl/kubernetes-scheduler-simulator
(Apache-2.0), commit 1853fc0e, of seeds 42 to 51: a figure here is the mean of ten there. Up to 90 % best-fit and FGD
have allocated all that has arrived.
"""

from __future__ import annotations

from collections.abc import Mapping

PERCENTAGES = (80, 85, 90, 95, 100, 105, 110, 115, 120, 125, 130)
"""How much had arrived."""

CURVES: Mapping[str, Mapping[str, tuple[float, ...]]] = {
    "default": {
        "random": (78.66, 83.18, 85.02, 85.72, 86.30, 86.62, 86.88, 87.10, 87.28, 87.40, 87.47),
        "pack": (80.0, 85.0, 90.0, 92.82, 92.86, 92.91, 92.94, 92.97, 93.00, 93.04, 93.08),
        "defragment": (80.0, 85.0, 90.0, 94.91, 95.23, 95.27, 95.30, 95.32, 95.35, 95.38, 95.39),
    },
    "gpushare40": {
        "random": (78.33, 82.36, 83.51, 84.38, 84.86, 85.18, 85.42, 85.68, 85.84, 85.94, 86.00),
        "pack": (80.0, 85.0, 90.0, 91.40, 91.44, 91.49, 91.52, 91.57, 91.61, 91.66, 91.69),
        "defragment": (80.0, 85.0, 90.0, 93.92, 93.96, 94.00, 94.03, 94.06, 94.09, 94.13, 94.15),
    },
}
"""By mix, then by what it is called here: `pack` stands beside their best-fit, `defragment` beside their FGD."""

"""Resources for any program, without steps or pipelines: hold them while a block lasts.

    python examples/hold_any_program.py

In a real program: ``hold(gpu_count=1, pool="training-gpus")``, and set the environment before the framework starts.
"""

from __future__ import annotations

import os
import threading

from fairpool import hold

must_stop = threading.Event()  # set when the resources must be given back; look at it between two rounds

if __name__ == "__main__":
    with hold(cpu_count=1, memory="256MB", on_preempt=must_stop.set) as held:
        os.environ |= held.environment
        print(f"holding request {held.request} from pool {held.pool or '(no policy governs it)'}")
        done = 0
        while done < 5 and not must_stop.is_set():
            done += 1
    print(f"{done} rounds, and given back")

"""Ways to execute many runs: one after the other, in processes of this machine, on a Ray cluster.

All have one method, ``run(specs, places, on_event)``, which gives an outcome per spec as they end, in any order.
"""

"""Ways to execute many runs: one after the other, in processes of this machine, or on a Ray cluster.

Every executor has a method ``run(specs, places, on_event)``. It yields one outcome per spec, in the
order in which the runs end.
"""

"""One module per step, in the order that `down_revision` says.

Steps expand first (new tables and columns that old code does not mind), move data, and contract in a later release.
"""

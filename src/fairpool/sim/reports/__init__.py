"""What a simulation tells: figures of one replay, or of two of the same jobs, and how they are written down.

`making` has the functions to call: `summarise` and `compare` make a `Report`; `write_html`, `write_json`, `write_csv`
and `tables` show one. An `Outcome` is what they start from.
"""

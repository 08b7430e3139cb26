"""One module per noun: parse, one use case or one reading, present."""

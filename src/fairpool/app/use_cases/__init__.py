"""What can be asked of Fairpool: one module per noun, one function per command."""

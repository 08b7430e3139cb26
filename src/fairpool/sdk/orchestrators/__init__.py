"""Where steps run: the base class of all orchestrators and step operators, and the local one."""

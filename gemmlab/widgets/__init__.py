"""Controls and pictures for notebooks. No other subpackage imports this one."""

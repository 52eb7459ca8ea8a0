"""Controls and pictures for notebooks. Nothing else in the package imports this room."""

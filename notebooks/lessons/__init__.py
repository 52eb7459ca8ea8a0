"""Small models and pictures that one or two chapters need, imported as checks.py is."""

"""Traces: Fallow's own files, and those of other tools."""

"""Replay of recorded and made-up programs on modelled machines, over the native simulator. Everything is modelled."""

"""Published results beside ours: traces of open programs, replayed on the published machine."""

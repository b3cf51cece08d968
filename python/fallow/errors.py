"""Errors that are the user's to mend: shown in one line, never with a traceback."""


class UserError(Exception):
    """Something about the request cannot be done; the message says what and how to go on."""

"""Errors that are the user's to mend: shown in one line, never with a traceback."""


class UserError(Exception):
    """Something about the request cannot be done; the message says what and how to go on."""


def about(path: object, error: BaseException) -> UserError:
    """What is wrong with a file; the native library names it in some of its messages."""
    text = reason(error) if isinstance(error, MemoryError) else str(error)
    return UserError(text if text.startswith(f"{path}: ") else f"{path}: {text}")


def reason(error: BaseException) -> str:
    """What went wrong, in a few words; of a defect of ours its kind too."""
    if isinstance(error, MemoryError):  # says nothing, or what C++ calls it
        return "not enough memory"
    if isinstance(error, OSError):
        return error.strerror or str(error)
    return f"{type(error).__name__}: {error}"

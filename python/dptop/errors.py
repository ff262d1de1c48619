"""The errors of dptop.

    DptopError
    ├── InvalidParameter       (also ValueError)   an argument breaks its rule
    ├── UnsupportedLabel       (also TypeError)    an item that cannot be a label, or a second kind of label
    ├── SourceError                                a file, column, stream or Spark job that does not come to its end, a
    │                                              place that cannot be written, a part that another process holds
    ├── BudgetExhausted                            a release would spend more privacy than was declared
    ├── CorruptSummary                             saved bytes that are not a whole, consistent summary
    ├── IncompatibleSummaries                      summaries that cannot be combined
    └── MissingExtra           (also ImportError)  an optional package is needed and not installed

A message says the rule, the value and the remedy. It never quotes an item of the stream.
"""

__all__ = [
    "BudgetExhausted",
    "CorruptSummary",
    "DptopError",
    "IncompatibleSummaries",
    "InvalidParameter",
    "MissingExtra",
    "SourceError",
    "UnsupportedLabel",
]


class DptopError(Exception):
    """The root of every error that dptop raises on purpose."""


class InvalidParameter(DptopError, ValueError):  # noqa: N818 - the names are part of the public interface
    """An argument breaks its rule; nothing was read, allocated, spent or released.

    But for one: a declared length that is too short is found after the charge, as the answer tells of the stream.
    """


class UnsupportedLabel(DptopError, TypeError):  # noqa: N818 - likewise
    """An item is not an integer, a string or bytes, or not of the summary's kind of label."""


class SourceError(DptopError):
    """An input cannot be found, recognised or read to its end; an output cannot be written; a part cannot be locked."""


class BudgetExhausted(DptopError):  # noqa: N818 - likewise
    """A release would spend more privacy than the summary's budget declares."""


class CorruptSummary(DptopError):  # noqa: N818 - likewise
    """Saved bytes are cut short, changed, foreign or contradict themselves."""


class IncompatibleSummaries(DptopError):  # noqa: N818 - likewise
    """Summaries whose parameters, keys or streams do not let them be combined; neither has changed."""


class MissingExtra(DptopError, ImportError):  # noqa: N818 - likewise
    """An optional package that this call needs is not installed."""

"""What stops a pipeline: always before a wrong row is written."""

from ibb.protocol.errors import IbbError


class PipelineError(IbbError):
    """The pipeline cannot go on without a person; the text names the table, place and remedy."""

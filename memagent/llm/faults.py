"""A provider's failure as one of our faults, narrowest class first, in words that hold no secret and no text of a chat."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from memagent.errors import ContextTooLong, ModelFault, ModelRefused, ModelReplyInvalid, ModelUnavailable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from memagent.config.endpoints import ModelTarget

BY_STATUS = None
"""The class says nothing: its HTTP status decides."""

KINDS: dict[str, type[ModelFault] | None] = {
    # Unreachable, too slow, too busy, or broken on the other side.
    "Timeout": ModelUnavailable,
    "RateLimitError": ModelUnavailable,
    "CallerCredentialRateLimitError": ModelUnavailable,
    "ServiceUnavailableError": ModelUnavailable,
    "MidStreamFallbackError": ModelUnavailable,
    "BadGatewayError": ModelUnavailable,
    "InternalServerError": ModelUnavailable,
    "APIConnectionError": ModelUnavailable,
    # The key, the model or the request is not accepted.
    "AuthenticationError": ModelRefused,
    "CallerCredentialAuthenticationError": ModelRefused,
    "PermissionDeniedError": ModelRefused,
    "NotFoundError": ModelRefused,
    "ContextWindowExceededError": ContextTooLong,
    "ContentPolicyViolationError": ModelRefused,
    "RejectedRequestError": ModelRefused,
    "PaymentRequiredError": ModelRefused,
    "UnsupportedParamsError": ModelRefused,
    "UnsupportedEndpointError": ModelRefused,
    "EndpointNotSupportedByModelError": ModelRefused,
    "MalformedRequestFieldError": ModelRefused,
    "ImageFetchError": ModelRefused,
    "VectorStoreSearchError": ModelRefused,
    "LiteLLMUnknownProvider": ModelRefused,
    "UnprocessableEntityError": ModelRefused,
    "InvalidRequestError": ModelRefused,
    "BadRequestError": ModelRefused,
    "ModelNotMappedError": ModelRefused,
    "BudgetExceededError": ModelRefused,
    "GuardrailRaisedException": ModelRefused,
    "BlockedPiiEntityError": ModelRefused,
    "ModifyResponseException": ModelRefused,
    "SensitiveDataRouteException": ModelRefused,
    # The answer is not what was agreed.
    "JSONSchemaValidationError": ModelReplyInvalid,
    "APIResponseValidationError": ModelReplyInvalid,
    "APIError": BY_STATUS,
    "MockException": BY_STATUS,
    "OpenAIError": BY_STATUS,
}
"""litellm's exceptions by name, so that knowing them does not load it."""

_UNREADABLE = (json.JSONDecodeError, UnicodeDecodeError, LookupError, TypeError, AttributeError)
_UNREADABLE_NAMES = frozenset({"APIError", "APIResponseValidationError", "ValidationError"})
"""What reading an answer ends in when it is not one."""
_UNREADABLE_TOLD = "valid response from LLM endpoint"
"""litellm's words, and nothing else, for JSON that is not an object."""

_ERROR_CODE = re.compile(r"[a-z]+(?:_[a-z]+)+")

_UNAUTHORIZED = 401
_FORBIDDEN = 403
_NOT_FOUND = 404
_REQUEST_TIMEOUT = 408
_TOO_MANY = 429
_SERVER_ERRORS = 500


def fault_of(error: Exception, target: ModelTarget) -> ModelFault:
    """Map what litellm raised; whatever it raises comes back as a `ModelFault`."""
    status = _status(error)
    kind = _kind(error, status)
    if kind is ModelUnavailable and (_is_unreadable(error) or _UNREADABLE_TOLD in str(error)):
        kind = ModelReplyInvalid
    if kind is ModelReplyInvalid:
        return ModelReplyInvalid(f"{place(target)} sent an answer that cannot be read (model {target.model})")
    if kind is ModelRefused:
        return ModelRefused(f"{place(target)} {_refusal(status, error)} (model {target.model})")
    return ModelUnavailable(f"{place(target)} {_outage(error, status, target)} (model {target.model})")


def place(target: ModelTarget) -> str:
    """Name the endpoint without what may be secret in its URL."""
    if target.base_url is None:
        return f"provider {target.model.partition('/')[0]}"
    url = urlsplit(target.base_url)
    return f"{url.scheme}://{url.netloc.rpartition('@')[2]}"


def timed_out(target: ModelTarget) -> ModelUnavailable:
    return ModelUnavailable(
        f"{place(target)} did not answer within {target.timeout_s:g} s (model {target.model})"
    )


def _kind(error: Exception, status: int) -> type[ModelFault]:
    for base in type(error).__mro__:
        kind = KINDS.get(base.__name__, BY_STATUS)
        if kind is not BY_STATUS:
            return kind
    refused = 400 <= status < _SERVER_ERRORS and status not in {_REQUEST_TIMEOUT, _TOO_MANY}  # noqa: PLR2004  HTTP's own
    return ModelRefused if refused else ModelUnavailable


def _status(error: Exception) -> int:
    status = getattr(error, "status_code", None)
    return status if isinstance(status, int) else 0


def _is_unreadable(error: BaseException) -> bool:
    """Whether an answer came and was not understood, which litellm calls a failure of the server."""
    return not _answered_with_an_error(error) and any(
        isinstance(cause, _UNREADABLE) or type(cause).__name__ in _UNREADABLE_NAMES
        for cause in _causes(error)
    )


def _answered_with_an_error(error: BaseException) -> bool:
    """Whether a server gave a status somewhere down the chain; litellm's own classes make theirs up."""
    return any(
        isinstance(getattr(getattr(cause, "response", None), "status_code", None), int)
        for cause in _causes(error)
        if not type(cause).__module__.startswith("litellm.")
    )


def _causes(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    cause: BaseException | None = error
    while cause is not None and id(cause) not in seen:
        seen.add(id(cause))
        yield cause
        cause = cause.__cause__ or cause.__context__


def _refusal(status: int, error: Exception) -> str:
    if status in {_UNAUTHORIZED, _FORBIDDEN}:
        return f"refused the API key with {status}; check apiKey and headers"
    if status == _NOT_FOUND:
        return "answered 404; check baseURL and the model's name"
    code = getattr(error, "code", None)
    # A provider's code is one of its own words. Anything that does not look like one might be a piece of the request.
    told = f" ({code})" if isinstance(code, str) and _ERROR_CODE.fullmatch(code) else ""
    return (
        f"rejected the request with {status}{told}" if status else "rejected the request before it was sent"
    )


def _outage(error: Exception, status: int, target: ModelTarget) -> str:
    if type(error).__name__ == "Timeout":
        return f"did not answer within {target.timeout_s:g} s"
    if status == _TOO_MANY:
        return "is rate limiting; try again later"
    if status >= _SERVER_ERRORS and _answered_with_an_error(error):
        return f"failed with {status}; try again later"
    return "cannot be reached"

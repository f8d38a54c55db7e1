"""What the authorizer decides, in the words of Kafka's `kafka.authorizer.logger`, which people and tools look for.

Denied is INFO, allowed is DEBUG. What nobody asked for by name (lists that are filtered, fields of what is allowed) is
TRACE in Kafka, which Python does not have: it is one below DEBUG.
"""

import logging

from ottla.broker.security.acls.authorizer import Decision
from ottla.model.acls import OPERATION_NAMES, RESOURCE_WORDS, AclBinding
from ottla.protocol.apis import API, ApiKey

LOGGER_NAME = "kafka.authorizer.logger"
TRACE = logging.DEBUG - 1
logger = logging.getLogger(LOGGER_NAME)


def level_of(decision: Decision) -> int:
    if decision.probe:
        return TRACE
    return logging.DEBUG if decision.allowed else logging.INFO


def tell(decision: Decision) -> None:
    level = level_of(decision)
    if logger.isEnabledFor(level):
        logger.log(level, "%s", line(decision))


def line(decision: Decision) -> str:
    session = decision.session
    return (
        f"Principal = {session.principal} is {'Allowed' if decision.allowed else 'Denied'} "
        f"operation = {OPERATION_NAMES[decision.operation]} from host = {session.host} "
        f"on resource = {RESOURCE_WORDS[decision.resource]}:LITERAL:{decision.name} "
        f"for request = {API[ApiKey(decision.api_key)].name} with resourceRefCount = {decision.references} "
        f"based on rule {_rule(decision.because)}"
    )


def _rule(because: AclBinding | str) -> str:
    if isinstance(because, str):
        return because
    (resource, name, type_), entry = because
    return (
        f"MatchingAcl(acl=StandardAcl(resourceType={resource.name}, resourceName={name}, patternType={type_.name}, "
        f"principal={entry.principal}, host={entry.host}, operation={OPERATION_NAMES[entry.operation]}, "
        f"permissionType={entry.permission.name}))"
    )

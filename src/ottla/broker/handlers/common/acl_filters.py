"""Filters of access control lists as requests have them."""

from ottla.model.acls import ALL_OPERATIONS, ANY, AclFilter, PatternType, Permission
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.rights import Operation, Resource
from ottla.protocol.messages.delete_acls import DeleteAclsFilter
from ottla.protocol.messages.describe_acls import DescribeAclsRequest

_RESOURCES = frozenset({ANY, *Resource})
_PATTERN_TYPES = frozenset({ANY, *PatternType})
_OPERATIONS = frozenset({ANY, ALL_OPERATIONS, *Operation})
_PERMISSIONS = frozenset({ANY, *Permission})


def filter_of(asked: DescribeAclsRequest | DeleteAclsFilter) -> AclFilter:
    """INVALID_REQUEST if something in it has no meaning."""
    if asked.resource_type_filter not in _RESOURCES or asked.pattern_type_filter not in _PATTERN_TYPES:
        raise ApiError(ErrorCode.INVALID_REQUEST, "Unknown patternFilter.")
    if asked.operation not in _OPERATIONS or asked.permission_type not in _PERMISSIONS:
        raise ApiError(ErrorCode.INVALID_REQUEST, "Unknown entryFilter.")
    return AclFilter(
        asked.resource_type_filter,
        asked.resource_name_filter,
        asked.pattern_type_filter,
        asked.principal_filter,
        asked.host_filter,
        asked.operation,
        asked.permission_type,
    )

"""Levels of this process's loggers, as settings: BROKER_LOGGER, the resource that kafka-configs calls broker-loggers.

They hold while the process runs. Kafka's names of levels are understood, and its root logger is `root`.
"""

import logging
from collections.abc import Sequence

from ottla.broker.controller.config_decisions import Alteration, ConfigChange, ConfigOutcome, Operation
from ottla.broker.handlers.context import Broker
from ottla.config.live import ConfigEntry, ConfigSource, ConfigSynonym
from ottla.config.setting import SettingType
from ottla.model.errors import ApiError, ErrorCode

ROOT = "root"
LEVELS = {
    "FATAL": logging.CRITICAL,
    "ERROR": logging.ERROR,
    "WARN": logging.WARNING,
    "INFO": logging.INFO,
    "DEBUG": logging.DEBUG,
    "TRACE": logging.DEBUG,
}
_SHOWN = {logging.CRITICAL: "FATAL", logging.ERROR: "ERROR", logging.WARNING: "WARN", logging.INFO: "INFO"}
_ALSO_KNOWN = {"WARNING": "WARN", "CRITICAL": "FATAL"}
_OPERATIONS = {int(Operation.SET), int(Operation.DELETE)}


def check_logger_owner(broker: Broker, name: str) -> None:
    if name != str(broker.node_id):
        raise ApiError(ErrorCode.INVALID_REQUEST, f"this is broker {broker.node_id}, ask broker {name} itself")


def described_levels() -> list[ConfigEntry]:
    """Every logger with the level that holds for it."""
    names = sorted(
        name for name, logger in logging.root.manager.loggerDict.items() if isinstance(logger, logging.Logger)
    )
    return [_entry(name) for name in (ROOT, *names)]


def _entry(name: str) -> ConfigEntry:
    level = _shown(_logger(name).getEffectiveLevel())
    source = ConfigSource.DYNAMIC_BROKER_LOGGER_CONFIG
    return ConfigEntry(name, level, source, SettingType.STRING, False, False, "", (ConfigSynonym(name, level, source),))


def _shown(level: int) -> str:
    return next((text for least, text in _SHOWN.items() if level >= least), "DEBUG")


def _logger(name: str) -> logging.Logger:
    return logging.getLogger(None if name == ROOT else name)


def alter_levels(broker: Broker, change: ConfigChange, *, validate_only: bool) -> ConfigOutcome:
    """Set levels, or let loggers have that of the one above them again: all of the change or nothing."""
    try:
        check_logger_owner(broker, change.resource_name)
        if change.replace_all:
            raise ApiError(
                ErrorCode.INVALID_REQUEST, "levels of loggers are changed one by one (IncrementalAlterConfigs)"
            )
        levels = _checked(change.alterations)
    except ApiError as refusal:
        return ConfigOutcome(change, None, refusal)
    if not validate_only:
        for name, level in levels.items():
            _logger(name).setLevel(level)
    return ConfigOutcome(change, {}, None)


def _checked(alterations: Sequence[Alteration]) -> dict[str, int]:
    levels = {}
    for name, operation, value in alterations:
        if name != ROOT and not isinstance(logging.root.manager.loggerDict.get(name), logging.Logger):
            raise ApiError(ErrorCode.INVALID_CONFIG, f"Logger {name} does not exist!")
        if operation not in _OPERATIONS:
            raise ApiError(ErrorCode.INVALID_REQUEST, "a level is set or deleted; nothing can be added to it")
        if operation == Operation.DELETE:
            if name == ROOT:
                raise ApiError(ErrorCode.INVALID_REQUEST, "Removing the log level of the root logger is not allowed")
            levels[name] = logging.NOTSET
            continue
        wanted = (value or "").upper()
        wanted = _ALSO_KNOWN.get(wanted, wanted)
        if wanted not in LEVELS:
            known = ", ".join(LEVELS)
            raise ApiError(
                ErrorCode.INVALID_CONFIG, f"Cannot set the log level of {name} to {value}: there are {known}"
            )
        levels[name] = LEVELS[wanted]
    return levels

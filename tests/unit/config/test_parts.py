"""The settings of a broker are made of parts."""

import dataclasses

from ottla.config.broker import BROKER_SETTINGS, BrokerSettings
from ottla.config.setting import settings_of

PARTS = BrokerSettings.__bases__


def test_every_part_adds_settings_of_its_own_in_the_order_of_the_parts() -> None:
    names = [name for part in PARTS for name in settings_of(part)]
    assert list(BROKER_SETTINGS) == names
    assert len(set(names)) == len(names), "no setting is declared twice"


def test_a_part_is_taken_by_its_type_and_stands_alone_too() -> None:
    whole = BrokerSettings()
    for part in PARTS:
        assert isinstance(whole, part)
        alone = part()
        for field in dataclasses.fields(part):
            assert getattr(whole, field.name) == getattr(alone, field.name)


def test_the_whole_has_slots_though_its_parts_have_none() -> None:
    assert {field.name for field in dataclasses.fields(BrokerSettings)} == set(vars(BrokerSettings)["__slots__"])
    assert not BrokerSettings().__dict__

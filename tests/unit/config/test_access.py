"""Settings of the authorizer."""

import pytest

from ottla.config.access import AUTHORIZERS, read_super_users
from ottla.config.load import settings_from
from ottla.config.setting import ConfigError


@pytest.mark.parametrize("name", AUTHORIZERS)
def test_kafkas_names_of_its_authorizers_are_names_of_ours(name: str) -> None:
    settings = settings_from({"authorizer.class.name": name, "super.users": "User:admin; User:CN=b,O=x ;"})
    assert settings.authorizer_class_name == name
    assert read_super_users(settings.super_users) == {"User:admin", "User:CN=b,O=x"}
    assert settings.notes == ()


def test_another_authorizer_is_refused_with_the_name_of_the_one_that_there_is() -> None:
    with pytest.raises(ConfigError, match=r"there is no com.example.Ranger.*StandardAuthorizer"):
        settings_from({"authorizer.class.name": "com.example.Ranger"})


@pytest.mark.parametrize("text", ["admin", "User:a,b;:c", "User:"])
def test_super_users_are_principals(text: str) -> None:
    if text == "User:a,b;:c":
        assert "User:a,b" in read_super_users(text)
    with pytest.raises(ConfigError, match="is not a principal such as User:alice"):
        settings_from({"super.users": text})


def test_what_an_authorizer_would_read_is_noted_as_without_effect_where_there_is_none() -> None:
    (note,) = settings_from({"super.users": "User:a", "allow.everyone.if.no.acl.found": "true"}).notes
    assert "super.users, allow.everyone.if.no.acl.found: no effect without authorizer.class.name" in note.text

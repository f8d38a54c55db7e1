"""Settings of the schema registry that a broker asks about the schemas of records."""

import dataclasses

from ottla.config.setting import SettingType, setting


def _url_problem(text: str | None) -> str | None:
    wrong = [url for url in (text or "").split(",") if url and not url.strip().startswith(("http://", "https://"))]
    return f"`{wrong[0]}` is not http://HOST:PORT" if wrong else None


@dataclasses.dataclass(frozen=True, kw_only=True)
class SchemaRegistrySettings:
    """For topics with confluent.value.schema.validation or confluent.key.schema.validation."""

    confluent_schema_registry_url: str = setting(
        "",
        type=SettingType.STRING,
        check=_url_problem,
        doc="Where the schema registry is that knows the schemas of records, http://HOST:PORT; several with commas. "
        "Needed by topics that check schemas (confluent.value.schema.validation).",
    )
    confluent_basic_auth_user_info: str | None = setting(
        None,
        type=SettingType.PASSWORD,
        doc="NAME:PASSWORD that the broker logs in to the schema registry with.",
    )
    confluent_ssl_ca_location: str | None = setting(
        None,
        type=SettingType.STRING,
        doc="A PEM file with the authorities that a schema registry's certificate may come from; without it the "
        "system's. Ottla's own setting.",
    )

"""JAAS lines and files, as Kafka's documentation has them."""

import pytest

from ottla.config.jaas import JaasError, LoginModule, parse_file, parse_line

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"


def test_a_line() -> None:
    module = parse_line(
        f"{PLAIN} required\n"
        '  username="admin" /* us */ password="a\\"b;c\\\\" // the brokers\n  user_alice=\'x y\'  user_b-c.d=word ;'
    )
    assert module == LoginModule(
        PLAIN, {"username": "admin", "password": 'a"b;c\\', "user_alice": "x y", "user_b-c.d": "word"}
    )
    assert module.short_name == "PlainLoginModule"
    assert "admin" not in repr(module)


@pytest.mark.parametrize(("written", "meant"), [('"\\t\\n\\101"', "\t\nA"), ("''", ""), ('"\\q"', "q")])
def test_escapes_are_those_of_c(written: str, meant: str) -> None:
    assert parse_line(f"M required k={written};").options == {"k": meant}


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("", "too early"),
        ("Module required", "`;`"),
        ('Module required password="verysecret"', "`;`"),
        ("Module often;", "required"),
        ("Module required password=12;", "digit"),
        ('Module required password="verysecret;', "quote"),
        ("Module required password;", "`=`"),
        ("Module required; Module required;", "more than one"),
        ("Module required pass%word=x;", "quotes"),
        ('Module required "verysecret"="verysecret";', "expected"),
        ('Module required a="b" "verysecret";', "expected"),
    ],
)
def test_errors_say_what_is_wrong_and_no_secret(line: str, why: str) -> None:
    with pytest.raises(JaasError, match=why) as failed:
        parse_line(line)
    assert "verysecret" not in str(failed.value)


def test_a_file_has_sections() -> None:
    sections = parse_file(
        """
        // brokers
        KafkaServer {
           M1 required a="1";
           M2 optional b=c;
        };
        inside.KafkaServer { M1 required a="2"; };
        """
    )
    assert {name: [module.options for module in modules] for name, modules in sections.items()} == {
        "KafkaServer": [{"a": "1"}, {"b": "c"}],
        "inside.KafkaServer": [{"a": "2"}],
    }
    with pytest.raises(JaasError, match=r"too early"):
        parse_file("KafkaServer { M1 required;")

"""Dead letters: browsed with their origin and error, mended, sent back one by one or by a search."""

from collections import Counter
from typing import Any

from ottla.console.asking import Ask, BadInput, Done, NotThere
from ottla.console.commands import line
from ottla.console.letters import REPLAYED, Letter, letter_of, looks_like_letters, original_headers
from ottla.console.pages import messages
from ottla.console.pages.produce import FORMS, read_bytes
from ottla.console.redriving import Returned, send_back, sent_places
from ottla.console.search.batches import Found
from ottla.console.search.query import BadQuery, parse_query
from ottla.console.snapshot import Snapshot

SHOWN = 40
LOOKED_AT = 2_000
"""So many of the newest letters are counted by their errors."""
SENT_MAX = 1_000


async def show(ask: Ask) -> dict[str, Any]:
    found = await ask.snapshot()
    topics = await _topics(ask, found)
    topic = ask.fields.get("topic") or (topics[0] if len(topics) == 1 else "")
    document: dict[str, Any] = {
        "topics": [{"topic": each, "letters": _count(found, each)} for each in topics],
        "topic": topic,
        "q": ask.fields.get("q"),
        "items": [],
        "kinds": [],
        "looked_at": 0,
        "error": "",
        "_forms": FORMS,
        "_command": line("ottla", "", "pipeline", "replay-dead-letters", "PIPELINE.yaml", "--where", "step = 'parse'"),
    }
    if topic:
        letters, error = await _letters(ask, found, topic)
        kinds = Counter(letter.kind for letter, _ in letters if not letter.sent)
        rows = await messages.rows_of(ask, topic, [record for _, record in letters[:SHOWN]])
        document |= {
            "items": [
                {"letter": letter, "record": row} for (letter, _), row in zip(letters[:SHOWN], rows, strict=True)
            ],
            "kinds": [{"error": kind, "letters": count} for kind, count in kinds.most_common(20)],
            "looked_at": len(letters),
            "error": error,
        }
    return document


async def _topics(ask: Ask, found: Snapshot) -> list[str]:
    told = {
        str(query.get("dead_letter_topic") or "")
        for driver in await ask.console.pipelines.of(ask.watched.settings)
        for pipeline in driver.pipelines
        for query in pipeline.get("queries", ())
        if isinstance(query, dict)
    }
    return sorted(
        topic
        for topic in found.numbers
        if (topic in told or looks_like_letters(topic)) and not topic.endswith(REPLAYED)
    )


def _count(found: Snapshot, topic: str) -> int:
    return next((row.end_offsets for row in found.topics if row.name == topic), 0)


async def _letters(ask: Ask, found: Snapshot, topic: str) -> tuple[list[tuple[Letter, Found]], str]:
    if topic not in found.numbers:
        raise NotThere(f"there is no topic {topic}")
    try:
        query = parse_query(ask.fields.get("q"))
    except BadQuery as error:
        return [], str(error)
    sent = await sent_places(ask.watched.cluster, topic, found.numbers)
    kind = ask.fields.get("kind")
    letters = []
    async for record in messages.scan_of(ask, topic, query, LOOKED_AT):
        letter = letter_of(record)
        if not kind or letter.kind == kind:
            letters.append((letter._replace(sent=letter.place in sent), record))
    return letters, ""


async def show_one(ask: Ask) -> dict[str, Any]:
    topic = ask.fields.need("topic")
    record = await messages.one(
        ask, topic, ask.fields.integer("partition", least=0), ask.fields.integer("offset", least=0)
    )
    found = await ask.snapshot()
    letter = letter_of(record)
    sent = letter.place in await sent_places(ask.watched.cluster, topic, found.numbers)
    (row,) = await messages.rows_of(ask, topic, [record], messages.CHARACTERS_FULL)
    masked = ask.caller.mask(topic) is not None
    is_text = record.value is not None and not _is_binary(record.value)
    return {
        "topic": topic,
        "letter": letter._replace(sent=sent),
        "record": row,
        "editable": "" if masked else (record.value or b"").decode() if is_text else (record.value or b"").hex(),
        "masked": masked,
        "form": "null" if record.value is None else "text" if is_text else "hex",
        "_forms": ("text", "json", "hex", "base64", "null"),
        "_known": letter.topic in found.numbers,
    }


def _is_binary(data: bytes) -> bool:
    try:
        return "\x00" in data.decode()
    except UnicodeDecodeError:
        return True


async def send(ask: Ask) -> Done:
    """Letters by their places, or with `all` those that the search finds. With a value, the one letter so mended."""
    topic = ask.fields.need("topic")
    found = await ask.snapshot()
    if topic not in found.numbers:
        raise NotThere(f"there is no topic {topic}")
    if ask.fields.get("all"):
        ask.fields.confirmed(topic, "send back all that were found")
        chosen = [each for each in (await _letters(ask, found, topic))[0] if not each[0].sent]
    else:
        chosen = [await _placed(ask, topic, place) for place in ask.fields.all("place")]
    if not chosen:
        raise BadInput("choose letters to send back")
    if len(chosen) > SENT_MAX:
        raise BadInput(f"at most {SENT_MAX} letters are sent back at once: narrow the search")
    sent = await sent_places(ask.watched.cluster, topic, found.numbers)
    returned = [_returned(ask, letter, record, found, sent, alone=len(chosen) == 1) for letter, record in chosen]
    await send_back(ask.watched.cluster, topic, returned, found.numbers)
    words = f"{len(returned)} letter{'s' if len(returned) > 1 else ''} sent back to " + ", ".join(
        sorted({each.letter.topic or "" for each in returned})
    )
    return Done(words, ask.link("/dead-letters", topic=topic, q=ask.fields.get("q")), {"sent": len(returned)}, topic)


async def _placed(ask: Ask, topic: str, place: str) -> tuple[Letter, Found]:
    partition, colon, offset = place.partition(":")
    if not (colon and partition.isdigit() and offset.isdigit()):
        raise BadInput(f"a place is partition:offset, not `{place}`")
    record = await messages.one(ask, topic, int(partition), int(offset))
    return letter_of(record), record


def _returned(ask: Ask, letter: Letter, record: Found, found: Snapshot, sent: set[str], *, alone: bool) -> Returned:
    if letter.place in sent:
        raise BadInput(f"letter {letter.place} was sent back before")
    if letter.topic is None:
        raise BadInput(f"letter {letter.place} has no header that says where it came from: it cannot be sent back")
    if letter.topic not in found.numbers:
        raise BadInput(f"letter {letter.place} came from topic {letter.topic}, which is gone")
    value = record.value
    if alone and "value" in ask.fields and not ask.caller.mask(ask.fields.get("topic")):
        value = read_bytes(
            ask.fields.get("value").replace("\r\n", "\n"), ask.fields.get("value_form") or "text", "value"
        )
    return Returned(letter, record.key, value, original_headers(record.headers))

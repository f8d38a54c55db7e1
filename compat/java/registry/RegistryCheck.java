import java.io.IOException;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import org.apache.flink.avro.registry.confluent.shaded.io.confluent.kafka.schemaregistry.ParsedSchema;
import org.apache.flink.avro.registry.confluent.shaded.io.confluent.kafka.schemaregistry.avro.AvroSchema;
import org.apache.flink.avro.registry.confluent.shaded.io.confluent.kafka.schemaregistry.client.CachedSchemaRegistryClient;
import org.apache.flink.avro.registry.confluent.shaded.io.confluent.kafka.schemaregistry.client.SchemaMetadata;
import org.apache.flink.avro.registry.confluent.shaded.io.confluent.kafka.schemaregistry.client.rest.RestService;
import org.apache.flink.avro.registry.confluent.shaded.io.confluent.kafka.schemaregistry.client.rest.entities.Config;
import org.apache.flink.avro.registry.confluent.shaded.io.confluent.kafka.schemaregistry.client.rest.entities.Metadata;
import org.apache.flink.avro.registry.confluent.shaded.io.confluent.kafka.schemaregistry.client.rest.entities.SchemaReference;
import org.apache.flink.avro.registry.confluent.shaded.io.confluent.kafka.schemaregistry.client.rest.entities.SubjectVersion;
import org.apache.flink.avro.registry.confluent.shaded.io.confluent.kafka.schemaregistry.client.rest.exceptions.RestClientException;
import org.apache.flink.avro.shaded.org.apache.avro.generic.GenericData;
import org.apache.flink.avro.shaded.org.apache.avro.generic.GenericRecord;
import org.apache.flink.formats.avro.registry.confluent.ConfluentRegistryAvroDeserializationSchema;
import org.apache.flink.formats.avro.registry.confluent.ConfluentRegistryAvroSerializationSchema;

/** One scenario of Confluent's registry client: java RegistryCheck URL SCENARIO SUBJECT [ARGUMENT ...]. */
public final class RegistryCheck {
    interface Scenario {
        void run(RegistryCheck check) throws Exception;
    }

    interface Asking {
        void ask() throws IOException, RestClientException;
    }

    static final String FIRST = record("Order", "{\"name\":\"id\",\"type\":\"int\"}");
    static final String SECOND = record("Order",
            "{\"name\":\"id\",\"type\":\"int\"},{\"name\":\"note\",\"type\":\"string\",\"default\":\"\"}");
    static final String WRONG = record("Order", "{\"name\":\"id\",\"type\":\"string\"}");

    final String url;
    final String subject;
    final String[] arguments;
    final RestService rest;
    final CachedSchemaRegistryClient client;

    private RegistryCheck(String url, String subject, String[] arguments) {
        this.url = url;
        this.subject = subject;
        this.arguments = arguments;
        rest = new RestService(url);
        client = new CachedSchemaRegistryClient(rest, 1_000);
    }

    public static void main(String[] arguments) throws Exception {
        Map<String, Scenario> scenarios = new HashMap<>();
        scenarios.put("register", RegistryCheck::register);
        scenarios.put("compatibility", RegistryCheck::compatibility);
        scenarios.put("config", RegistryCheck::config);
        scenarios.put("mode", RegistryCheck::mode);
        scenarios.put("references", RegistryCheck::references);
        scenarios.put("metadata", RegistryCheck::metadata);
        scenarios.put("deletes", RegistryCheck::deletes);
        scenarios.put("login", RegistryCheck::login);
        scenarios.put("flink", RegistryCheck::flink);
        String[] left = Arrays.copyOfRange(arguments, 3, arguments.length);
        scenarios.get(arguments[1]).run(new RegistryCheck(arguments[0], arguments[2], left));
        System.out.println("passed");
    }

    /** Without its cache, which would answer in the registry's place. */
    private void forget() {
        client.reset();
    }

    private void register() throws Exception {
        int first = client.register(subject, avro(FIRST));
        forget();
        expect(first, client.register(subject, avro(FIRST)));
        int second = client.register(subject, avro(SECOND), true);
        expect(first != second, "two schemas have two ids");
        forget();
        expect(avro(FIRST), client.getSchemaById(first));
        expect(avro(SECOND), client.getSchemaBySubjectAndId(subject, second));
        expect(first, client.getId(subject, avro(FIRST)));
        expect(2, client.getVersion(subject, avro(SECOND)));
        SchemaMetadata latest = client.getLatestSchemaMetadata(subject);
        expect(List.of(second, 2, "AVRO"), List.of(latest.getId(), latest.getVersion(), latest.getSchemaType()));
        expect(first, client.getSchemaMetadata(subject, 1).getId());
        expect(FIRST, client.getByVersion(subject, 1, false).getSchema());
        expect(List.of(1, 2), client.getAllVersions(subject));
        expect(client.getAllSubjects().contains(subject), "its subject is listed");
        expect(Set.of(subject), Set.copyOf(client.getAllSubjectsByPrefix(subject)));
        expect(Set.of(subject), Set.copyOf(client.getAllSubjectsById(second)));
        expect(List.of(new SubjectVersion(subject, 2)), List.copyOf(client.getAllVersionsById(second)));
        expect(List.<ParsedSchema>of(avro(SECOND)), client.getSchemas(subject, false, true));
        expect(SECOND, rest.getOnlySchemaById(second));
        expect(FIRST, rest.getVersionSchemaOnly(subject, 1));
        expect(second, rest.getId(first, subject, true).getMaxId());
        expect(new TreeSet<>(List.of("AVRO", "JSON", "PROTOBUF")), new TreeSet<>(rest.getSchemaTypes()));
        expect(rest.getAllContexts().contains("."), "the context of all that names none is listed");
        expect(rest.getClusterId().getId() != null || !rest.getClusterId().getScope().isEmpty(), "a cluster has an id");
        expect(rest.getSchemaRegistryServerVersion().getVersion() != null, "a registry has a version");
        refused(40401, () -> client.getLatestSchemaMetadata(subject + "-none"));
        refused(40402, () -> client.getSchemaMetadata(subject, 9));
        refused(40403, () -> client.getSchemaById(1_000_000));
        refused(40403, () -> client.getId(subject, avro(WRONG)));
        refused(42201, () -> rest.registerSchema("{", subject));
    }

    private void compatibility() throws Exception {
        expect(client.testCompatibility(subject, avro(FIRST)), "anything fits a subject that has nothing");
        client.register(subject, avro(FIRST));
        expect(client.testCompatibility(subject, avro(SECOND)), "a field with a default may be added");
        expect(!client.testCompatibility(subject, avro(WRONG)), "an int is no string");
        expect(List.of(), client.testCompatibilityVerbose(subject, avro(SECOND)));
        String said = client.testCompatibilityVerbose(subject, avro(WRONG)).toString();
        expect(said.contains("TYPE_MISMATCH") && said.contains("/fields/0/type"), said);
        expect(List.of(), rest.testCompatibility(SECOND, subject, "1"));
        refused(40901, () -> client.register(subject, avro(WRONG)));
        refused(40402, () -> rest.testCompatibility(SECOND, subject, "9"));
    }

    private void config() throws Exception {
        refused(40408, () -> client.getConfig(subject));
        expect("BACKWARD", client.getCompatibility(null));
        expect("BACKWARD", rest.getConfig(Map.of(), subject, true).getCompatibilityLevel());
        client.register(subject, avro(FIRST));
        expect("NONE", client.updateCompatibility(subject, "NONE"));
        expect("NONE", client.getCompatibility(subject));
        client.register(subject, avro(WRONG));
        Config wanted = new Config("FULL");
        wanted.setNormalize(true);
        wanted.setCompatibilityGroup("major");
        wanted.setDefaultMetadata(new Metadata(null, Map.of("owner", "shop"), null));
        expect(wanted, client.updateConfig(subject, wanted));
        expect(wanted, client.getConfig(subject));
        refused(42203, () -> client.updateCompatibility(subject, "SOMETIMES"));
        client.deleteConfig(subject);
        refused(40408, () -> client.getConfig(subject));
    }

    private void mode() throws Exception {
        expect("READWRITE", client.getMode());
        refused(40409, () -> client.getMode(subject));
        expect("READWRITE", rest.getMode(subject, true).getMode());
        expect("READONLY", client.setMode("READONLY", subject));
        expect("READONLY", client.getMode(subject));
        refused(42205, () -> client.register(subject, avro(FIRST)));
        refused(42204, () -> client.setMode("SOMETIMES", subject));
        expect("IMPORT", client.setMode("IMPORT", subject));
        String text = FIRST.replace("Order", "Imported");
        expect(1_234, client.register(subject, avro(text), 7, 1_234));
        client.deleteMode(subject);
        refused(40409, () -> client.getMode(subject));
        forget();
        SchemaMetadata found = client.getLatestSchemaMetadata(subject);
        expect(List.of(7, 1_234, text), List.of(found.getVersion(), found.getId(), found.getSchema()));
    }

    private void references() throws Exception {
        String item = "{\"type\":\"record\",\"name\":\"Item\",\"namespace\":\"shop\","
                + "\"fields\":[{\"name\":\"id\",\"type\":\"int\"}]}";
        String basket = record("Basket", "{\"name\":\"item\",\"type\":\"shop.Item\"}");
        String referred = subject + "-item";
        client.register(referred, avro(item));
        List<SchemaReference> references = List.of(new SchemaReference("shop.Item", referred, 1));
        AvroSchema wanted = new AvroSchema(basket, references, Map.of("shop.Item", item), null);
        int id = client.register(subject, wanted);
        forget();
        AvroSchema found = (AvroSchema) client.getSchemaById(id);
        expect(references, found.references());
        expect("shop.Item", found.rawSchema().getField("item").schema().getFullName());
        expect(List.of(id), rest.getReferencedBy(referred, 1));
        refused(42206, () -> client.deleteSchemaVersion(referred, "1"));
        refused(42206, () -> client.deleteSubject(referred));
        refused(42201, () -> rest.registerSchema(basket.replace("Basket", "Alone"), subject));
        client.deleteSubject(subject);
        client.deleteSubject(subject, true);
        expect(List.of(1), client.deleteSubject(referred));
    }

    private void metadata() throws Exception {
        Metadata metadata = new Metadata(Map.of("**.id", Set.of("PII")), Map.of("major", "1"), Set.of("major"));
        client.register(subject, avro(FIRST).copy(metadata, null));
        client.register(subject, avro(SECOND).copy(new Metadata(null, Map.of("major", "2"), null), null));
        forget();
        SchemaMetadata found = client.getLatestWithMetadata(subject, Map.of("major", "1"), false);
        expect(1, found.getVersion());
        expect(metadata, found.getMetadata());
        refused(40403, () -> client.getLatestWithMetadata(subject, Map.of("major", "3"), false));
    }

    private void deletes() throws Exception {
        int first = client.register(subject, avro(FIRST));
        client.register(subject, avro(SECOND));
        refused(40407, () -> client.deleteSchemaVersion(subject, "1", true));
        expect(1, client.deleteSchemaVersion(subject, "1"));
        refused(40406, () -> client.deleteSchemaVersion(subject, "1"));
        forget();
        expect(List.of(2), client.getAllVersions(subject));
        expect(List.of(1, 2), client.getAllVersions(subject, true));
        expect(List.of(1), rest.getDeletedOnlyVersions(subject));
        refused(40402, () -> client.getSchemaMetadata(subject, 1));
        expect(first, client.getSchemaMetadata(subject, 1, true).getId());
        expect(avro(FIRST), client.getSchemaById(first));
        expect(1, client.deleteSchemaVersion(subject, "1", true));
        refused(40405, () -> client.deleteSubject(subject, true));
        expect(List.of(2), client.deleteSubject(subject));
        refused(40404, () -> client.deleteSubject(subject));
        expect(!client.getAllSubjects().contains(subject), "a deleted subject is hidden");
        expect(client.getAllSubjects(true).contains(subject), "and can be seen");
        expect(rest.getDeletedOnlySubjects(subject).contains(subject), "and asked for");
        forget();
        int again = client.register(subject, avro(SECOND));
        SchemaMetadata latest = client.getLatestSchemaMetadata(subject);
        expect(List.of(again, 3), List.of(latest.getId(), latest.getVersion()));
        expect(List.of(3), client.deleteSubject(subject));
        expect(List.of(2, 3), client.deleteSubject(subject, true));
        expect(!client.getAllSubjects(true).contains(subject), "nothing is left of it");
    }

    /** The first argument, name:password, is let in; nobody else is. */
    private void login() throws Exception {
        refused(401, 401, () -> client.getAllSubjects());
        Map<String, String> settings = new HashMap<>();
        settings.put("basic.auth.credentials.source", "USER_INFO");
        settings.put("basic.auth.user.info", arguments[0]);
        CachedSchemaRegistryClient known = new CachedSchemaRegistryClient(url, 10, settings);
        known.register(subject, avro(FIRST));
        expect(List.of(1), known.getAllVersions(subject));
        settings.put("basic.auth.user.info", arguments[0] + "x");
        CachedSchemaRegistryClient wrong = new CachedSchemaRegistryClient(url, 10, settings);
        refused(401, 401, () -> wrong.register(subject, avro(SECOND)));
    }

    /** Flink's serializers: what another language wrote with the first schema is read with the second, and written. */
    private void flink() throws Exception {
        org.apache.flink.avro.shaded.org.apache.avro.Schema schema = avro(SECOND).rawSchema();
        var reading = ConfluentRegistryAvroDeserializationSchema.forGeneric(schema, url);
        GenericRecord read = reading.deserialize(HexFormat.of().parseHex(arguments[0]));
        expect(Integer.valueOf(arguments[1]), read.get("id"));
        expect("", read.get("note").toString());
        GenericRecord written = new GenericData.Record(schema);
        written.put("id", read.get("id"));
        written.put("note", "read by Flink");
        byte[] bytes = ConfluentRegistryAvroSerializationSchema.forGeneric(subject, schema, url).serialize(written);
        expect(written, reading.deserialize(bytes));
        expect(2, client.getVersion(subject, avro(SECOND)));
        System.out.println("bytes " + HexFormat.of().formatHex(bytes));
    }

    static String record(String name, String fields) {
        return "{\"type\":\"record\",\"name\":\"" + name + "\",\"fields\":[" + fields + "]}";
    }

    static AvroSchema avro(String text) {
        return new AvroSchema(text);
    }

    static void refused(int code, Asking asking) throws IOException {
        refused(code / 100, code, asking);
    }

    static void refused(int status, int code, Asking asking) throws IOException {
        try {
            asking.ask();
        } catch (RestClientException error) {
            expect(code, error.getErrorCode());
            expect(status, error.getStatus());
            return;
        }
        throw new AssertionError("was not refused with " + code);
    }

    static void expect(Object expected, Object found) {
        if (!expected.equals(found)) {
            throw new AssertionError("expected " + expected + " but found " + found);
        }
    }

    static void expect(boolean condition, String what) {
        if (!condition) {
            throw new AssertionError(what);
        }
    }
}

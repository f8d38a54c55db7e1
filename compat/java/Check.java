import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import java.util.Properties;
import java.util.UUID;
import java.util.function.BooleanSupplier;

/** Runs one scenario of the Java client against a broker: java Check BOOTSTRAP SCENARIO [ARGUMENT ...]. */
public final class Check {
    interface Scenario {
        void run(String bootstrap, String[] arguments) throws Exception;
    }

    static final long WAIT_MS = 60_000;

    private Check() {
    }

    public static void main(String[] arguments) throws Exception {
        Map<String, Scenario> scenarios = new HashMap<>();
        scenarios.put("admin", AdminCheck::run);
        scenarios.put("admin-groups", AdminCheck::groups);
        scenarios.put("codec", RecordsCheck::codec);
        scenarios.put("times", RecordsCheck::times);
        scenarios.put("large", RecordsCheck::large);
        scenarios.put("failures", FailureCheck::run);
        scenarios.put("assignor", GroupCheck::assignor);
        scenarios.put("static", GroupCheck::staticMember);
        scenarios.put("commits", GroupCheck::commits);
        scenarios.put("transactions", TransactionCheck::isolation);
        scenarios.put("transactions-copy", TransactionCheck::copy);
        scenarios.put("transactions-fencing", TransactionCheck::fencing);
        scenarios.put("transactions-timeout", TransactionCheck::timeout);
        scenarios.put("transactions-admin", TransactionCheck::admin);
        scenarios.put("transactions-back-to-back", BackToBackCheck::run);
        scenarios.put("telemetry", TelemetryCheck::push);
        scenarios.put("secured", SecurityCheck::letIn);
        scenarios.put("refused", SecurityCheck::refused);
        scenarios.put("new-groups", NewGroupCheck::membership);
        scenarios.put("new-groups-pattern", NewGroupCheck::pattern);
        scenarios.put("new-groups-upgrade", NewGroupCheck::upgrade);
        scenarios.get(arguments[1]).run(arguments[0], Arrays.copyOfRange(arguments, 2, arguments.length));
        System.out.println("passed");
    }

    /** Settings with the bootstrap address first, then name, value, name, value. */
    static Properties settings(String bootstrap, String... pairs) {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", bootstrap);
        for (int i = 0; i < pairs.length; i += 2) {
            properties.put(pairs[i], pairs[i + 1]);
        }
        return properties;
    }

    static String unique(String prefix) {
        return prefix + "-" + UUID.randomUUID();
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

    /** Repeats the condition, which is expected to do the work that makes it come true. */
    static void waitUntil(String what, BooleanSupplier condition) {
        long deadline = System.currentTimeMillis() + WAIT_MS;
        while (!condition.getAsBoolean()) {
            expect(System.currentTimeMillis() < deadline, "not in time: " + what);
        }
    }
}

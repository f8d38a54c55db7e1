import java.time.Duration;
import java.util.Map;
import org.apache.kafka.connect.mirror.RemoteClusterUtils;

/** What a program of the target learns of its mirrors: java MirrorCheck TARGET-BOOTSTRAP SOURCE-ALIAS GROUP. */
public final class MirrorCheck {
    private static final Duration PATIENCE = Duration.ofSeconds(60);

    private MirrorCheck() {
    }

    public static void main(String[] arguments) throws Exception {
        Map<String, Object> target = Map.of("bootstrap.servers", arguments[0]);
        String source = arguments[1];
        System.out.println("hops " + RemoteClusterUtils.replicationHops(target, source));
        System.out.println("upstream " + RemoteClusterUtils.upstreamClusters(target));
        System.out.println("checkpoints " + RemoteClusterUtils.checkpointTopics(target));
        RemoteClusterUtils.translateOffsets(target, source, arguments[2], PATIENCE).forEach((partition, position) ->
            System.out.println("translated " + partition + " " + position.offset()));
    }
}

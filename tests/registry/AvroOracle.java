import java.io.*;
import java.nio.charset.StandardCharsets;
import org.apache.avro.Schema;
import org.apache.avro.SchemaCompatibility;
import org.apache.avro.SchemaCompatibility.SchemaCompatibilityType;

/** Lines of reader TAB writer in; a verdict TAB the reader as Avro itself writes it out. */
public class AvroOracle {
  public static void main(String[] args) throws Exception {
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    PrintStream out = new PrintStream(new BufferedOutputStream(System.out), false, "UTF-8");
    for (String line; (line = in.readLine()) != null; ) {
      String[] both = line.split("\t");
      try {
        Schema reader = new Schema.Parser().parse(both[0]);
        Schema writer = new Schema.Parser().parse(both[1]);
        SchemaCompatibilityType type = SchemaCompatibility.checkReaderWriterCompatibility(reader, writer).getType();
        out.println((type == SchemaCompatibilityType.COMPATIBLE ? "yes" : "no") + "\t" + reader);
      } catch (Exception problem) {
        out.println("invalid\t" + problem.getMessage().replace('\n', ' '));
      }
    }
    out.flush();
  }
}

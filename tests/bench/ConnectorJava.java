import com.github.shyiko.mysql.binlog.BinaryLogFileReader;
import com.github.shyiko.mysql.binlog.event.DeleteRowsEventData;
import com.github.shyiko.mysql.binlog.event.Event;
import com.github.shyiko.mysql.binlog.event.EventData;
import com.github.shyiko.mysql.binlog.event.UpdateRowsEventData;
import com.github.shyiko.mysql.binlog.event.WriteRowsEventData;
import com.github.shyiko.mysql.binlog.event.deserialization.EventDeserializer;
import java.io.BufferedInputStream;
import java.io.FileInputStream;

/** Reads a log file with mysql-binlog-connector-java, every row decoded to objects, and prints how many there were. */
public final class ConnectorJava {
    public static void main(String[] arguments) throws Exception {
        long changes = 0;
        BufferedInputStream file = new BufferedInputStream(new FileInputStream(arguments[0]), 1 << 20);
        try (BinaryLogFileReader reader = new BinaryLogFileReader(file, new EventDeserializer())) {
            for (Event event; (event = reader.readEvent()) != null; ) {
                EventData data = event.getData();
                if (data instanceof WriteRowsEventData) {
                    changes += ((WriteRowsEventData) data).getRows().size();
                } else if (data instanceof UpdateRowsEventData) {
                    changes += ((UpdateRowsEventData) data).getRows().size();
                } else if (data instanceof DeleteRowsEventData) {
                    changes += ((DeleteRowsEventData) data).getRows().size();
                }
            }
        }
        System.out.println(changes);
    }
}

package interop;

import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.util.List;
import org.redisson.api.RScript;
import org.redisson.api.RedissonClient;
import org.redisson.client.codec.StringCodec;

/** The server of the test, which holders tell that they are inside and which sees whether two are. */
final class Referee {
    private final RScript scripts;
    private final String enter = read("/enter.lua");
    private final String leave = read("/leave.lua");

    Referee(RedissonClient client) throws IOException {
        scripts = client.getScript(StringCodec.INSTANCE);
    }

    /** Returns the time by the clock of Redis. */
    String enter(String name, String who, String how) {
        return scripts.eval(RScript.Mode.READ_WRITE, enter, RScript.ReturnType.VALUE, keys(name), who, how);
    }

    /** Records the hold, which began at these times, by the clock of Redis and by the machine's. */
    void leave(String name, String who, String how, String entered, long began) {
        scripts.eval(RScript.Mode.READ_WRITE, leave, RScript.ReturnType.VALUE, keys(name), who, how,
            entered, String.valueOf(began), String.valueOf(Answers.now()), "0");
    }

    private static List<Object> keys(String name) {
        return List.of("inside:" + name, "journal:" + name, "met:" + name);
    }

    private static String read(String path) throws IOException {
        try (InputStream script = Referee.class.getResourceAsStream(path)) {
            return new String(script.readAllBytes(), StandardCharsets.UTF_8);
        }
    }
}

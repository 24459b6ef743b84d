package interop;

import java.util.Arrays;
import java.util.List;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;

/** Finds the lock that a command is about. */
final class Locks {
    private Locks() {}

    /** The lock is at the first client, except a Redlock, which is on the servers of all. */
    @SuppressWarnings("deprecation") // of getRedLock
    static RLock of(List<RedissonClient> clients, Command command) throws ReflectiveOperationException {
        String name = command.text("name");
        RedissonClient client = clients.get(0);
        return switch (command.text("kind")) {
            case "lock" -> client.getLock(name);
            case "fair" -> client.getFairLock(name);
            case "read" -> client.getReadWriteLock(name).readLock();
            case "write" -> client.getReadWriteLock(name).writeLock();
            case "spin" -> client.getSpinLock(name);
            case "fenced" -> fenced(client, name);
            case "multi" -> client.getMultiLock(
                Arrays.stream(name.split(",")).map(client::getLock).toArray(RLock[]::new));
            case "redlock" -> client.getRedLock(
                clients.stream().map(each -> each.getLock(name)).toArray(RLock[]::new));
            default -> throw new IllegalArgumentException("kind " + command.text("kind"));
        };
    }

    /** By reflection, so that the program can be built with versions that do not have it yet. */
    private static RLock fenced(RedissonClient client, String name) throws ReflectiveOperationException {
        return (RLock) RedissonClient.class.getMethod("getFencedLock", String.class).invoke(client, name);
    }

    static String token(RLock lock) throws ReflectiveOperationException {
        return String.valueOf(Class.forName("org.redisson.api.RFencedLock").getMethod("getToken").invoke(lock));
    }
}

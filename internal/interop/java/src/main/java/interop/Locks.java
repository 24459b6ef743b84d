package interop;

import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;

/** Finds the lock that a command is about. */
final class Locks {
    private Locks() {}

    static RLock of(RedissonClient client, Command command) throws ReflectiveOperationException {
        String name = command.text("name");
        return switch (command.text("kind")) {
            case "lock" -> client.getLock(name);
            case "fair" -> client.getFairLock(name);
            case "read" -> client.getReadWriteLock(name).readLock();
            case "write" -> client.getReadWriteLock(name).writeLock();
            case "spin" -> client.getSpinLock(name);
            case "fenced" -> fenced(client, name);
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

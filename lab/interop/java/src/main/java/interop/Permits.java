package interop;

import java.util.Arrays;
import java.util.concurrent.TimeUnit;
import org.redisson.api.RPermitExpirableSemaphore;
import org.redisson.api.RedissonClient;

/** What commands can say to a semaphore. */
final class Permits {
    /** So that an answer is a short line. */
    private static final int MOST_WAITS = 1000;

    private Permits() {}

    static String run(RedissonClient client, Command command) throws InterruptedException {
        RPermitExpirableSemaphore semaphore = client.getPermitExpirableSemaphore(command.text("name"));
        switch (command.verb()) {
            case "setpermits":
                return String.valueOf(semaphore.trySetPermits((int) command.number("n")));
            case "lock":
                return semaphore.acquire(command.number("lease"), TimeUnit.MILLISECONDS);
            case "trylock":
                return String.valueOf(semaphore.tryAcquire(0, command.number("lease"), TimeUnit.MILLISECONDS));
            case "unlock":
                semaphore.release(command.text("id"));
                return "released";
            case "permits":
                return count(semaphore, command);
            default:
                throw new IllegalArgumentException("verb " + command.verb());
        }
    }

    /** Takes, holds and releases permits, and returns how many in how many microseconds, and the waits for them. */
    private static String count(RPermitExpirableSemaphore semaphore, Command command) throws InterruptedException {
        long start = System.nanoTime();
        long end = start + TimeUnit.MILLISECONDS.toNanos(command.number("for"));
        long[] waits = new long[1024];
        int grants = 0;
        do {
            long asked = System.nanoTime();
            String id = semaphore.acquire(command.number("lease"), TimeUnit.MILLISECONDS);
            if (grants == waits.length) {
                waits = Arrays.copyOf(waits, 2 * grants);
            }
            waits[grants++] = TimeUnit.NANOSECONDS.toMicros(System.nanoTime() - asked);
            TimeUnit.MICROSECONDS.sleep(command.number("hold"));
            semaphore.release(id);
        } while (System.nanoTime() < end);
        long took = TimeUnit.NANOSECONDS.toMicros(System.nanoTime() - start);
        Arrays.sort(waits, 0, grants);
        StringBuilder answer = new StringBuilder(grants + " " + took);
        int step = Math.max(1, grants / MOST_WAITS);
        for (int i = grants - 1; i >= 0; i -= step) {
            answer.append(' ').append(waits[i]);
        }
        return answer.toString();
    }
}

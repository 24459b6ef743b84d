package interop;

import java.util.concurrent.TimeUnit;
import org.redisson.api.RLock;

/** Locks and unlocks as fast as it can. */
final class Pairs {
    private Pairs() {}

    /** Returns how many pairs were done in how many microseconds. */
    static String count(RLock lock, long milliseconds) {
        long start = System.nanoTime();
        long end = start + TimeUnit.MILLISECONDS.toNanos(milliseconds);
        long pairs = 0;
        do {
            lock.lock();
            lock.unlock();
            pairs++;
        } while (System.nanoTime() < end);
        return pairs + " " + TimeUnit.NANOSECONDS.toMicros(System.nanoTime() - start);
    }
}

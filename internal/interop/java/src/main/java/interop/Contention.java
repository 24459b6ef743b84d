package interop;

import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.redisson.api.RLock;

/** Locks and unlocks over and over, and tells the referee of each hold. */
final class Contention {
    private final RLock lock;
    private final Referee referee;
    private final String resource;
    private final String who;
    private final String how;
    private final long length;
    private final long hold;
    private final long think;

    Contention(RLock lock, Referee referee, Command command) {
        this.lock = lock;
        this.referee = referee;
        resource = command.has("resource") ? command.text("resource") : command.text("name");
        who = command.text("party") + ":" + command.thread();
        how = command.text("kind").equals("read") ? "java" : "exclusive";
        length = TimeUnit.MILLISECONDS.toNanos(command.number("for"));
        hold = TimeUnit.MICROSECONDS.toNanos(command.number("hold"));
        think = TimeUnit.MICROSECONDS.toNanos(command.number("think"));
    }

    /** Returns the number of holds. */
    String run() {
        long start = System.nanoTime();
        long holds = 0;
        while (System.nanoTime() - start < length) {
            lock.lock();
            try {
                hold();
            } finally {
                lock.unlock();
            }
            holds++;
            pause(think);
        }
        return String.valueOf(holds);
    }

    private void hold() {
        long began = Answers.now();
        String entered = referee.enter(resource, who, how);
        pause(hold);
        referee.leave(resource, who, how, entered, began);
    }

    /** Pauses for at most so long, at random, so that the callers do not fall into step. */
    private static void pause(long most) {
        if (most > 0) {
            LockSupport.parkNanos(ThreadLocalRandom.current().nextLong(most));
        }
    }
}

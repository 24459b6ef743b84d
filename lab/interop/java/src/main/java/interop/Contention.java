package interop;

import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.redisson.api.RLock;

/** Locks and unlocks over and over, and tells the referee of each hold. */
final class Contention {
    private final RLock lock;
    private final Referee referee;
    private final String[] resources;
    private final String who;
    private final String how;
    private final long length;
    private final long hold;
    private final long think;

    Contention(RLock lock, Referee referee, Command command) {
        this.lock = lock;
        this.referee = referee;
        resources = (command.has("resource") ? command.text("resource") : command.text("name")).split(",");
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

    /** Is inside all resources at once. */
    private void hold() {
        long began = Answers.now();
        String[] entered = new String[resources.length];
        for (int i = 0; i < resources.length; i++) {
            entered[i] = referee.enter(resources[i], who, how);
        }
        pause(hold);
        for (int i = 0; i < resources.length; i++) {
            referee.leave(resources[i], who, how, entered[i], began);
        }
    }

    /** Pauses for at most so long, at random, so that the callers do not fall into step. */
    private static void pause(long most) {
        if (most > 0) {
            LockSupport.parkNanos(ThreadLocalRandom.current().nextLong(most));
        }
    }
}

package interop;

import java.util.List;
import java.util.concurrent.TimeUnit;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;

/** What commands can say. */
final class Verbs {
    private volatile List<RedissonClient> clients;
    private volatile Referee referee;

    String run(Command command) throws Exception {
        if (command.verb().equals("connect")) {
            clients = Connection.open(command);
            referee = new Referee(Connection.toReferee(command.text("referee")));
            return "connected";
        }
        if (command.text("kind").equals("semaphore")) {
            return Permits.run(clients.get(0), command);
        }
        RLock lock = Locks.of(clients, command);
        switch (command.verb()) {
            case "lock":
                lock(lock, command);
                return "held";
            case "trylock":
                return String.valueOf(tryLock(lock, command));
            case "unlock":
                lock.unlock();
                return "released";
            case "force":
                return String.valueOf(lock.forceUnlock());
            case "holds":
                return String.valueOf(lock.getHoldCount());
            case "locked":
                return String.valueOf(lock.isLocked());
            case "ttl":
                return String.valueOf(lock.remainTimeToLive());
            case "token":
                return Locks.token(lock);
            case "contend":
                return new Contention(lock, referee, command).run();
            case "pairs":
                return Pairs.count(lock, command.number("for"));
            default:
                throw new IllegalArgumentException("verb " + command.verb());
        }
    }

    /** Without a lease the watchdog renews the lock. */
    private static void lock(RLock lock, Command command) {
        if (command.has("lease")) {
            lock.lock(command.number("lease"), TimeUnit.MILLISECONDS);
        } else {
            lock.lock();
        }
    }

    private static boolean tryLock(RLock lock, Command command) throws InterruptedException {
        if (command.has("lease")) {
            return lock.tryLock(command.number("wait"), command.number("lease"), TimeUnit.MILLISECONDS);
        }
        if (command.has("wait")) {
            return lock.tryLock(command.number("wait"), TimeUnit.MILLISECONDS);
        }
        return lock.tryLock();
    }
}

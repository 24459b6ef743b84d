package interop;

import java.io.PrintStream;
import java.time.Instant;
import java.time.temporal.ChronoUnit;

/** Writes what became of commands, in the order in which they end: {@code id ok|error began ended value}. */
final class Answers {
    private final PrintStream out;

    Answers(PrintStream out) {
        this.out = out;
    }

    void ok(Command command, long began, long ended, String value) {
        print(command, "ok", began, ended, value);
    }

    /** Tells the class of an error first, since messages differ between versions. */
    void error(Command command, long began, long ended, Throwable error) {
        print(command, "error", began, ended, error.getClass().getSimpleName() + " " + error.getMessage());
    }

    private synchronized void print(Command command, String status, long began, long ended, String value) {
        out.println(command.id() + " " + status + " " + began + " " + ended + " " + value.replace('\n', ' '));
        out.flush();
    }

    /** The machine's clock in microseconds, which the processes of a test share. */
    static long now() {
        return ChronoUnit.MICROS.between(Instant.EPOCH, Instant.now());
    }
}

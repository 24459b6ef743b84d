package interop;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;

/**
 * A process that locks with Redisson as it is told to, in lines on stdin, and answers on stdout. It ends with its
 * input, so it does not outlive the test that has started it.
 */
public final class Main {
    private Main() {}

    public static void main(String[] arguments) throws Exception {
        Callers callers = new Callers(new Verbs(), new Answers(System.out));
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            callers.accept(Command.parse(line));
        }
        // Without hooks and without waiting for threads, some of which wait for locks.
        Runtime.getRuntime().halt(0);
    }
}

package interop;

import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

/** The threads that commands name. Each is a thread of its own for good, because Redisson's owners are thread ids. */
final class Callers {
    private final Map<String, ExecutorService> threads = new HashMap<>();
    private final Verbs verbs;
    private final Answers answers;

    Callers(Verbs verbs, Answers answers) {
        this.verbs = verbs;
        this.answers = answers;
    }

    /** Returns at once; commands of one thread are carried out one after the other. */
    void accept(Command command) {
        threads.computeIfAbsent(command.thread(), name -> Executors.newSingleThreadExecutor(task -> {
            Thread thread = new Thread(task, name);
            thread.setDaemon(true);
            return thread;
        })).execute(() -> run(command));
    }

    private void run(Command command) {
        long began = Answers.now();
        try {
            String value = verbs.run(command);
            answers.ok(command, began, Answers.now(), value);
        } catch (Throwable error) {
            answers.error(command, began, Answers.now(), error);
        }
    }
}

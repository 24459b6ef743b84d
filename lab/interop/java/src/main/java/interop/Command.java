package interop;

import java.util.HashMap;
import java.util.Map;

/** One line of input: {@code id thread verb key=value...}. No part of it contains a blank. */
record Command(String id, String thread, String verb, Map<String, String> arguments) {

    static Command parse(String line) {
        String[] words = line.split(" ");
        Map<String, String> arguments = new HashMap<>();
        for (int i = 3; i < words.length; i++) {
            String[] pair = words[i].split("=", 2);
            arguments.put(pair[0], pair[1]);
        }
        return new Command(words[0], words[1], words[2], arguments);
    }

    String text(String key) {
        String value = arguments.get(key);
        if (value == null) {
            throw new IllegalArgumentException(verb + " needs " + key);
        }
        return value;
    }

    boolean has(String key) {
        return arguments.containsKey(key);
    }

    long number(String key) {
        return Long.parseLong(text(key));
    }
}

import java.io.*;
import java.nio.charset.StandardCharsets;
import java.util.regex.*;

/** Answers lines of `pattern TAB subject`, both in hexadecimal UTF-16, with what Java says. */
public class Oracle {
    static String text(String hex) {
        StringBuilder text = new StringBuilder();
        for (int at = 0; at + 4 <= hex.length(); at += 4) {
            text.append((char) Integer.parseInt(hex.substring(at, at + 4), 16));
        }
        return text.toString();
    }

    static String answer(String pattern, String subject) {
        Pattern compiled;
        try {
            compiled = Pattern.compile(pattern);
        } catch (PatternSyntaxException error) {
            return "error";
        } catch (RuntimeException | StackOverflowError error) {
            return "skip";
        }
        String[] found = {"skip"};
        Thread search = new Thread(null, () -> {
            try {
                Matcher matcher = compiled.matcher(subject);
                found[0] = matcher.find() ? matcher.start() + " " + matcher.end() : "none";
            } catch (RuntimeException | StackOverflowError error) {
                found[0] = "skip";
            }
        }, "search", 64L << 20);
        search.setDaemon(true);
        search.start();
        try {
            search.join(1000);
        } catch (InterruptedException error) {
            return "skip";
        }
        return found[0];
    }

    public static void main(String[] arguments) throws IOException {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        PrintStream out = new PrintStream(new BufferedOutputStream(System.out), false, "US-ASCII");
        String line;
        while ((line = in.readLine()) != null) {
            int tab = line.indexOf('\t');
            out.println(answer(text(line.substring(0, tab)), text(line.substring(tab + 1))));
        }
        out.flush();
        System.exit(0);
    }
}

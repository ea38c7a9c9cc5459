use super::*;
use std::sync::mpsc::channel;

/// A stderr that is read only when something is sent.
struct Stuck(Receiver<()>, Arc<std::sync::Mutex<Vec<u8>>>);

impl Write for Stuck {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.recv().map_err(io::Error::other)?;
        self.1.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn logging_never_blocks_and_says_what_it_dropped() {
    let (reads, stuck) = channel();
    let written = Arc::default();
    let (mut queue, guard) =
        LogQueue::start(LineForm::Text, Stuck(stuck, Arc::clone(&written))).unwrap();
    for number in 0..QUEUE + 500 {
        queue.write_all(format!("line {number}\n").as_bytes()).unwrap();
    }
    let dropped = queue.dropped();
    // One line may have left the queue for the writer.
    assert!((498..=500).contains(&dropped), "{dropped}");
    for _ in 0..QUEUE + 10 {
        reads.send(()).unwrap();
    }
    drop(guard);
    let text = String::from_utf8(written.lock().unwrap().clone()).unwrap();
    assert!(text.starts_with("line 0\n"), "{text}");
    assert!(text.contains("lines of the log were dropped: stderr was not read"), "{text}");
}

#[test]
fn the_last_lines_are_written_at_the_end() {
    let (reads, stuck) = channel();
    let written = Arc::default();
    let (mut queue, guard) =
        LogQueue::start(LineForm::Text, Stuck(stuck, Arc::clone(&written))).unwrap();
    for number in 0..100 {
        queue.write_all(format!("line {number}\n").as_bytes()).unwrap();
        reads.send(()).unwrap();
    }
    drop(guard);
    assert!(written.lock().unwrap().ends_with(b"line 99\n"));
}

#[test]
fn the_end_does_not_wait_for_a_stderr_that_is_not_read() {
    let (reads, stuck) = channel::<()>();
    let (mut queue, guard) = LogQueue::start(LineForm::Text, Stuck(stuck, Arc::default())).unwrap();
    for _ in 0..2 * QUEUE {
        queue.write_all(b"line\n").unwrap();
    }
    drop(guard);
    drop(reads);
}

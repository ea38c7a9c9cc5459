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
    assert!(
        text.contains(
            "lines of the log were dropped: stderr was not read, or could not be written"
        ),
        "{text}"
    );
}

/// A file on a disk of which some bytes are free.
#[derive(Clone, Default)]
struct Disk(Arc<std::sync::Mutex<(Vec<u8>, usize)>>);

impl Write for Disk {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let (written, free) = &mut *self.0.lock().unwrap();
        if *free == 0 {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let count = bytes.len().min(*free);
        written.extend_from_slice(&bytes[..count]);
        *free -= count;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn lines_that_a_full_disk_does_not_take_are_counted() {
    let disk = Disk::default();
    disk.0.lock().unwrap().1 = 12;
    let (mut queue, guard) = LogQueue::start(LineForm::Text, disk.clone()).unwrap();
    let mut write = |line: &str, dropped: u64| {
        queue.write_all(line.as_bytes()).unwrap();
        for _ in 0..1_000 {
            if queue.dropped() == dropped {
                break;
            }
            thread::sleep(Duration::from_millis(5));
        }
        assert_eq!(queue.dropped(), dropped, "{line}");
    };
    write("line 0\n", 0);
    write("line 1\n", 1);
    write("line 2\n", 2);
    disk.0.lock().unwrap().1 = 1_000;
    write("line 3\n", 2);
    drop(guard);
    let text = String::from_utf8(disk.0.lock().unwrap().0.clone()).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[..3], ["line 0", "line ", "line 3"], "{text}");
    assert!(lines[3].contains("WARN 2 lines of the log were dropped"), "{text}");
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

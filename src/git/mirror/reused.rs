//! What one use leaves for the next, unless what it stands for was replaced in between.

use parking_lot::Mutex;

/// What one use leaves for the next.
#[derive(Debug)]
pub(super) struct Reused<T>(Mutex<Inner<T>>);

#[derive(Debug)]
struct Inner<T> {
    value: Option<T>,
    /// How often it was closed.
    closings: u64,
}

/// When something was taken.
#[derive(Debug)]
pub(in super::super) struct Taken(u64);

impl<T> Default for Reused<T> {
    fn default() -> Self {
        Self(Mutex::new(Inner { value: None, closings: 0 }))
    }
}

impl<T> Reused<T> {
    /// Takes what the last use left, and notes when.
    pub(super) fn take(&self) -> (Option<T>, Taken) {
        let mut inner = self.0.lock();
        (inner.value.take(), Taken(inner.closings))
    }

    /// Leaves it for the next use, unless it was closed since it was taken.
    pub(super) fn keep(&self, value: T, taken: &Taken) {
        let mut inner = self.0.lock();
        if inner.closings == taken.0 {
            inner.value = Some(value);
        }
    }

    /// Drops what is left, and what is in use once that ends.
    pub(super) fn close(&self) {
        let mut inner = self.0.lock();
        inner.value = None;
        inner.closings = inner.closings.wrapping_add(1);
    }

    #[cfg(test)]
    pub(super) fn has_value(&self) -> bool {
        self.0.lock().value.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_replaced_while_in_use_is_not_kept() {
        let reused = Reused::default();
        let (value, taken) = reused.take();
        assert_eq!(value, None);
        reused.keep("old", &taken);
        let (value, taken) = reused.take();
        assert_eq!(value, Some("old"));
        reused.close();
        reused.keep("old", &taken);
        let (value, taken) = reused.take();
        assert_eq!(value, None);
        reused.keep("new", &taken);
        reused.close();
        assert_eq!(reused.take().0, None);
    }
}

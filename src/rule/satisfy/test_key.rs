//! What tells a comparison from others.

use hashbrown::Equivalent;

/// The operator, by number, and the operand of a comparison.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct TestKey {
    operator: u8,
    operand: Box<str>,
}

/// The same of a comparison that is looked up; it has the same hash.
#[derive(Clone, Copy, Debug, Hash)]
pub(super) struct BorrowedTestKey<'k> {
    pub(super) operator: u8,
    pub(super) operand: &'k str,
}

impl Equivalent<TestKey> for BorrowedTestKey<'_> {
    fn equivalent(&self, key: &TestKey) -> bool {
        self.operator == key.operator && *self.operand == *key.operand
    }
}

impl From<BorrowedTestKey<'_>> for TestKey {
    fn from(BorrowedTestKey { operator, operand }: BorrowedTestKey<'_>) -> Self {
        Self { operator, operand: operand.into() }
    }
}

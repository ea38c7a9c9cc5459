mod decision;
mod drop_report;
mod event;
mod file;
mod input;
mod queue;
mod rotation;
mod waiting;
mod writer;

pub use decision::Decision;
pub use input::DecisionInput;
pub use queue::{DecisionLog, DecisionLogSettings, DecisionTarget};
pub use writer::DecisionWriter;
